package terminals

import (
	"tether/record"
)

// leastKept is how many bytes each terminal may keep whatever the bound of all terminals
// together is.
const leastKept = 4 << 10

// Record updates the part of a terminal in the memory of all terminals after an
// addition, and makes room if they take too much. First, parked terminals lose their
// text, the one that has been away longest first. Then the largest terminals are reduced.
// As at a terminal's own bound, the oldest text is dropped, and a subscriber to which it
// was not sent yet is told.
func (b *Book) Record(t *Terminal) {
	if t.weigh() {
		b.Memory.Squeeze(keepers(b.Parked), keepers(b.Listed), leastKept)
	}
}

func keepers(all []*Terminal) (some []record.Keeper) {
	for _, t := range all {
		some = append(some, t)
	}
	return some
}

// weigh updates the terminal's part of the memory: its recorded text and its channel's
// log. Text that is in both counts twice. It reports whether all terminals together take
// too much since.
func (t *Terminal) weigh() (over bool) {
	if t.gone() {
		return t.memory.Set(0)
	}
	return t.memory.Set(t.Out.Held() + t.Channel.Bytes())
}

// Held implements record.Keeper.
func (t *Terminal) Held() int64 { return t.memory.Held() }

// Shrink implements record.Keeper.
func (t *Terminal) Shrink(to int64) {
	if t.Parked() != nil {
		t.book.dropText(t, droppedForMemory)
		return
	}
	t.Channel.Shrink(to / 3)
	t.Out.Shrink(to, t.Channel.Bytes())
	t.settleSoon()
	t.weigh()
}
