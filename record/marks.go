package record

import "sort"

// Marks are events between the bytes of a log, in ascending order of their offsets. The
// first mark of a log has number 0, and numbers are never used again. The owner bounds
// them. The zero Marks are empty.
type Marks[M interface{ Offset() int64 }] struct {
	list  Queue[M]
	first int64 // number of the oldest that is kept
}

// Add appends a mark and returns its number. It panics if the mark's offset is before
// that of the last one.
func (m *Marks[M]) Add(one M) (n int64) {
	if k := m.list.Len(); k > 0 && one.Offset() < (*m.list.At(k - 1)).Offset() {
		panic("record: a mark before the last one")
	}
	m.list.Push(one)
	return m.End() - 1
}

// At returns mark number n, which is in [First, End). It is valid until the next Add or
// Drop. Its offset may only be changed so that the marks still ascend.
func (m *Marks[M]) At(n int64) *M { return m.list.At(int(n - m.first)) }

// First returns the number of the oldest mark that is kept, or End.
func (m *Marks[M]) First() int64 { return m.first }

// End returns the number of the next mark: how many there have ever been.
func (m *Marks[M]) End() int64 { return m.first + int64(m.list.Len()) }

// Len returns how many marks are kept.
func (m *Marks[M]) Len() int { return m.list.Len() }

// Cap returns for how many marks memory is allocated.
func (m *Marks[M]) Cap() int { return m.list.Cap() }

// Search returns the number of the first mark at or after an offset, or End.
func (m *Marks[M]) Search(off int64) (n int64) {
	return m.Find(func(n int64) bool { return (*m.At(n)).Offset() >= off })
}

// Find returns the number of the first mark for which reached is true, or End. It must be
// true for all later marks, too.
func (m *Marks[M]) Find(reached func(n int64) bool) (n int64) {
	return m.first + int64(sort.Search(m.list.Len(), func(i int) bool { return reached(m.first + int64(i)) }))
}

// Drop drops the marks before number to.
func (m *Marks[M]) Drop(to int64) {
	if to > m.first {
		m.list.Drop(int(to - m.first))
		m.first = to
	}
}

// Shrink frees memory that the present marks do not need.
func (m *Marks[M]) Shrink() { m.list.Shrink() }
