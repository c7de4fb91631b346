package tui

import (
	"bytes"

	"tether/internal/plain"
	"tether/screen"
)

// widest is how wide lines are shown at most, in columns. Wider ones go on in the next
// row.
const widest = 1000

// colouredLines returns a terminal's output as lines. Each begins and ends without
// colours. ok is false for output that moves the cursor to other rows: it needs the
// terminal's own screen.
func colouredLines(data []byte) (lines []string, ok bool) {
	var l plain.Lines
	ok = true
	l.Write(0, data, func(_, _ int64, raw []byte) { ok = ok && bytes.HasSuffix(raw, []byte{'\n'}) })
	if !ok {
		return nil, false
	}
	s := screen.NewState(widest, previewLines+1)
	_, _ = s.Write(data)
	return s.Coloured(), true
}
