package output

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"tether/agenttools"
	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/record"
	"tether/screen"
)

// stretch is text that the screen processes, from the position at up to end.
type stretch struct {
	runs    []run
	at, end int64
	sizes   []mark // changes of the terminal's size within it
}

// show makes b the screen, which does not depend on earlier text and changes of size.
func (l *Log) show(b record.Backdrop) {
	start := l.content.oldest()
	l.backdrop, l.dropped, l.sized = b, stretch{at: start, end: start}, l.marks.End()
	l.shown++
}

// blank makes the screen at the end of the text a blank one.
func (l *Log) blank() {
	cols, rows := l.size()
	l.show(record.NewBackdrop(cols, rows, l.content.end, 0))
}

// leave takes text that was dropped. The screen processes it later; see Settle.
func (l *Log) leave(runs []run) {
	d := &l.dropped
	d.runs = append(d.runs, runs...)
	start := l.content.oldest()
	d.sizes = append(d.sizes, l.resizes(d.end, start)...)
	d.end = start
}

// Pending reports whether the screen has dropped text to process.
func (l *Log) Pending() bool { return len(l.dropped.runs) > 0 }

// resizes returns the changes of the terminal's size between two positions.
func (l *Log) resizes(from, to int64) (found []mark) {
	for n := max(l.marks.Search(from), l.sized); n < l.marks.End() && l.marks.At(n).pos < to; n++ {
		if x := l.marks.At(n); x.resized != nil {
			found = append(found, *x)
		}
	}
	return found
}

// Behind is the screen behind the text up to a position. It is taken with the lock of the
// log's owner. What it shows is drawn when it is first asked for, without that lock: that
// may take as long as a terminal needs to show a megabyte. Not safe for concurrent use.
type Behind struct {
	Pos int64 // of the screen

	of      record.Backdrop
	text    []stretch   // to be processed
	missing int64       // offset of the newest text that is missing, if that is behind Pos; 0: none
	exact   bool        // all changes of size from Pos on are known
	later   []mark      // they
	unknown *ahp.Screen // what is shown instead of a screen that cannot be used
	shown   int64       // Log.shown when it was taken
}

// Behind returns the screen at a position in the kept text, or at the first later one
// where it is known.
func (l *Log) Behind(pos int64) *Behind {
	b := &Behind{Pos: max(pos, l.backdrop.At()), of: l.backdrop, unknown: l.UnknownScreen(), shown: l.shown}
	d := l.dropped
	d.runs = d.runs[:len(d.runs):len(d.runs)]
	b.text = append(b.text, d)
	if b.Pos > max(d.end, l.backdrop.At()) {
		kept := stretch{at: d.end, end: b.Pos, sizes: l.resizes(d.end, b.Pos)}
		for i := range l.content.parts {
			kept.runs = append(kept.runs, l.content.parts[i].runs...)
		}
		b.text = append(b.text, kept)
	}
	if gap := b.of.Gap(); gap >= b.Pos && gap > 0 {
		b.missing = l.OffsetOf(gap)
	}
	b.exact, b.later = l.marks.from <= b.Pos, l.resizes(b.Pos, math.MaxInt64)
	return b
}

// Left returns how much text the screen has to process.
func (b *Behind) Left() int64 { return max(0, b.Pos-b.of.At()) }

// draw makes the screen process its text.
func (b *Behind) draw() {
	if b.Left() > 0 {
		b.of = b.of.Clone()
	}
	for _, s := range b.text {
		if s.end > b.of.At() && !s.leap(&b.of) {
			s.takeUp(&b.of)
		}
	}
	b.text = nil
	b.of.Cost() // not with the lock of the log's owner
}

// Show returns the screen.
func (b *Behind) Show() agenttools.OldScreen {
	b.draw()
	s := b.of.Show()
	return agenttools.OldScreen{Cols: s.Cols, Rows: s.Rows, Replay: s.Replay, Exact: s.Exact && b.exact, Gap: b.missing}
}

// Snapshot returns the screen for a snapshot with the text from a position on. It is nil
// if the snapshot has all text from the start, at one size.
func (b *Behind) Snapshot(from int64) *ahp.Screen {
	s := b.message(max(b.Pos-from, 0))
	for _, x := range b.later {
		s.Sizes = append(s.Sizes, [3]int64{x.pos - from, int64(x.resized[0]), int64(x.resized[1])})
	}
	for s.Data == "" && len(s.Sizes) > 0 && s.Sizes[0][0] == 0 { // it was blank
		s.Cols, s.Rows, s.Sizes = s.Sizes[0][1], s.Sizes[0][2], s.Sizes[1:]
	}
	switch {
	case from > b.Pos || !utf8.ValidString(s.Data): // the snapshot has less text than is kept
		return b.unknown
	case s.Data == "" && s.After == 0 && len(s.Sizes) == 0 && !s.Truncated:
		return nil
	}
	return s
}

// At returns the screen for a message with the text from a position on, at most about
// most bytes. It is unknown if that position is before the screen's.
func (b *Behind) At(pos int64, most int) *ahp.Screen {
	s := b.message(0)
	if b.Pos != pos || len(s.Data) > most || !utf8.ValidString(s.Data) {
		return b.unknown
	}
	return s
}

func (b *Behind) message(after int64) *ahp.Screen {
	old := b.Show()
	return &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), After: after, Truncated: !old.Exact || old.Gap > 0}
}

// UnknownScreen returns a screen that says that it is unknown.
func (l *Log) UnknownScreen() *ahp.Screen {
	cols, rows := l.size()
	return &ahp.Screen{Cols: int64(cols), Rows: int64(rows), Truncated: true}
}

// Draw draws the screen that take returns, unless that is nil, and keeps it, so that no
// text is processed twice: others that draw one of this log wait meanwhile. lock is that
// of the log's owner, which the caller does not hold. It is held for take, and for kept,
// which follows when the screen has taken the place of the one before and may need more
// memory; not while the screen is drawn.
func (l *Log) Draw(lock sync.Locker, take func() *Behind, kept func()) {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	lock.Lock()
	b := take()
	lock.Unlock()
	if b == nil {
		return
	}
	b.draw()
	lock.Lock()
	defer lock.Unlock()
	l.keep(b)
	kept()
}

// keep makes the screen that was drawn the oldest one, unless it was replaced meanwhile.
func (l *Log) keep(b *Behind) {
	if l.shown != b.shown {
		return
	}
	l.backdrop.Follow(&b.of)
	d := &l.dropped
	for len(d.runs) > 0 && d.at+int64(d.runs[0].size) <= l.backdrop.At() {
		d.at += int64(d.runs[0].size)
		d.runs = d.runs[1:]
	}
	if len(d.runs) == 0 {
		d.runs = nil
	}
	for len(d.sizes) > 0 && d.sizes[0].pos < d.at {
		d.sizes = d.sizes[1:]
	}
}

// Settle makes the screen process all text that was dropped. lock and kept are as in
// Draw.
func (l *Log) Settle(lock sync.Locker, kept func()) {
	l.Draw(lock, func() *Behind {
		if !l.Pending() {
			return nil
		}
		return l.Behind(l.content.oldest())
	}, kept)
}

// decoded are buffers for one decoded run each, at most MaxOutput bytes of text.
var decoded = sync.Pool{New: func() any { return new([]byte) }}

// takeUp makes b process s. It may already be beyond the beginning of s.
func (s *stretch) takeUp(b *record.Backdrop) {
	scratch := decoded.Get().(*[]byte)
	defer decoded.Put(scratch)
	at := s.at
	for _, r := range s.runs {
		from := at
		if at += int64(r.size); at <= b.At() {
			continue
		}
		if b.At() >= s.end {
			break
		}
		text, err := jsonspan.AppendUnescape((*scratch)[:0], r.esc)
		if err != nil {
			return // impossible: it was checked on arrival
		}
		*scratch = text
		s.takeUpText(b, text[b.At()-from:min(int64(len(text)), s.end-from)])
	}
}

// takeUpText makes b process text, with the changes of the terminal's size within it.
func (s *stretch) takeUpText(b *record.Backdrop, text []byte) {
	for len(text) > 0 {
		next := b.At() + int64(len(text))
		for i := range s.sizes {
			x := &s.sizes[i]
			if x.pos >= next {
				break
			}
			switch {
			case x.pos == b.At():
				b.Resize(x.resized[0], x.resized[1])
			case x.pos > b.At():
				next = x.pos
			}
		}
		n := next - b.At()
		b.Leave(text[:n], next)
		text = text[n:]
	}
}

// leapTails are the lengths of the end of the text, in escaped bytes, that leap tries:
// usually, such an end has rows that fill a screen twice.
var leapTails = [...]int{8 << 10, 32 << 10}

// leap advances b over s if that is a flood. It decodes only the end of the text, because
// the rows before that scroll away. It returns false if the screen depends on more of the
// text; then nothing has changed.
func (s *stretch) leap(b *record.Backdrop) bool {
	size := int64(0)
	for _, r := range s.runs {
		size += int64(r.size)
	}
	if s.at+size != s.end || !b.Leaps(s.end) || !rowsFrom(s.runs, s.end-b.At()) {
		return false
	}
	if slices.ContainsFunc(s.sizes, func(x mark) bool { return x.pos >= b.At() }) {
		return false
	}
	styled := slices.ContainsFunc(s.runs, func(r run) bool { return r.styled })
	scratch := decoded.Get().(*[]byte)
	defer decoded.Put(scratch)
	for _, n := range leapTails {
		*scratch = decodeTail((*scratch)[:0], s.runs, n)
		if b.Leap(*scratch, styled, s.end) {
			return true
		}
	}
	return false
}

// rowsFrom reports whether the last n bytes of text only print rows and style them.
func rowsFrom(runs []run, n int64) bool {
	for i := len(runs) - 1; i >= 0 && n > 0; i-- {
		n -= int64(runs[i].size)
		if !runs[i].rows || i+1 < len(runs) && !jsonspan.Joins(runs[i].esc, runs[i+1].esc) {
			return false
		}
	}
	return n <= 0
}

// decodeTail appends the decoded end of runs: at most n escaped bytes, perhaps none.
func decodeTail(dst []byte, runs []run, n int) []byte {
	first := len(runs) - 1
	for first > 0 && len(runs[first].esc) < n {
		n -= len(runs[first].esc)
		first--
	}
	dst, _ = jsonspan.AppendUnescape(dst, jsonspan.Tail(runs[first].esc, n)) // it was checked on arrival
	for _, r := range runs[first+1:] {
		dst, _ = jsonspan.AppendUnescape(dst, r.esc)
	}
	return dst
}

// An owner whose log has dropped output that the host lacks sends the screen after that
// output. This screen is not text: it is not part of the content and does not count in
// positions.

// Drawn is a screen that an owner has sent.
type Drawn struct {
	said   *ahp.Screen
	screen *screen.Screen
}

// Draw draws the screen s; it returns nil for nil. It is slow, so call it without a lock.
func Draw(s *ahp.Screen) *Drawn {
	if s == nil {
		return nil
	}
	d := &Drawn{s.At(0), screen.NewState(int(s.Cols), int(s.Rows))}
	d.screen.Write([]byte(s.Data))
	if s.Truncated {
		d.screen.Doubt()
	}
	return d
}

// at returns d as the screen at a position.
func (d *Drawn) at(pos int64) (b record.Backdrop) {
	b.Draw(d.screen, pos)
	return b
}

// draw makes d the screen at the end of the text, for new and present viewers.
func (l *Log) draw(d *Drawn) {
	l.endStrip()
	l.show(d.at(l.content.end))
	l.to.Note(Note{Screen: d.said}.Action(""), l.content.end, true)
}
