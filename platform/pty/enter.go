package pty

import "bytes"

// enter turns a line feed within a text into the key Enter, which on a console of Windows
// is a carriage return: there a line feed is Ctrl+J. Unix terminals take both for Enter,
// so programs that type lines send either. A line feed that arrives alone stays: somebody
// has pressed Ctrl+J.
type enter struct {
	afterCR bool // the last byte was a carriage return
}

// feed returns the bytes to type for b, perhaps b itself.
func (e *enter) feed(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	rest := b
	if e.afterCR && b[0] == '\n' {
		rest = b[1:] // the second half of a line end
	} else if len(b) == 1 {
		rest = nil
	}
	e.afterCR = b[len(b)-1] == '\r'
	switch {
	case rest == nil:
		return b
	case bytes.IndexByte(rest, '\n') < 0:
		return rest
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(rest, []byte("\r\n"), []byte("\r")), []byte("\n"), []byte("\r"))
}
