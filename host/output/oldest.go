package output

import (
	"slices"
	"sync"
	"unicode/utf8"

	"tether/agenttools"
	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/screen"
)

// oldest is the screen of a terminal at its oldest text, or behind it: the result of the
// dropped text. It keeps nothing until text is dropped.
type oldest struct {
	cols, rows int            // before the first text
	pos        int64          // of the screen, in the stream of all text; never before the oldest text that is kept
	screen     *screen.Screen // nil: blank, of that size
	unknown    bool           // it was not blank
	gap        int64          // position of the newest text that is missing; 0: none
	from       int64          // number of the first mark that the screen has not processed
}

// begun returns the screen, and makes it if there is none.
func (o *oldest) begun() *screen.Screen {
	if o.screen == nil {
		if o.screen = screen.NewState(o.cols, o.rows); o.unknown {
			o.screen.Doubt()
		}
	}
	return o.screen
}

// lose drops the screen: its contents are unknown from now on.
func (o *oldest) lose() {
	if o.screen != nil {
		o.cols, o.rows = o.screen.Size()
	}
	o.screen, o.unknown = nil, true
}

// cost returns the memory that it takes, in bytes.
func (o *oldest) cost() int {
	if o.screen == nil {
		return 0
	}
	return o.screen.Cost()
}

// decoded are buffers for one decoded run each, at most MaxOutput bytes of text.
var decoded = sync.Pool{New: func() any { return new([]byte) }}

// leave makes the screen process text that was dropped.
func (l *Log) leave(runs []run) {
	end := l.content.oldest()
	at := end
	for _, r := range runs {
		at -= int64(r.size)
	}
	if !l.leap(runs, end) {
		l.takeUp(runs, at, end)
	}
}

// takeUp makes the screen process text up to the position end. runs is text that begins
// at the position at. The screen may already be beyond the oldest text.
func (l *Log) takeUp(runs []run, at, end int64) {
	o := &l.oldest
	scratch := decoded.Get().(*[]byte)
	defer decoded.Put(scratch)
	for _, r := range runs {
		from := at
		if at += int64(r.size); at <= o.pos {
			continue
		}
		if o.pos >= end {
			break
		}
		text, err := jsonspan.AppendUnescape((*scratch)[:0], r.esc)
		if err != nil {
			return // impossible: it was checked on arrival
		}
		*scratch = text
		l.takeUpText(text[o.pos-from : min(int64(len(text)), end-from)])
	}
}

// takeUpText makes the screen process text, with the changes of the terminal's size
// within it.
func (l *Log) takeUpText(text []byte) {
	o, m := &l.oldest, &l.marks
	for len(text) > 0 {
		next := o.pos + int64(len(text))
		at := o.begun()
		for i := range m.list {
			x := &m.list[i]
			if x.pos >= next {
				break
			}
			switch {
			case x.resized == nil || m.first+int64(i) < o.from:
			case x.pos == o.pos:
				at.Resize(x.resized[0], x.resized[1])
			case x.pos > o.pos:
				next = x.pos
			}
		}
		if o.gap > 0 && o.pos <= o.gap && o.gap < next {
			at.Doubt()
		}
		n := next - o.pos
		at.Advance(text[:n])
		text, o.pos = text[n:], next
	}
}

// blank makes the screen at the end of the text a blank one.
func (l *Log) blank() {
	cols, rows := l.size()
	l.oldest = oldest{cols: cols, rows: rows, pos: l.content.end}
}

// OldScreen returns the screen at the oldest position where it is known, and that
// position.
func (l *Log) OldScreen() (s agenttools.OldScreen, pos int64) {
	o := &l.oldest
	s, pos = agenttools.OldScreen{Cols: o.cols, Rows: o.rows, Exact: !o.unknown}, o.pos
	if o.screen != nil {
		s.Cols, s.Rows = o.screen.Size()
		s.Replay = o.screen.Replay()
		s.Exact = !o.screen.Doubtful() && s.Replay != nil
	}
	if o.gap >= pos && o.gap > 0 {
		s.Gap = l.OffsetOf(o.gap)
	}
	if l.readable() > pos {
		s.Exact = false // changes of size before some of the text were dropped
	}
	return s, pos
}

// Screen returns the screen for a snapshot with the text from a position on. It is nil if
// the snapshot has all text from the start, at one size.
func (l *Log) Screen(from int64) *ahp.Screen {
	old, pos := l.OldScreen()
	s := &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), After: max(pos-from, 0), Truncated: !old.Exact || old.Gap > 0}
	for _, x := range l.resizes(pos) {
		s.Sizes = append(s.Sizes, [3]int64{x.pos - from, int64(x.resized[0]), int64(x.resized[1])})
	}
	for s.Data == "" && len(s.Sizes) > 0 && s.Sizes[0][0] == 0 { // it was blank
		s.Cols, s.Rows, s.Sizes = s.Sizes[0][1], s.Sizes[0][2], s.Sizes[1:]
	}
	switch {
	case from > pos || !utf8.ValidString(s.Data): // the snapshot has less text than is kept
		return l.UnknownScreen()
	case s.Data == "" && s.After == 0 && len(s.Sizes) == 0 && !s.Truncated:
		return nil
	}
	return s
}

// UnknownScreen returns a screen that says that it is unknown.
func (l *Log) UnknownScreen() *ahp.Screen {
	cols, rows := l.size()
	return &ahp.Screen{Cols: int64(cols), Rows: int64(rows), Truncated: true}
}

// resizes returns the changes of the terminal's size from a position on.
func (l *Log) resizes(pos int64) (all []mark) {
	for i, x := range l.marks.list {
		if x.resized != nil && x.pos >= pos && l.marks.first+int64(i) >= l.oldest.from {
			all = append(all, x)
		}
	}
	return all
}

// ScreenAt returns the screen at a position in the kept text, of at most most bytes. The
// oldest screen advances to that position, so that no text is processed twice, however
// many clients ask.
func (l *Log) ScreenAt(pos int64, most int) *ahp.Screen {
	var runs []run
	for i := range l.content.parts {
		runs = append(runs, l.content.parts[i].runs...)
	}
	l.takeUp(runs, l.content.oldest(), pos)
	old, at := l.OldScreen()
	if at != pos || len(old.Replay) > most || !utf8.Valid(old.Replay) {
		return l.UnknownScreen()
	}
	return &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), Truncated: !old.Exact || old.Gap > 0}
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

// draw makes d the screen at the end of the text, for new and present viewers.
func (l *Log) draw(d *Drawn) {
	l.endStrip()
	l.oldest = oldest{cols: int(d.said.Cols), rows: int(d.said.Rows), pos: l.content.end, screen: d.screen, from: l.marks.end()}
	l.to.Note(Note{Screen: d.said}.Action(""), l.content.end, true)
}

// leapLeast is the least length of text, in bytes, for which leap is tried.
const leapLeast = 16 << 10

// leapTails are the lengths of the end of the text, in escaped bytes, that leap
// tries: usually, such an end has rows that fill a screen twice.
var leapTails = [...]int{8 << 10, 32 << 10}

// leap advances the screen over the runs of a flood, which end at the position end. It
// decodes only the end of the text, because the rows before that scroll away. It returns
// false if the screen depends on more of the text; then nothing has changed.
func (l *Log) leap(runs []run, end int64) bool {
	o := &l.oldest
	if end-o.pos < leapLeast || o.gap > 0 && o.pos <= o.gap && o.gap < end || !rowsFrom(runs, end-o.pos) {
		return false
	}
	styled := slices.ContainsFunc(runs, func(r run) bool { return r.styled })
	for _, x := range l.marks.list {
		if x.resized != nil && x.pos >= o.pos && x.pos < end {
			return false
		}
	}
	scratch := decoded.Get().(*[]byte)
	defer decoded.Put(scratch)
	for _, n := range leapTails {
		*scratch = decodeTail((*scratch)[:0], runs, n)
		if len(*scratch) > 0 && int64(len(*scratch)) <= end-o.pos && o.begun().Leap(*scratch, styled) {
			o.pos = end
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
