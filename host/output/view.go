package output

import (
	"math"
	"unicode/utf8"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// View is recorded text as of one moment. It may be read while the log changes.
type View struct {
	From  int64 // position of the first byte
	parts []part
	sizes []mark // changes of the terminal's size from From on
}

// View returns the newest text, at most about most bytes, from the start of a line.
// Without the text before the position since, the beginning of a command that began
// before it is left out, too.
func (l *Log) View(most int, since int64) View {
	parts, from := l.content.viewSince(most, since)
	return View{from, parts, l.resizes(from, math.MaxInt64)}
}

// Size returns about how long the encoded content will be, in bytes.
func (v *View) Size() (n int) {
	for i := range v.parts {
		n += 128
		for _, r := range v.parts[i].runs {
			n += len(r.esc)
		}
	}
	return n
}

// Append writes the content of a terminal state. Recorded text is copied without being
// decoded.
func (v *View) Append(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range v.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.parts[i].append(dst)
	}
	return append(dst, ']')
}

// AppendText writes the text alone.
func (v *View) AppendText(dst []byte) []byte {
	for i := range v.parts {
		for _, r := range v.parts[i].runs {
			if more, err := jsonspan.AppendUnescape(dst, r.esc); err == nil { // it was checked when it came in
				dst = more
			}
		}
	}
	return dst
}

// Walk passes recorded text on from a position, with the commands and changes of size
// within it.
type Walk struct {
	Pos  int64            // of the next text; when Text is called, behind the text
	Act  func(ahp.Action) // takes an action
	Text func([]byte)     // takes text as a JSON string
	// Room says before each run how many of its bytes of JSON may follow; less than all
	// ends the walk. nil: all.
	Room func(n int) int

	sizes []mark
}

// Walk passes on the text from w.Pos on, and returns false if there was no room for all
// of it.
func (v *View) Walk(w *Walk) bool {
	w.sizes = v.sizes
	for len(w.sizes) > 0 && w.sizes[0].pos < w.Pos {
		w.sizes = w.sizes[1:]
	}
	at := v.From
	for i := range v.parts {
		p := &v.parts[i]
		if !w.part(p, at) {
			return false
		}
		at += int64(p.size)
	}
	return true
}

// Sizes passes on the changes of size after all text.
func (w *Walk) Sizes() {
	for len(w.sizes) > 0 {
		w.resize()
	}
}

// part passes on a part whose text begins at a position.
func (w *Walk) part(p *part, at int64) bool {
	if at+int64(p.size) < w.Pos {
		return true
	}
	c := p.command
	if c != nil && at >= w.Pos {
		w.Act(ahp.TerminalCommandExecuted{CommandID: c.id, CommandLine: c.line, Timestamp: c.timestamp, Meta: ahp.NewCommandMeta(c.verified)})
	}
	for _, r := range p.runs {
		next := at + int64(r.size)
		if next > w.Pos && !w.run(r, at) {
			return false
		}
		at = next
	}
	if c != nil && c.complete {
		w.Act(ahp.TerminalCommandFinished{CommandID: c.id, ExitCode: c.exitCode, DurationMs: c.duration})
	}
	return true
}

// run passes on a run whose text begins at a position.
func (w *Walk) run(r run, at int64) bool {
	skip, _ := jsonspan.Skip(r.esc, int(w.Pos-at))
	w.Pos = max(w.Pos, at)
	esc, size := r.esc[skip:], int(at+int64(r.size)-w.Pos)
	room := len(esc)
	if w.Room != nil {
		room = w.Room(len(esc))
	}
	if room < len(esc) {
		end, n := escapedPrefix(esc, room/maxEscape)
		w.text(esc[:end], n)
		return false
	}
	w.text(esc, size)
	w.Pos = at + int64(r.size)
	return true
}

// maxEscape is the greatest number of bytes in JSON for one byte of text.
const maxEscape = 6

// text passes on text, with the changes of size within it.
func (w *Walk) text(esc []byte, size int) {
	for len(esc) > 0 {
		at, n := len(esc), size
		for len(w.sizes) > 0 && w.sizes[0].pos < w.Pos+int64(size) {
			next := w.sizes[0]
			if next.pos > w.Pos {
				at, n = jsonspan.Skip(esc, int(next.pos-w.Pos))
				break
			}
			w.resize()
		}
		quoted := make([]byte, 0, at+2)
		quoted = append(append(append(quoted, '"'), esc[:at]...), '"')
		w.Pos += int64(n)
		w.Text(quoted)
		esc, size = esc[at:], size-n
	}
}

// resize passes on the next change of size.
func (w *Walk) resize() {
	w.Act(ahp.TerminalResized{Cols: int64(w.sizes[0].resized[0]), Rows: int64(w.sizes[0].resized[1])})
	w.sizes = w.sizes[1:]
}

// escapedPrefix finds the last place between two characters of checked escaped text with
// at most n decoded bytes in front of it. It returns the same as jsonspan.Skip.
func escapedPrefix(esc []byte, n int) (at, size int) {
	at, size = jsonspan.Skip(esc, n-(utf8.UTFMax-1))
	for at < len(esc) {
		w, s := jsonspan.Skip(esc[at:], 1)
		if size+s > n {
			break
		}
		at, size = at+w, size+s
	}
	return at, size
}
