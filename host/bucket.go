package host

import "time"

// bucket bounds how often something is done: so many times at once, and then so many in a second. The zero value is full. It has no
// lock of its own.
type bucket struct {
	left float64
	at   time.Time // when that was so; zero: not used yet
}

// fill brings what is left up to date and returns it.
func (b *bucket) fill(burst, rate float64) float64 {
	now := time.Now()
	if b.at.IsZero() {
		b.left = burst
	} else {
		b.left = min(burst, b.left+now.Sub(b.at).Seconds()*rate)
	}
	b.at = now
	return b.left
}

// take takes one, if there is one.
func (b *bucket) take(burst, rate float64) bool {
	if b.fill(burst, rate) < 1 {
		return false
	}
	b.left--
	return true
}
