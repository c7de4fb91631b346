package uplink

import (
	"math/rand/v2"
	"time"
)

// Bounds of the time between two attempts. Full jitter spreads the return of
// many daemons after a host's restart over the whole interval.
const (
	firstRetry   = 500 * time.Millisecond
	maxRetry     = 30 * time.Second
	patientRetry = 5 * time.Minute // where only a person or an upgrade can help
	healthyAfter = time.Minute     // a connection this long resets the interval
)

// backoff is the interval for the next attempt; the zero value starts over.
type backoff struct{ ceiling time.Duration }

// next returns how long to wait: up to a ceiling that doubles each time.
func (b *backoff) next(patient bool) time.Duration {
	limit := maxRetry
	if patient {
		limit = patientRetry
	}
	b.ceiling = min(max(2*b.ceiling, firstRetry), limit)
	if patient {
		b.ceiling = max(b.ceiling, maxRetry)
	}
	return rand.N(b.ceiling) + time.Millisecond
}

func (b *backoff) reset() { b.ceiling = 0 }
