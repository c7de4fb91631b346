// Package flow has the rules of flow control that holders, terminals and links share.
package flow

import "time"

const (
	// Hold is how long a child may wait within any Window.
	Hold = 200 * time.Millisecond
	// Window is the time in which Hold counts.
	Window = 2 * time.Second
	// Quiet is how long after input a child waits for nobody.
	Quiet = 250 * time.Millisecond

	slice  = 200 * time.Millisecond
	slices = int(Window/slice) + 1 // that a window may touch
)

// Budget bounds how long a child waits for readers that may slow it only a little: at
// most Hold within any Window. Its caller lets the child wait for nobody within Quiet
// after input. It is kept where the child's output is read: in its holder, or by the
// terminal itself. It counts waits by the slice of time in which they ended. The zero
// value has waited for nothing. It has one owner.
type Budget struct {
	epoch  time.Time
	newest int64 // slice, counted from epoch
	used   [slices]time.Duration
}

// Left is how long the child may wait from now on; 0 or less means not at all.
func (b *Budget) Left(now time.Time) time.Duration {
	if b.epoch.IsZero() {
		b.epoch = now
	}
	at := int64(now.Sub(b.epoch) / slice)
	for range min(at-b.newest, int64(slices)) {
		b.newest++
		b.used[b.newest%int64(slices)] = 0
	}
	b.newest = at
	left := Hold
	for _, used := range b.used {
		left -= used
	}
	return left
}

// Spend counts a wait that ends now.
func (b *Budget) Spend(now time.Time, wait time.Duration) {
	b.Left(now)
	b.used[b.newest%int64(slices)] += wait
}
