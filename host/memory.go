package host

import "slices"

// leastKept is the least that the bound of all terminals together leaves each, in bytes.
const leastKept = 4 << 10

// largeEntry is how long an envelope must be to give way even if it is the only one of its log, in bytes: longer than any exit.
const largeEntry = 8 << 10

// memory is how much the recorded text and the logs of all terminals take together. Text that lies in both counts twice. Guarded by the
// host's mutex.
type memory struct {
	most  int64 // set once; bytes
	used  int64
	again int64 // below it no room is made: that would cost a look at all terminals for little; 0 if there was room to be made
}

// recordLocked updates the amount of a terminal after an addition, and makes room if the sum is too large.
func (h *Host) recordLocked(t *terminal) {
	h.weighLocked(t)
	m := &h.memory
	if m.used <= max(m.most, m.again) {
		return
	}
	h.squeezeLocked()
	m.again = 0
	if m.used > m.most-m.step() { // the guaranteed parts take it all
		m.again = m.used + m.step()
	}
}

// step is how much is added before room is looked for again where there was none.
func (m *memory) step() int64 { return m.most / 16 }

func (h *Host) weighLocked(t *terminal) {
	now := int64(t.content.held()+t.oldest.cost()) + t.log.behind(t.log.first) + int64(t.marks.bytes)
	if t.gone() {
		now = 0
	}
	m := &h.memory
	m.used += now - t.weight
	t.weight = now
	m.again = min(m.again, m.used+m.step()) // as there is less, there is room again
}

// squeezeLocked brings all terminals together under their bound, with some room: the largest give way, down to an equal amount each. The
// oldest text is dropped, as at a terminal's own bound, and a subscriber that has not been sent it is told. Before that, parked terminals
// lose their text, the one that has been away longest first.
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
		t.log.shrink(level / 3)
		t.marks.shrink(int(level / 3))
		t.content.shrink(int(level - t.log.behind(t.log.first) - int64(t.marks.bytes)))
		if int64(t.oldest.cost()) > level/oldestPart {
			t.oldest.lose()
		}
		h.weighLocked(t)
	}
}

// levelOf is the bound for each terminal with which they take no more than room together, if smaller ones keep theirs.
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

// shrink drops entries from the front until at most n bytes are left, or one entry that is not large, and gives back the room that the
// others had.
func (l *chanLog) shrink(n int64) {
	for size := l.behind(l.first); size > n && (l.next-l.first > 1 || size > largeEntry); size = l.behind(l.first) {
		l.dropFirst()
	}
	size := len(l.ring)
	for size > 4 && size >= 4*int(l.next-l.first) {
		size /= 2
	}
	if size < len(l.ring) {
		l.resize(size)
	}
}

// shrink drops the oldest until it takes at most about n bytes, and gives back the room that it had. The newest part stays: it may be a
// command that runs.
func (c *content) shrink(n int) {
	if c.held() <= n {
		return
	}
	for before := 0; c.held() > n && c.held() != before; { // the rest may be more escaped than the dropped text
		before = c.held()
		c.keep(int(max(1, int64(n)*int64(c.cost)/int64(before))))
	}
	c.parts = slices.Clone(c.parts)
	if len(c.parts) > 0 {
		c.parts[0].runs = slices.Clone(c.parts[0].runs)
	}
}
