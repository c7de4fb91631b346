package view

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"tether/internal/escape"
)

// Plain writes a terminal's output as plain text with one line feed per line, without escape sequences and without control characters other
// than tabs. Within a line it obeys carriage returns and backspaces, so that only the last state of a progress bar remains. It knows one
// line at a time: a movement of the cursor to another row begins a new line. Pieces of any size give the same result, unless Live is set.
// Out must be set.
type Plain struct {
	Out  io.Writer
	Live bool // write a line before it is complete; a carriage return then begins another line

	scan    escape.Scanner
	lead    bool   // leadC1 was the last byte
	line    []byte // the part of the line that is not written yet
	begun   bool   // a part of the line was written
	restart bool   // a carriage return came: the next character begins the line anew
}

// Write implements io.Writer. It fails only if Out fails.
func (t *Plain) Write(p []byte) (int, error) {
	for _, c := range p {
		var err error
		switch t.scan.Next(c) {
		case escape.Text:
			err = t.text(c)
		case escape.Control:
			t.lead = false
			err = t.control(c)
		default:
			t.lead = false
		}
		if err != nil {
			return 0, err
		}
	}
	if t.Live && !t.restart && utf8.Valid(t.line) {
		return len(p), t.part()
	}
	return len(p), nil
}

// Close writes the last line if that was not ended. It does not close Out.
func (t *Plain) Close() error {
	if len(t.line) == 0 && !t.begun {
		return nil
	}
	return t.end()
}

// text takes a byte that belongs to no sequence.
func (t *Plain) text(c byte) error {
	lead := t.lead
	t.lead = c == leadC1
	switch {
	case t.lead, lead && c >= 0x80 && c <= 0x9f: // U+0080 to U+009F are controls; after leadC1, the next byte decides
		return nil
	case c == '\n':
		return t.end()
	case c == '\r':
		t.restart = true
		return nil
	case c == '\b':
		if len(t.line) > 0 && !t.restart {
			_, size := utf8.DecodeLastRune(t.line)
			t.line = t.line[:len(t.line)-size]
		}
		return nil
	case c < ' ' && c != '\t' || c == 0x7f:
		return nil
	}
	if err := t.fresh(); err != nil {
		return err
	}
	if lead {
		t.line = append(t.line, leadC1)
	}
	t.line = append(t.line, c)
	return t.bound()
}

// bound writes the beginning of a line that became too long.
func (t *Plain) bound() error {
	if n := len(t.line); n >= maxLine && utf8.Valid(t.line) || n >= 2*maxLine {
		return t.part()
	}
	return nil
}

// fresh begins the line again after a carriage return.
func (t *Plain) fresh() error {
	if !t.restart {
		return nil
	}
	if t.begun {
		return t.end()
	}
	t.line, t.restart = t.line[:0], false
	return nil
}

// control obeys cursor movements, because Windows consoles print positions instead of line feeds and blanks.
func (t *Plain) control(final byte) error {
	n, err := strconv.Atoi(string(t.scan.Params()))
	if err != nil {
		n = 1
	}
	switch final {
	case 'A', 'B', 'E', 'F', 'H', 'd', 'f': // another row
		if len(t.line) > 0 || t.begun {
			return t.end()
		}
	case 'C':
		if err := t.fresh(); err != nil {
			return err
		}
		t.line = append(t.line, bytes.Repeat([]byte{' '}, min(max(n, 1), maxColumns))...)
		return t.bound()
	case 'G':
		t.restart = n == 1
	}
	return nil
}

// maxColumns bounds the movement of the cursor by one sequence, in columns.
const maxColumns = 1000

func (t *Plain) end() error {
	t.line = append(t.line, '\n')
	err := t.part()
	t.begun, t.restart = false, false
	return err
}

func (t *Plain) part() error {
	if len(t.line) == 0 {
		return nil
	}
	_, err := t.Out.Write(t.line)
	t.line, t.begun = t.line[:0], true
	return err
}
