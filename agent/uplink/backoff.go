package uplink

import (
	"math/rand/v2"
	"sync"
	"time"

	"tether/internal/change"
)

// Bounds of the time between two attempts. Full jitter spreads the return of many daemons
// after a host's restart over the whole interval: of a thousand, a hundred come in the
// busiest tenth of a second, while they all have just lost it, and thirty when it comes
// back after a while.
const (
	firstRetry   = time.Second
	maxRetry     = 30 * time.Second
	patientRetry = 5 * time.Minute // if only a person or an upgrade can help
	healthyAfter = time.Minute     // a connection this long resets the interval
)

// The same after a move: this machine was away, and its network will be back soon.
const (
	firstEager = 250 * time.Millisecond
	maxEager   = time.Second
)

// backoff chooses the pauses between attempts; the zero value starts with the shortest.
type backoff struct {
	ceiling time.Duration
	tries   int // attempts since the last connection
}

// retryProfile is how soon to try again.
type retryProfile uint8

const (
	usual   retryProfile = iota
	patient              // an attempt soon would fail as well
	eager                // the network will be back soon
)

// next returns how long to wait: a random time up to a ceiling that doubles each time.
func (b *backoff) next(m retryProfile) time.Duration {
	first, most := firstRetry, maxRetry
	switch m {
	case patient:
		first, most = maxRetry, patientRetry
	case eager:
		first, most = firstEager, maxEager
	}
	b.ceiling = min(max(2*b.ceiling, first), most)
	return rand.N(b.ceiling) + time.Millisecond
}

// firstTimeouts bound the first attempts after a loss. Packets that are sent before the
// network is back are lost, and TCP repeats them after longer and longer pauses, so a new
// attempt connects sooner than the old one.
var firstTimeouts = [...]time.Duration{2500 * time.Millisecond, 2500 * time.Millisecond, 2500 * time.Millisecond, 5 * time.Second, 5 * time.Second}

// timeout counts one more attempt and returns its bound, at most most.
func (b *backoff) timeout(most time.Duration) time.Duration {
	n := b.tries
	b.tries++
	if n < len(firstTimeouts) {
		return min(firstTimeouts[n], most)
	}
	return most
}

// lost records that there was a connection, so that the next timeouts are firstTimeouts.
// The pause between attempts stays; only a connection that lasted for healthyAfter resets
// it.
func (b *backoff) lost() { b.tries = 0 }

// moves tells waiting goroutines that the machine woke up or changed its network. It is
// safe for concurrent use.
type moves struct {
	mu    sync.Mutex
	count int
	last  time.Time // zero: never
	next  change.Signal
}

// note wakes all who wait.
func (m *moves) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
	m.count++
	m.next.Raise()
}

// wait returns a channel that is closed at the next move, and how many there were before.
func (m *moves) wait() (next <-chan struct{}, before int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next.Next(), m.count
}

// eagerFor is how long after a move a network may take to come up: until the radio has a
// station, the machine an address, and the name servers answer.
const eagerFor = time.Minute

// recent reports whether the last move was within eagerFor.
func (m *moves) recent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.last.IsZero() && time.Since(m.last) < eagerFor
}
