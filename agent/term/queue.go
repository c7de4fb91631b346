package term

// queue is a slice that is appended to at the back and dropped from the
// front without moving its content each time.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// at returns the i-th item; the pointer is valid until the next push or drop.
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

// cap is how many items the memory that is taken would hold.
func (q *queue[T]) cap() int { return cap(q.items) }

// shrink gives back memory that is not needed for what is there.
func (q *queue[T]) shrink() {
	if n := q.len(); cap(q.items) > 2*n {
		q.items, q.head = append(make([]T, 0, n), q.items[q.head:]...), 0
	}
}

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// drop forgets the first n items and gives their memory back in steps.
func (q *queue[T]) drop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head > len(q.items)/2 {
		kept := copy(q.items, q.items[q.head:])
		clear(q.items[kept:])
		q.items, q.head = q.items[:kept], 0
	}
}
