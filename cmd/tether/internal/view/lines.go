package view

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"tether/ahp"
	"tether/cmd/tether/internal/display"
	"tether/internal/plain"
)

// history is the number of earlier lines that are shown of each terminal.
const history = 10

// Lines shows one terminal of several on the same writer: line by line, each line behind
// the terminal's title, as plain text.
type Lines struct {
	Out   io.Writer
	Title string
	Faint bool // show titles faint

	trail   trail
	started bool
	joining bool
	skip    int // number of next lines that are not shown
	lines   plain.Lines
	text    plain.Renderer
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
	var err error
	v.lines.Spill = func(text []byte) { err = cmp.Or(err, v.show(text)) }
	v.lines.Write(0, p, func(_, _ int64, raw []byte) {
		text := v.text.Text(raw)
		fed := bytes.HasSuffix(raw, []byte{'\n'})
		if fed || len(text) > 0 {
			err = cmp.Or(err, v.show(text))
		}
		if fed {
			v.skip = max(v.skip-1, 0)
		}
	})
	return err
}

func (v *Lines) show(text []byte) error {
	if v.skip > 0 {
		return nil
	}
	return v.print(string(text))
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

// Say shows a message on a line of its own. It shows an incomplete line of the terminal
// first.
func (v *Lines) Say(text string) error {
	v.skip = 0
	rest := v.text.Text(v.lines.Part)
	if v.lines.Begin(0); len(rest) > 0 {
		if err := v.show(rest); err != nil {
			return err
		}
	}
	return v.print("── " + text)
}

// End says that the terminal is no longer shown, because of reason or, if that is nil,
// because the host no longer has it.
func (v *Lines) End(reason error) error {
	if reason != nil {
		return v.Say("can no longer be shown: " + display.Printable(reason.Error(), 300))
	}
	return v.Say("removed from the host")
}
