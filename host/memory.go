package host

import "slices"

// leastKept is how many bytes each terminal may keep whatever the bound of all terminals
// together is.
const leastKept = 4 << 10

// memory counts what the recorded text and the logs of all terminals take together. Text
// that is in both counts twice. Guarded by the host's mutex.
type memory struct {
	most  int64 // set once; bytes
	used  int64
	again int64 // while used is below this, do not try to make room: the last try visited all terminals and gained little. 0: try
}

// recordLocked updates the amount of a terminal after an addition, and makes room if the
// sum is too large.
func (h *Host) recordLocked(t *terminal) {
	h.weighLocked(t)
	m := &h.memory
	if m.used <= max(m.most, m.again) {
		return
	}
	h.squeezeLocked()
	m.again = 0
	if m.used > m.most-m.step() { // the guaranteed parts alone exceed the bound
		m.again = m.used + m.step()
	}
}

// step returns how much more must be added before another try to make room, after one
// that failed.
func (m *memory) step() int64 { return m.most / 16 }

func (h *Host) weighLocked(t *terminal) {
	now := t.out.Held() + t.channel.Bytes()
	if t.gone() {
		now = 0
	}
	m := &h.memory
	m.used += now - t.weight
	t.weight = now
	m.again = min(m.again, m.used+m.step()) // something was removed, so there may be room again
}

// squeezeLocked reduces all terminals together to less than their bound. First, parked
// terminals lose their text, the one that has been away longest first. Then the largest
// terminals are reduced to the same amount each. As at a terminal's own bound, the oldest
// text is dropped, and a subscriber to which it was not sent yet is told.
func (h *Host) squeezeLocked() {
	room := h.memory.most - h.memory.most/8
	for _, t := range h.parked {
		if h.memory.used <= room {
			return
		}
		h.dropTextLocked(t, droppedForMemory)
	}
	for _, t := range h.parked {
		room -= t.weight
	}
	level := max(leastKept, levelOf(h.order, room))
	for _, t := range h.order {
		if t.weight <= level {
			continue
		}
		t.channel.Shrink(level / 3)
		t.out.Shrink(level, t.channel.Bytes())
		t.settleSoonLocked()
		h.weighLocked(t)
	}
}

// levelOf returns the bound for each terminal with which all together take at most room,
// while smaller ones keep what they have.
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
