package host

import "sort"

// The offsets that readers use are the owner's: bytes of the text that it sends, from the terminal's start, plus the number of commands
// that have ended before. So they mean the same after a restart of the host, which then gets the text again. The host records a little more
// or less text than the owner sends: lines that report losses, and no marks of shells. Both are mapped here.

// textOffsets maps positions in the recorded text to offsets in the owner's. Neither goes back. The zero value says that they are the same.
// Guarded by the host's mutex.
type textOffsets struct {
	steps []offsetStep // ascending
	base  int64        // how far offsets are ahead of positions before the first step
	lost  int64        // bytes that are missing before the next step
}

// offsetStep is a position from which on offsets are ahead of positions by another number.
type offsetStep struct {
	pos, ahead int64
	missing    int64 // bytes that the owner has not sent before it
}

// maxSteps bounds the steps of a terminal. Beyond it the oldest are forgotten: positions before then get the offsets of later ones.
const maxSteps = 1024

// step says that the text at a position has an offset.
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

// ahead is how far offsets are ahead of positions at the end.
func (o *textOffsets) ahead() int64 {
	if n := len(o.steps); n > 0 {
		return o.steps[n-1].ahead
	}
	return o.base
}

// piece is how far offsets are ahead from a position on, and where that ends; -1: nowhere yet. missing is the number of bytes missing right
// before the position.
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

// at is the offset of a position.
func (o *textOffsets) at(pos int64) int64 {
	ahead, end, _ := o.piece(pos)
	if end < 0 {
		return pos + ahead
	}
	next, _, _ := o.piece(end)
	return min(pos+ahead, end+next)
}

// pos is the position of an offset in available or later text.
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

// trim forgets steps that nothing needs that is at a position or after it.
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

// placedLocked records that all of the owner's text up to an offset was recorded, except for held-back text; from is the position where it
// began.
func (t *terminal) placedLocked(from, end int64) {
	if t.strip != nil {
		end -= int64(len(t.strip.pending))
	}
	t.offsets.step(from, end-(t.content.end-from))
	if len(t.offsets.steps) > maxSteps/8 {
		t.offsets.trim(t.content.oldest())
	}
}

// offsetLocked is the offset of a position behind so many ends of commands.
func (t *terminal) offsetLocked(pos, ended int64) int64 { return t.offsets.at(pos) + ended }

// endLocked is the offset of later text.
func (t *terminal) endOffsetLocked() int64 { return t.offsetLocked(t.content.end, t.marks.ended) }
