package host

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/channel"
	"tether/internal/jsonspan"
	"tether/screen"
)

// oldest is the screen of a terminal at its oldest text, or behind it: the result of the
// dropped text. It keeps nothing until text is dropped. Guarded by the host's mutex.
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

// oldestPart: this screen may take one part in this many of a terminal's bound if memory
// is short.
const oldestPart = 8

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

// leaveLocked makes the screen process text that was dropped. It returns scratch for the
// next call.
func (t *terminal) leaveLocked(scratch []byte, runs []run) []byte {
	end := t.content.oldest()
	at := end
	for _, r := range runs {
		at -= int64(r.size)
	}
	scratch, leapt := t.leapLocked(scratch, runs, end)
	if leapt {
		return scratch
	}
	return t.takeUpLocked(scratch, runs, at, end)
}

// takeUpLocked makes the screen process text up to the position end. runs is text that
// begins at the position at. The screen may already be beyond the oldest text. It returns
// scratch for the next call.
func (t *terminal) takeUpLocked(scratch []byte, runs []run, at, end int64) []byte {
	o := &t.oldest
	for _, r := range runs {
		from := at
		if at += int64(r.size); at <= o.pos {
			continue
		}
		if o.pos >= end {
			break
		}
		text, err := jsonspan.AppendUnescape(scratch[:0], r.esc)
		if err != nil {
			return scratch // impossible: it was checked on arrival
		}
		scratch = text
		t.takeUpTextLocked(text[o.pos-from : min(int64(len(text)), end-from)])
	}
	return scratch
}

// takeUpTextLocked makes the screen process text, with the changes of the terminal's size
// within it.
func (t *terminal) takeUpTextLocked(text []byte) {
	o, m := &t.oldest, &t.marks
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

// clearOldestLocked resets the screen after the recorded text was cleared.
func (t *terminal) clearOldestLocked() {
	cols, rows := cmp.Or(int(t.state.Cols), defaultCols), cmp.Or(int(t.state.Rows), defaultRows)
	t.oldest = oldest{cols: cols, rows: rows, pos: t.content.end}
}

// oldScreenLocked returns the screen at the oldest position where it is known, and that
// position.
func (t *terminal) oldScreenLocked() (s agenttools.OldScreen, pos int64) {
	o := &t.oldest
	s, pos = agenttools.OldScreen{Cols: o.cols, Rows: o.rows, Exact: !o.unknown}, o.pos
	if o.screen != nil {
		s.Cols, s.Rows = o.screen.Size()
		s.Replay = o.screen.Replay()
		s.Exact = !o.screen.Doubtful() && s.Replay != nil
	}
	if o.gap >= pos && o.gap > 0 {
		s.Gap = t.offsetLocked(o.gap, t.endedBeforeLocked(o.gap))
	}
	if t.readableLocked() > pos {
		s.Exact = false // changes of size before some of the text were dropped
	}
	return s, pos
}

// snapScreenLocked returns the screen for a snapshot with the text from a position on. It
// is nil if the snapshot has all text from the start, at one size.
func (t *terminal) snapScreenLocked(from int64) *ahp.Screen {
	old, pos := t.oldScreenLocked()
	s := &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), After: max(pos-from, 0), Truncated: !old.Exact || old.Gap > 0}
	for _, x := range t.resizesLocked(pos) {
		s.Sizes = append(s.Sizes, [3]int64{x.pos - from, int64(x.resized[0]), int64(x.resized[1])})
	}
	for s.Data == "" && len(s.Sizes) > 0 && s.Sizes[0][0] == 0 { // it was blank
		s.Cols, s.Rows, s.Sizes = s.Sizes[0][1], s.Sizes[0][2], s.Sizes[1:]
	}
	switch {
	case from > pos || !utf8.ValidString(s.Data): // the snapshot has less text than is kept
		return t.unknownScreenLocked()
	case s.Data == "" && s.After == 0 && len(s.Sizes) == 0 && !s.Truncated:
		return nil
	}
	return s
}

// unknownScreenLocked returns a screen that says that it is unknown.
func (t *terminal) unknownScreenLocked() *ahp.Screen {
	return &ahp.Screen{Cols: cmp.Or(t.state.Cols, defaultCols), Rows: cmp.Or(t.state.Rows, defaultRows), Truncated: true}
}

// resizesLocked returns the changes of the terminal's size from a position on.
func (t *terminal) resizesLocked(pos int64) (all []mark) {
	for i, x := range t.marks.list {
		if x.resized != nil && x.pos >= pos && t.marks.first+int64(i) >= t.oldest.from {
			all = append(all, x)
		}
	}
	return all
}

// screenAtLocked returns the screen at a position in the kept text, of at most most
// bytes. The oldest screen advances to that position, so that no text is processed twice,
// however many clients ask.
func (h *Host) screenAtLocked(t *terminal, pos int64, most int) *ahp.Screen {
	var runs []run
	for i := range t.content.parts {
		runs = append(runs, t.content.parts[i].runs...)
	}
	h.scratch = t.takeUpLocked(h.scratch, runs, t.content.oldest(), pos)
	old, at := t.oldScreenLocked()
	if at != pos || len(old.Replay) > most || !utf8.Valid(old.Replay) {
		return t.unknownScreenLocked()
	}
	return &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), Truncated: !old.Exact || old.Gap > 0}
}

// An owner whose log has dropped output that the host lacks sends the screen after that
// output. This screen is not text: it is not part of the content and does not count in
// positions.

// drawn is a screen that an owner has sent.
type drawn struct {
	said   *ahp.Screen
	screen *screen.Screen
}

// newDrawn draws the screen s, without any lock; it returns nil for nil.
func newDrawn(s *ahp.Screen) *drawn {
	if s == nil {
		return nil
	}
	d := &drawn{s.At(0), screen.NewState(int(s.Cols), int(s.Rows))}
	d.screen.Write([]byte(s.Data))
	if s.Truncated {
		d.screen.Doubt()
	}
	return d
}

// drawLocked makes d the screen at the end of the text, for new and present viewers.
func (h *Host) drawLocked(t *terminal, d *drawn) {
	h.endStripLocked(t)
	t.oldest = oldest{cols: int(d.said.Cols), rows: int(d.said.Rows), pos: t.content.end, screen: d.screen, from: t.marks.end()}
	h.noteScreenLocked(t, d.said, t.creator.party)
}

// noteScreenLocked sends the screen behind the text to viewers, except to from, who said
// it.
func (h *Host) noteScreenLocked(t *terminal, at *ahp.Screen, from channel.Party) {
	e := channel.Entry{At: t.content.end, From: from, Past: t.content.base + 1}
	e.Seq = h.envelopes.Next()
	e.Msg = appendNote(t.uri, e.Seq, "", noteMeta{Screen: at})
	t.addLocked(e, nil)
}

// leapLeast is the least length of text, in bytes, for which leapLocked is tried.
const leapLeast = 16 << 10

// leapTails are the lengths of the end of the text, in escaped bytes, that leapLocked
// tries: usually, such an end has rows that fill a screen twice.
var leapTails = [...]int{8 << 10, 32 << 10}

// leapLocked advances the screen over the runs of a flood, which end at the position end.
// It decodes only the end of the text, because the rows before that scroll away. If the
// screen depends on more of the text, ok is false and nothing has changed. It returns
// scratch for the next call.
func (t *terminal) leapLocked(scratch []byte, runs []run, end int64) (_ []byte, ok bool) {
	o := &t.oldest
	if end-o.pos < leapLeast || o.gap > 0 && o.pos <= o.gap && o.gap < end || !rowsFrom(runs, end-o.pos) {
		return scratch, false
	}
	styled := slices.ContainsFunc(runs, func(r run) bool { return r.styled })
	for _, x := range t.marks.list {
		if x.resized != nil && x.pos >= o.pos && x.pos < end {
			return scratch, false
		}
	}
	for _, n := range leapTails {
		if scratch = decodeTail(scratch[:0], runs, n); len(scratch) > 0 && int64(len(scratch)) <= end-o.pos && o.begun().Leap(scratch, styled) {
			o.pos = end
			return scratch, true
		}
	}
	return scratch, false
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
