package history

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"tether/internal/clip"
	"tether/internal/plain"
)

// searcher searches units, in one goroutine.
type searcher struct {
	*seeker
	matching
	bulk, around plain.Bulk
	frames       frames
	raw, side    []byte        // texts, before their sequences were removed
	drawn        []plain.Drawn // lines, at indexes from where the present stretch begins in raw
	shown        []byte        // their text
}

// unit finds the hits in a unit: the lines that begin in it.
func (w *searcher) unit(ctx context.Context, u *unit) error {
	at, limit := u.bounds()
	w.raw, w.drawn, w.shown = w.raw[:0], w.drawn[:0], w.shown[:0]
	for i := range u.pieces[u.from:u.to] {
		from := len(w.raw)
		w.raw = w.frames.expand(w.raw, u, u.from+i)
		w.drawn, w.shown = w.h.codec.unpackDrawn(w.drawn, w.shown, w.frames.header, from)
	}
	begin, end := at, limit
	if n := w.rest(u, u.from); n > 0 {
		begin = at + n
	}
	if n := w.rest(u, u.to); n > 0 {
		end = limit + n
		w.raw = append(w.raw, w.side[:n]...)
	}
	base := at
	for _, s := range u.of.spans {
		from, to := s.From, min(s.To, end)
		if from < at {
			from = begin
		}
		if from >= min(to, limit) {
			continue
		}
		for i := range w.drawn {
			w.drawn[i].Start -= int(from - base)
			w.drawn[i].End -= int(from - base)
		}
		base = from
		if err := w.stretch(ctx, u, s, from, w.raw[from-at:to-at]); err != nil {
			return err
		}
	}
	u.hits = u.hits[max(0, len(u.hits)-w.Most):]
	return nil
}

// rest returns how many bytes at the beginning of a piece belong to a line that begins
// before it; side begins with them. It is 0 if none do, or if that line is long: then
// a line begins with the piece.
func (w *searcher) rest(u *unit, i int) int64 {
	if i == 0 || i == len(u.pieces) || !u.pieces[i-1].before(u.pieces[i]) || !u.pieces[i-1].open {
		return 0
	}
	w.side = w.side[:0]
	for k := i; k < i+sidePieces; k++ {
		if k == len(u.pieces) || k > i && !u.pieces[k-1].before(u.pieces[k]) {
			return int64(len(w.side)) // the text ends within the line
		}
		from := len(w.side)
		w.side = w.frames.expand(w.side, u, k)
		if n := bytes.IndexByte(w.side[from:], '\n'); n >= 0 {
			n += from + 1
			if n > sideText {
				return 0
			}
			return int64(n)
		}
		if len(w.side) > sideText {
			return 0
		}
	}
	return 0
}

// stretch finds the hits in a stretch of a unit's text, which begins at an offset and is
// a part of a span.
func (w *searcher) stretch(ctx context.Context, u *unit, s Span, at int64, raw []byte) error {
	text := w.bulk.Text(raw, w.drawn)
	all, err := w.find(ctx, text, w.Most)
	if err != nil || len(all) == 0 {
		return err
	}
	lines := linesIn(text)
	n, before := w.Context, 0
	if n > 0 {
		more := w.before(u, s, at)
		before = len(more)
		lines = append(append(more, lines...), w.after(u, s, at+int64(len(raw)))...)
	}
	line, pos := 0, 0   // of the text: how many lines are before pos
	feeds, from := 0, 0 // of raw
	for _, f := range all {
		line += bytes.Count(text[pos:f.start], []byte{'\n'})
		pos = f.start
		for k := w.bulk.Line(text, f.start); feeds < k; feeds++ {
			from += bytes.IndexByte(raw[from:], '\n') + 1
		}
		i := before + line
		x := Hit{Offset: at + int64(from), Before: shown(lines[max(0, i-n):i]), After: shown(lines[i+1 : min(len(lines), i+1+n)])}
		x.Line, x.Match = excerpt(text[f.start:f.end], f.from, f.to)
		x.Time, x.Run.ID = u.at(x.Offset)
		u.hits = append(u.hits, x)
	}
	return nil
}

// before returns the lines before an offset in the unit, or at its beginning.
func (w *searcher) before(u *unit, s Span, at int64) [][]byte {
	raw := slices.Clone(w.raw[:at-u.pieces[u.from].off])
	i := u.from
	for ; i > 0 && at-int64(len(raw)) > s.From && u.pieces[i-1].before(u.pieces[i]) && len(raw) < sideText && bytes.Count(raw, []byte{'\n'}) <= w.Context; i-- {
		raw = append(w.frames.expand(nil, u, i-1), raw...)
	}
	if n := s.From - (at - int64(len(raw))); n >= 0 {
		raw = raw[n:]
	} else if i > 0 { // it may begin within a line
		raw = raw[bytes.IndexByte(raw, '\n')+1:]
	}
	lines := linesIn(bytes.Clone(w.around.Text(raw, nil)))
	return lines[max(0, len(lines)-w.Context):]
}

// after returns the lines after an offset at the end of the unit or behind.
func (w *searcher) after(u *unit, s Span, at int64) [][]byte {
	var raw []byte
	for i := u.to - 1; i < len(u.pieces) && len(raw) < sideText && bytes.Count(raw, []byte{'\n'}) <= w.Context; i++ {
		p := &u.pieces[i]
		if i > u.to-1 && !u.pieces[i-1].before(*p) {
			break
		}
		if p.end() > at && p.off < s.To {
			text := w.frames.expand(nil, u, i)
			raw = append(raw, text[max(0, at-p.off):min(int64(len(text)), s.To-p.off)]...)
		}
	}
	lines := linesIn(bytes.Clone(w.around.Text(raw, nil)))
	return lines[:min(len(lines), w.Context)]
}

// linesIn returns the lines of a text without blanks at their ends.
func linesIn(text []byte) (all [][]byte) {
	for line := range bytes.Lines(text) {
		all = append(all, bytes.TrimRight(line, " \r\n"))
	}
	return all
}

// shown returns lines as they are shown around a hit.
func shown(lines [][]byte) (all []string) {
	for _, line := range lines {
		text, _ := excerpt(line, 0, 0)
		all = append(all, text)
	}
	return all
}

// excerpt returns a line, or the part of a long one around a match, and the bounds of the
// match in it.
func excerpt(line []byte, from, to int) (string, [2]int) {
	if len(line) <= shownLine {
		return string(line), [2]int{from, to}
	}
	start := max(0, min(from-shownLine/4, len(line)-shownLine))
	for start > 0 && start < from && !utf8.RuneStart(line[start]) {
		start++
	}
	head := ""
	if start > 0 {
		head = "…"
	}
	text := head + clip.Marked(string(line[start:]), shownLine)
	shift := len(head) - start
	return text, [2]int{min(from+shift, len(text)), min(to+shift, len(text))}
}

// at returns by when the text at an offset was printed, and the run that printed it.
func (u *unit) at(off int64) (time.Time, string) {
	p, _ := slices.BinarySearchFunc(u.pieces, off, func(p piece, off int64) int { return cmp.Compare(p.end(), off+1) })
	id := u.of.terminal
	for _, c := range slices.Backward(u.of.commands) {
		if c.From <= off && off < c.To {
			id = c.id
			break
		}
	}
	return u.pieces[min(p, len(u.pieces)-1)].time(), id
}
