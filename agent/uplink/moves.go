package uplink

import (
	"sync"
	"time"
)

// moves tells everyone who waits that the machine woke up or changed its network. It is safe for concurrent use.
type moves struct {
	mu    sync.Mutex
	count int
	last  time.Time     // zero: never
	next  chan struct{} // closed by note; nil while nobody waits
}

// note wakes all who wait.
func (m *moves) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
	m.count++
	if m.next != nil {
		close(m.next)
		m.next = nil
	}
}

// wait returns a channel that is closed at the next move, and how many there were before.
func (m *moves) wait() (next <-chan struct{}, before int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		m.next = make(chan struct{})
	}
	return m.next, m.count
}

// eagerFor is how long after a move a network comes up: the radio finds its station, an address is given, the name servers answer.
const eagerFor = time.Minute

// recent reports whether the last move was within eagerFor.
func (m *moves) recent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.last.IsZero() && time.Since(m.last) < eagerFor
}
