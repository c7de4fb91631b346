package local

import (
	"sync"
	"time"
)

// bulkRate bounds what all interfaces together are sent in bytes of text a
// second, beyond bulkBurst at once: more than any can show, and little enough
// that many viewers of a flood do not take the processor from an echo. What is
// smaller than bulkLeast is no flood, and never waits.
const (
	bulkRate  = 64 << 20
	bulkBurst = 4 << 20
	bulkLeast = 4 << 10
)

// bulk lets all streams of a server have their part of bulkRate, in the order
// in which they ask. The zero value is ready; it is safe for concurrent use.
type bulk struct {
	mu   sync.Mutex
	next time.Time // when the next one may be sent
}

// reserve notes that n bytes are sent and returns when their sender may send
// more.
func (b *bulk) reserve(n int, now time.Time) time.Time {
	if n < bulkLeast {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-bulkBurst * time.Second / bulkRate); b.next.Before(earliest) {
		b.next = earliest
	}
	b.next = b.next.Add(time.Duration(n) * time.Second / bulkRate)
	return b.next
}
