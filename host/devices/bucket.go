package devices

import "time"

// bucket lets so many through at once and then one in a while. It goes by the monotonic clock.
type bucket struct {
	most  int
	every time.Duration
	full  time.Time // when as many as possible may go through again
}

func newBucket(most int, every time.Duration) bucket {
	return bucket{most: most, every: every, full: time.Now()}
}

// has reports whether one may go through.
func (b *bucket) has() bool {
	return time.Until(b.full) <= time.Duration(b.most-1)*b.every
}

// take lets one through if it may.
func (b *bucket) take() bool {
	if !b.has() {
		return false
	}
	if now := time.Now(); b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.every)
	return true
}

func (b *bucket) fullAt() time.Time { return b.full }
