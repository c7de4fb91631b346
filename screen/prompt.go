package screen

import (
	"bytes"
	"strings"
)

// BeforeCursor returns the text before the cursor on its line, without blanks at its ends, after the end of an output was printed on a
// terminal of that size. It is exact where the tail begins with a line.
func BeforeCursor(tail []byte, cols, rows int) string {
	s := NewState(cols, rows)
	_, _ = s.Write(bytes.Repeat([]byte{'\n'}, rows)) // room for lines that scroll up from the last one
	_, _ = s.Write(tail)
	x, y := s.Cursor()
	for line := range strings.Lines(s.Text()) {
		if y--; y >= 0 {
			continue
		}
		text := []rune(strings.TrimSuffix(line, "\n"))
		return strings.TrimSpace(string(text[:min(x, len(text))]))
	}
	return ""
}
