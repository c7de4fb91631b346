package host

import "slices"

// leastKept is what the bound of all terminals together leaves each, in bytes.
const leastKept = 4 << 10

// memory is how much the recorded text and the logs of all terminals take together. Text that lies in both counts twice. Guarded by the
// host's mutex.
type memory struct {
	most int64 // set once; bytes
	used int64
}

// recordLocked takes over what a terminal takes now that something was added, and makes room if that is too much for all.
func (h *Host) recordLocked(t *terminal) {
	h.weighLocked(t)
	if h.memory.used > h.memory.most {
		h.squeezeLocked()
	}
}

func (h *Host) weighLocked(t *terminal) {
	now := int64(t.content.cost) + t.log.behind(t.log.first)
	if t.ended {
		now = 0
	}
	h.memory.used += now - t.weight
	t.weight = now
}

// squeezeLocked brings all terminals together under their bound, with some room: those that take the most give way, down to what is as
// much for each of them. The oldest text goes, as it does at a terminal's own bound, and who has not been sent it is told.
func (h *Host) squeezeLocked() {
	level := max(leastKept, levelOf(h.order, h.memory.most-h.memory.most/8))
	for _, t := range h.order {
		if t.weight <= level {
			continue
		}
		t.log.shrink(level / 3)
		if want := int(level - t.log.behind(t.log.first)); t.content.cost > want {
			t.content.parts, t.content.cost = trimParts(t.content.parts, t.content.cost, max(0, want))
		}
		h.weighLocked(t)
	}
}

// levelOf is how much each terminal may take so that they take no more than room together, if smaller ones keep what they have.
func levelOf(all []*terminal, room int64) int64 {
	weights := make([]int64, 0, len(all))
	for _, t := range all {
		weights = append(weights, t.weight)
	}
	slices.Sort(weights)
	for i, w := range weights {
		share := room / int64(len(weights)-i)
		if w > share {
			return share
		}
		room -= w
	}
	return room
}

// shrink drops entries from the front until at most n bytes are left, or one entry.
func (l *chanLog) shrink(n int64) {
	for l.next-l.first > 1 && l.total-l.slot(l.first).start > n {
		l.dropFirst()
	}
}
