package terminals

import (
	"bytes"
	"regexp"
	"sync"
)

// urlPattern finds URLs of the machine itself, in text as JSON has it. Servers print
// where they listen, some with a bold port.
var urlPattern = sync.OnceValue(func() *regexp.Regexp {
	const style = `(?:\\u001[bB]\[[0-9;]*m)*`
	return regexp.MustCompile(`(https?://)` + style + `(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0|\[::\])` + style + `(:)` + style + `([0-9]{1,5})` + style + `((?:/[A-Za-z0-9/_.~%?=+-]{0,100})?)`)
})

// printedURL returns the first URL of the machine itself in a piece of output, "" if
// there is none. quoted is the output as a JSON string. A URL at its end may go on in the
// next piece, and is left out.
func printedURL(quoted []byte) string {
	if !bytes.Contains(quoted, []byte("://")) {
		return ""
	}
	at := urlPattern().FindSubmatchIndex(quoted)
	if at == nil || at[1] >= len(quoted) || quoted[at[1]] == '"' {
		return ""
	}
	var url []byte
	for i := 2; i < len(at); i += 2 {
		part := quoted[at[i]:at[i+1]]
		if s := string(part); s == "0.0.0.0" || s == "[::]" { // all addresses: no browser goes there
			part = []byte("localhost")
		}
		url = append(url, part...)
	}
	return string(url)
}

// notePrinted keeps the first URL that the program of t prints: the page lists it.
// The next command has another one.
func (b *Book) notePrinted(t *Terminal, quoted []byte) {
	if t.Printed != "" {
		return
	}
	if t.Printed = printedURL(quoted); t.Printed != "" {
		t.touch(inRows)
	}
}
