package view

import (
	"bytes"
	"fmt"
	"io"

	"tether/ahp"
	"tether/cmd/tether/internal/display"
	"tether/internal/escape"
)

const (
	// maxLine is the length, in bytes, from which a line is shown in pieces.
	maxLine = 8 << 10
	// history is the number of earlier lines that are shown of each terminal.
	history = 10
)

// Lines shows one terminal of several on the same writer: line by line, each line behind the terminal's title, without escape sequences.
type Lines struct {
	Out   io.Writer
	Title string
	Faint bool // show titles faint

	trail   trail
	started bool
	joining bool
	skip    int // number of next lines that are not shown
	strip   stripper
	line    []byte
}

// Resync implements View.
func (v *Lines) Resync(s ahp.TerminalState) error {
	var text []byte
	for _, part := range s.Content {
		text = append(text, part.Text()...)
	}
	v.Title = s.Title
	v.joining = v.started
	if !v.started {
		v.skip = max(bytes.Count(text, []byte{'\n'})-history, 0)
	}
	v.started = true
	return v.Data(text)
}

// Data implements View.
func (v *Lines) Data(p []byte) error {
	if v.joining && len(p) > 0 {
		v.joining = false
		p, _ = v.trail.join(p)
	}
	v.trail.add(p)
	for text := v.strip.append(nil, p); len(text) > 0; {
		line, rest, ended := bytes.Cut(text, []byte{'\n'})
		v.line, text = append(v.line, line...), rest
		if !ended && len(v.line) < maxLine {
			return nil
		}
		if err := v.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush shows the line: the part behind its last carriage return.
func (v *Lines) flush() error {
	line := bytes.TrimRight(v.line, "\r")
	line = line[bytes.LastIndexByte(line, '\r')+1:]
	v.line = v.line[:0]
	if v.skip > 0 {
		v.skip--
		return nil
	}
	return v.print(string(line))
}

func (v *Lines) print(text string) error {
	prefix := "[" + display.Printable(v.Title, 30) + "]"
	if v.Faint {
		prefix = "\x1b[2m" + prefix + "\x1b[0m"
	}
	_, err := fmt.Fprintln(v.Out, prefix, text)
	return err
}

// Action implements View.
func (v *Lines) Action(a ahp.Action) error {
	switch a := a.(type) {
	case ahp.TerminalCleared:
		v.joining = true
	case ahp.TerminalTitleChanged:
		v.Title = a.Title
	}
	return nil
}

// Say shows a message on a line of its own. It shows an incomplete line of the terminal first.
func (v *Lines) Say(text string) error {
	v.skip = 0
	if len(v.line) > 0 {
		if err := v.flush(); err != nil {
			return err
		}
	}
	return v.print("── " + text)
}

// End says that the terminal is no longer shown, because of reason or, if that is nil, because the host no longer has it.
func (v *Lines) End(reason error) error {
	if reason != nil {
		return v.Say("can no longer be shown: " + display.Printable(reason.Error(), 300))
	}
	return v.Say("removed from the host")
}

// stripper removes escape sequences and control characters other than tab, carriage return and line feed. It is a pure state machine:
// pieces of any size give the same result.
type stripper struct {
	escape escape.Scanner
	lead   bool // leadC1 was the last byte
}

// leadC1 is the first byte of U+0080 to U+00BF in UTF-8. Those up to U+009F are C1 controls; U+009B, for example, means ESC [ to terminals.
const leadC1 = 0xc2

func (s *stripper) append(dst, p []byte) []byte {
	for _, c := range p {
		text, lead := s.escape.Next(c) == escape.Text, s.lead
		s.lead = text && c == leadC1
		switch {
		case !text, s.lead: // after leadC1, the next byte decides
		case lead && c >= 0x80 && c <= 0x9f:
		case c >= ' ' && c != 0x7f || c == '\t' || c == '\n' || c == '\r':
			if lead {
				dst = append(dst, leadC1)
			}
			dst = append(dst, c)
		}
	}
	return dst
}
