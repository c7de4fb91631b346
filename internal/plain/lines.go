// Package plain turns a terminal's output into lines of plain text, as a person sees
// them: an overwritten line, such as a progress bar, has its last text. It knows one row.
// A newline ends a line, and so does a sequence that moves the cursor to another row.
// Package screen is for callers that need all rows.
//
//	var l plain.Lines
//	var r plain.Renderer
//	l.Write(0, output, func(_, _ int64, raw []byte) { fmt.Printf("%s\n", r.Text(raw)) })
package plain

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"tether/internal/escape"
)

// MaxRaw bounds the kept output of a line, in bytes. Output that exceeds it is replaced
// by output that shows the same text.
const MaxRaw = 16 << 10

// Lines divides output into lines. The bounds and the text of lines follow from the bytes
// alone, not from the pieces in which they come. It is not safe for concurrent use.
type Lines struct {
	// Start is the offset of the unfinished line, and Part its output.
	Start int64
	Part  []byte
	// Cut says that Part is not the output itself, but shows the same: see MaxRaw.
	Cut bool
	// Row is the row of the line for which Write calls, counted from anywhere. A move to
	// a row of the screen leads far away from all rows before.
	Row int
	// Spill, if set, gets the text of a line that has become too long. The line goes on
	// with the text after that. Without it, the rest of such a line is dropped.
	Spill func(text []byte)

	dropping bool
	scan     escape.Scanner
	saved    *int // the row where the cursor was saved
	render   Renderer
}

// Begin starts a new line at an offset.
func (l *Lines) Begin(at int64) {
	*l = Lines{Start: at, Part: l.Part[:0], Row: l.Row + 1, Spill: l.Spill, render: l.render}
}

// Line gets a line's bounds and its output including its end, which is valid until it
// returns.
type Line func(start, end int64, raw []byte)

// Write takes output that begins at an offset. It calls line for each line that ends in
// p.
func (l *Lines) Write(at int64, p []byte, line Line) {
	l.Runs(at, p, func(start, end int64, raw []byte) {
		l.Row--
		Each(start, end, raw, func(start, end int64, raw []byte) {
			l.Row++
			line(start, end, raw)
		})
	})
}

// Runs is Write for whole runs of lines, which [Each] divides.
func (l *Lines) Runs(at int64, p []byte, run Line) {
	if len(l.Part) == 0 && !l.dropping {
		l.Start = at
	}
	from := 0 // of what has not ended in p
	finish := func(end, down int) {
		raw := p[from:end]
		if len(l.Part) > 0 || l.dropping {
			l.keep(raw)
			raw = l.Part
		}
		run(l.Start, at+int64(end), raw)
		from = end
		l.Start, l.Part, l.dropping, l.Cut = at+int64(end), l.Part[:0], false, false
		l.Row += down
	}
	for i := 0; i < len(p); {
		kind, n := l.scan.Token(p[i:])
		first := bytes.IndexByte(p[i:i+n], '\n') + 1
		switch {
		case kind != escape.Text:
			if down, ends := l.ends(kind, p[i+n-1]); ends {
				finish(i+n, down)
			}
		case first > 0:
			finish(i+first, 1)
			if last := bytes.LastIndexByte(p[i:i+n], '\n') + 1; last > first {
				finish(i+last, 1)
			}
		}
		i += n
	}
	l.keep(p[from:])
}

// Each calls line for each line of a run.
func Each(start, end int64, run []byte, line Line) {
	if bytes.IndexByte(run, 0x1b) >= 0 || int64(len(run)) != end-start {
		line(start, end, run) // only lines that are nothing but text come together
		return
	}
	for raw := range bytes.Lines(run) {
		line(start, start+int64(len(raw)), raw)
		start += int64(len(raw))
	}
}

// farAway is more rows than a screen has.
const farAway = 1 << 16

// ends reports whether a sequence ends the line, and by how many rows it moves the cursor
// down. It notes where the cursor is saved.
func (l *Lines) ends(kind escape.Kind, final byte) (down int, ends bool) {
	params := l.scan.Params()
	n, err := strconv.Atoi(string(params))
	if n = min(max(n, 1), farAway); err != nil {
		n = 1
	}
	switch ends = moves(kind, final, params); {
	case !ends && len(params) == 0 && (kind == escape.Function && final == '7' || kind == escape.Control && final == 's'):
		row := l.Row
		l.saved = &row
	case !ends && len(params) == 0 && (kind == escape.Function && final == '8' || kind == escape.Control && final == 'u'):
		if l.saved == nil {
			return farAway, true
		}
		return *l.saved - l.Row, *l.saved != l.Row
	case !ends:
	case kind == escape.Function:
		return map[byte]int{'D': 1, 'E': 1, 'M': -1, 'c': farAway}[final], true
	case final == 'A' || final == 'F':
		return -n, true
	case final == 'B' || final == 'E':
		return n, true
	case final == 'H' || final == 'f' || final == 'd':
		return farAway, true
	}
	return 0, ends
}

// moves reports whether a sequence moves the cursor to another row, or erases other rows.
// params are those of [escape.Scanner.Params].
func moves(kind escape.Kind, final byte, params []byte) bool {
	switch {
	case kind == escape.Function:
		return len(params) == 0 && strings.IndexByte("DEMc", final) >= 0
	case kind != escape.Control:
		return false
	case final == 'h' || final == 'l': // the alternate screen
		return string(params) == "?1049" || string(params) == "?1047" || string(params) == "?47"
	case final == 'J': // 0 erases the rows below, which are empty here
		return len(params) > 0 && string(params) != "0"
	}
	return strings.IndexByte("ABEFHLMSTdf", final) >= 0 && len(bytes.Trim(params, "0123456789:;")) == 0
}

// keep appends output to the unfinished line.
func (l *Lines) keep(p []byte) {
	for len(p) > 0 && !l.dropping {
		n := min(len(p), MaxRaw-len(l.Part))
		l.Part = append(l.Part, p[:n]...)
		if p = p[n:]; len(l.Part) == MaxRaw {
			l.compact()
		}
	}
}

// compact makes room in Part.
func (l *Lines) compact() {
	text, col, rest := l.render.state(l.Part)
	switch {
	case len(text) < MaxRaw/2:
		l.Part = fmt.Appendf(append(l.Part[:0], text...), "\x1b[%dG", col+1)
	case l.Spill != nil:
		l.Spill([]byte(text))
		l.Part = l.Part[:0]
	default:
		l.dropping = true
		return
	}
	l.Part, l.Cut = append(l.Part, rest...), true
}
