package output

import "sort"

// The offsets that readers use are the owner's: bytes of the text that it sends, from the
// terminal's start, plus the number of commands that have ended before. So they mean the
// same after a restart of the host, which then gets the text again. The text that the
// host records differs a little from what the owner sends: it has additional lines that
// report gaps, and lacks shells' marks. This file maps between the two.

// textOffsets maps positions in the recorded text to offsets in the owner's text. Neither
// goes back. In the zero value they are equal.
type textOffsets struct {
	steps []offsetStep // ascending
	base  int64        // how far offsets are ahead of positions before the first step
	lost  int64        // bytes that are missing before the next step
}

// offsetStep is a position at which the difference between offsets and positions changes.
type offsetStep struct {
	pos, ahead int64
	missing    int64 // bytes that the owner has not sent before it
}

// maxSteps bounds the steps of a terminal. Beyond it the oldest steps are dropped, and
// positions before them get inexact offsets.
const maxSteps = 1024

// step records the offset of the text at a position.
func (o *textOffsets) step(pos, off int64) {
	ahead := off - pos
	n := len(o.steps)
	switch {
	case ahead == o.ahead() && o.lost == 0:
		return
	case n > 0 && o.steps[n-1].pos == pos:
		o.steps[n-1].ahead = ahead
		o.steps[n-1].missing += o.lost
		o.lost = 0
		return
	case n >= maxSteps:
		o.base = o.steps[n/4-1].ahead
		o.steps = append(o.steps[:0], o.steps[n/4:]...)
	}
	o.steps = append(o.steps, offsetStep{pos, ahead, o.lost})
	o.lost = 0
}

// ahead returns how far offsets are ahead of positions at the end.
func (o *textOffsets) ahead() int64 {
	if n := len(o.steps); n > 0 {
		return o.steps[n-1].ahead
	}
	return o.base
}

// piece returns how far offsets are ahead from a position on, and the position where that
// ends, -1 if nowhere yet. missing is the number of bytes that are missing right before
// the position.
func (o *textOffsets) piece(pos int64) (ahead, end, missing int64) {
	i := sort.Search(len(o.steps), func(i int) bool { return o.steps[i].pos > pos })
	ahead, end = o.base, -1
	if i > 0 {
		ahead = o.steps[i-1].ahead
		if o.steps[i-1].pos == pos {
			missing = o.steps[i-1].missing
		}
	}
	if i < len(o.steps) {
		end = o.steps[i].pos
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
	i := sort.Search(len(o.steps), func(i int) bool { return o.steps[i].pos+o.steps[i].ahead > off })
	ahead := o.base
	if i > 0 {
		ahead = o.steps[i-1].ahead
	}
	at := off - ahead
	if i < len(o.steps) {
		at = min(at, o.steps[i].pos)
	}
	return max(at, 0)
}

// trim drops steps that are not needed for a position or anything after it.
func (o *textOffsets) trim(pos int64) {
	n := 0
	for n+1 < len(o.steps) && o.steps[n+1].pos <= pos {
		n++
	}
	if n > 0 {
		o.base = o.steps[n-1].ahead
		o.steps = append(o.steps[:0], o.steps[n:]...)
	}
}

// placed records that all of the owner's text up to an offset was recorded, except for
// held-back text; from is the position where it began.
func (l *Log) placed(from, end int64) {
	if l.strip != nil {
		end -= int64(len(l.strip.pending))
	}
	l.offsets.step(from, end-(l.content.end-from))
	if len(l.offsets.steps) > maxSteps/8 {
		l.offsets.trim(l.content.oldest())
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
