package record

// Queue is appended to at the back and dropped from the front. The zero Queue is empty.
type Queue[T any] struct {
	ring    []T // its length is a power of two, or 0
	head, n int // the first item, and how many there are
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.n }

// At returns the i-th item; the pointer is valid until the next Push or Drop.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// Cap returns for how many items memory is allocated.
func (q *Queue[T]) Cap() int { return len(q.ring) }

// Push appends an item.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		q.resize(max(1, 2*q.n))
	}
	*q.At(q.n) = v
	q.n++
}

// Drop removes the first n items. Their memory is kept for others.
func (q *Queue[T]) Drop(n int) {
	var none T
	for i := range n {
		*q.At(i) = none
	}
	q.head, q.n = (q.head+n)&(len(q.ring)-1), q.n-n
}

// Shrink frees memory that the present items do not need.
func (q *Queue[T]) Shrink() {
	size := len(q.ring)
	for size > 0 && size/2 >= q.n {
		size /= 2
	}
	if size < len(q.ring) {
		q.resize(size)
	}
}

func (q *Queue[T]) resize(size int) {
	ring := make([]T, size)
	for i := range q.n {
		ring[i] = *q.At(i)
	}
	q.ring, q.head = ring, 0
}
