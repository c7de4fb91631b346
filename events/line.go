package events

import (
	"bytes"

	"tether/internal/clip"
	"tether/internal/plain"
)

const (
	maxText = 4 << 10 // bytes of a line that are matched
	maxShow = 500     // bytes of a line that are reported
)

// visible returns the text of a line that is matched, with the targets of links, valid
// until the next call.
func visible(r *plain.Renderer, line []byte) []byte {
	return bytes.TrimRight(unfinished(r, line), " ")
}

// unfinished is visible with the blanks before the cursor, as a prompt has them.
func unfinished(r *plain.Renderer, line []byte) []byte {
	r.Links = true
	text := r.Unfinished(line)
	if len(text) > maxText {
		text = []byte(clip.Text(string(text), maxText))
	}
	return text
}

// redrawn reports whether a line has a carriage return after its first n bytes, after
// which it is drawn again.
func redrawn(line []byte, n int64) bool {
	if n >= int64(len(line)) {
		return n > int64(len(line))
	}
	rest := bytes.TrimRight(line[n:], "\r\n")
	return bytes.IndexByte(rest, '\r') >= 0 || len(rest) > 0 && n > 0 && line[n-1] == '\r'
}
