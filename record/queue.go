package record

// Queue is a slice that is appended to at the back and dropped from the front without
// moving its content each time. The zero Queue is empty.
type Queue[T any] struct {
	items []T
	head  int
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// At returns the i-th item; the pointer is valid until the next Push or Drop.
func (q *Queue[T]) At(i int) *T { return &q.items[q.head+i] }

// Cap returns for how many items memory is allocated.
func (q *Queue[T]) Cap() int { return cap(q.items) }

// Push appends an item.
func (q *Queue[T]) Push(v T) { q.items = append(q.items, v) }

// Drop removes the first n items and frees their memory in steps.
func (q *Queue[T]) Drop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head > len(q.items)/2 {
		kept := copy(q.items, q.items[q.head:])
		clear(q.items[kept:])
		q.items, q.head = q.items[:kept], 0
	}
}

// Shrink frees memory that the present items do not need.
func (q *Queue[T]) Shrink() {
	if n := q.Len(); cap(q.items) > 2*n {
		q.items, q.head = append(make([]T, 0, n), q.items[q.head:]...), 0
	}
}
