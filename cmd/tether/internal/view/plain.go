package view

import (
	"bytes"
	"io"

	"tether/internal/plain"
)

// Plain writes a terminal's output as plain text with one line feed per line, see package
// plain. Pieces of any size give the same result, unless Live is set. Out must be set.
type Plain struct {
	Out  io.Writer
	Live bool // write a line before it is complete; if it is drawn again, it is another line

	lines plain.Lines
	text  plain.Renderer
	shown []byte // what was written of the line
	begun bool   // the line has begun, perhaps before shown
	err   error
}

// Write implements io.Writer. It fails only if Out fails.
func (t *Plain) Write(p []byte) (int, error) {
	t.text.Links = !t.Live // later text could belong to a link whose target was written
	t.lines.Spill = func(text []byte) {
		t.show(text)
		t.shown = t.shown[:0]
	}
	t.lines.Write(0, p, func(_, _ int64, raw []byte) { t.end(t.text.Text(raw), bytes.HasSuffix(raw, []byte{'\n'})) })
	if t.Live && !bytes.HasSuffix(t.lines.Part, []byte{'\r'}) {
		t.show(t.text.Unfinished(t.lines.Part))
	}
	return len(p), t.err
}

// Close writes the last line if that was not ended. It does not close Out.
func (t *Plain) Close() error {
	t.end(t.text.Unfinished(t.lines.Part), false)
	return t.err
}

// end ends a line. One without text that no line feed has ended is left out.
func (t *Plain) end(text []byte, fed bool) {
	if !bytes.Equal(text, bytes.TrimRight(t.shown, " ")) {
		t.show(text)
	}
	if fed || t.begun {
		t.write([]byte{'\n'})
	}
	t.shown, t.begun = t.shown[:0], false
}

// show writes what text has more than was shown of the line.
func (t *Plain) show(text []byte) {
	more, same := bytes.CutPrefix(text, t.shown)
	if !same {
		t.write([]byte{'\n'})
	}
	t.write(more)
	t.shown = append(t.shown[:0], text...)
	t.begun = t.begun || len(text) > 0
}

func (t *Plain) write(p []byte) {
	if t.err == nil && len(p) > 0 {
		_, t.err = t.Out.Write(p)
	}
}
