package output

import "tether/record"

// The offsets that readers use are the owner's: bytes of the text that it sends, from the
// terminal's start, plus the number of commands that have ended before. So they mean the
// same after a restart of the host, which then gets the text again. The text that the
// host records differs a little from what the owner sends: it has additional lines that
// report gaps, and lacks shells' marks. This file maps between the two.

// textOffsets maps positions in the recorded text to offsets in the owner's text. Neither
// goes back. In the zero value they are equal.
type textOffsets struct {
	steps record.Marks[offsetStep]
	base  int64 // how far offsets are ahead of positions before the first step
}

// offsetStep is a position at which the difference between offsets and positions changes.
type offsetStep struct {
	pos, ahead int64
	missing    int64 // bytes that the owner has not sent before it
}

// Offset returns the step's position.
func (s offsetStep) Offset() int64 { return s.pos }

// maxSteps bounds the steps of a terminal. Beyond it the oldest steps are dropped, and
// positions before them get inexact offsets.
const maxSteps = 1024

// step records the offset of the text at a position, and how many bytes are missing right
// before it.
func (o *textOffsets) step(pos, off, missing int64) {
	ahead, end := off-pos, o.steps.End()
	if ahead == o.ahead(end) && missing == 0 {
		return
	}
	if o.steps.Len() > 0 {
		if last := o.steps.At(end - 1); last.pos == pos {
			last.ahead, last.missing = ahead, last.missing+missing
			return
		}
	}
	if o.steps.Len() >= maxSteps {
		o.drop(o.steps.First() + maxSteps/4)
	}
	o.steps.Add(offsetStep{pos, ahead, missing})
}

// ahead returns how far offsets are ahead of positions before step number n.
func (o *textOffsets) ahead(n int64) int64 {
	if n > o.steps.First() {
		return o.steps.At(n - 1).ahead
	}
	return o.base
}

// piece returns how far offsets are ahead from a position on, and the position where that
// ends, -1 if nowhere yet. missing is the number of bytes that are missing right before
// the position.
func (o *textOffsets) piece(pos int64) (ahead, end, missing int64) {
	n := o.steps.Search(pos + 1)
	ahead, end = o.ahead(n), -1
	if n > o.steps.First() {
		if last := o.steps.At(n - 1); last.pos == pos {
			missing = last.missing
		}
	}
	if n < o.steps.End() {
		end = o.steps.At(n).pos
	}
	return ahead, end, missing
}

// at returns the offset of a position.
func (o *textOffsets) at(pos int64) int64 {
	ahead, end, _ := o.piece(pos)
	if end < 0 {
		return pos + ahead
	}
	next, _, _ := o.piece(end)
	return min(pos+ahead, end+next)
}

// pos returns the position of an offset in available or later text.
func (o *textOffsets) pos(off int64) int64 {
	n := o.steps.Find(func(n int64) bool { s := o.steps.At(n); return s.pos+s.ahead > off })
	at := off - o.ahead(n)
	if n < o.steps.End() {
		at = min(at, o.steps.At(n).pos)
	}
	return max(at, 0)
}

// drop drops the steps before number to.
func (o *textOffsets) drop(to int64) {
	o.base = o.ahead(to)
	o.steps.Drop(to)
}

// placed records that all of the owner's text up to an offset was recorded, except for
// held-back text; from is the position where it began.
func (l *Log) placed(from, end int64) {
	if l.strip != nil {
		end -= int64(len(l.strip.pending))
	}
	l.offsets.step(from, end-(l.content.end-from), 0)
	if steps := &l.offsets.steps; steps.Len() > maxSteps/8 { // those that are not needed for any text
		l.offsets.drop(steps.Search(l.content.oldest()+1) - 1)
	}
}

// OffsetOf returns the offset of a position, with the commands that have ended before it.
func (l *Log) OffsetOf(pos int64) int64 { return l.offsets.at(pos) + l.marks.endedBefore(pos) }

// PosOf returns the position of an offset in the owner's text alone.
func (l *Log) PosOf(off int64) int64 { return l.offsets.pos(off) }

// TextOffset returns the offset of a position in the owner's text alone.
func (l *Log) TextOffset(pos int64) int64 { return l.offsets.at(pos) }

// StartOffset returns the offset of the oldest text that readers get.
func (l *Log) StartOffset() int64 { return l.OffsetOf(l.readable()) }

// EndOffset returns the offset of the next text.
func (l *Log) EndOffset() int64 { return l.offsets.at(l.content.end) + l.marks.ended }

// readable returns the position from which on readers get everything.
func (l *Log) readable() int64 { return max(l.content.oldest(), l.marks.from) }
