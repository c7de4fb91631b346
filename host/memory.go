package host

import "tether/record"

// leastKept is how many bytes each terminal may keep whatever the bound of all terminals
// together is.
const leastKept = 4 << 10

// recordLocked updates the part of a terminal in the memory of all terminals after an
// addition, and makes room if they take too much. First, parked terminals lose their
// text, the one that has been away longest first. Then the largest terminals are reduced.
// As at a terminal's own bound, the oldest text is dropped, and a subscriber to which it
// was not sent yet is told.
func (h *Host) recordLocked(t *terminal) {
	if t.weigh() {
		h.memory.Squeeze(keepers(h.parked), keepers(h.order), leastKept)
	}
}

func keepers(all []*terminal) (some []record.Keeper) {
	for _, t := range all {
		some = append(some, t)
	}
	return some
}

// weigh updates the terminal's part of the memory: its recorded text and its channel's
// log. Text that is in both counts twice. It reports whether all terminals together take
// too much since.
func (t *terminal) weigh() (over bool) {
	if t.gone() {
		return t.memory.Set(0)
	}
	return t.memory.Set(t.out.Held() + t.channel.Bytes())
}

// Held implements record.Keeper.
func (t *terminal) Held() int64 { return t.memory.Held() }

// Shrink implements record.Keeper.
func (t *terminal) Shrink(to int64) {
	if t.parked() != nil {
		t.host.dropTextLocked(t, droppedForMemory)
		return
	}
	t.channel.Shrink(to / 3)
	t.out.Shrink(to, t.channel.Bytes())
	t.settleSoonLocked()
	t.weigh()
}
