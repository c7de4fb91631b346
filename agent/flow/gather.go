package flow

import "time"

// Pause is how long output must have paused for what follows not to be of the same burst.
const Pause = 2 * time.Millisecond

// Gather decides when a terminal's output is sent: little of it, such as an echo or a prompt, at once; a flood in whole frames. The receiver's
// acknowledgements clock it: a near one acknowledges each read of the pty before the next one, and so what was sent without a pause counts
// too. Otherwise a flood would cost both sides a frame and a thread switch for each read. It has one owner.
type Gather struct {
	Little int64 // bytes that may be unacknowledged, and bytes of a burst, for more to be sent at once

	burst  int64 // bytes sent without a pause
	sentAt time.Time
}

// Least returns how many bytes must be pending for more to be sent: 1, or a whole frame while much is unacknowledged or goes on without a
// pause. If pause is not 0 that changes by itself after it.
func (g *Gather) Least(inflight, frame int64) (n int64, pause time.Duration) {
	if inflight > g.Little {
		return frame, 0
	}
	if g.burst > g.Little {
		if pause = Pause - time.Since(g.sentAt); pause > 0 {
			return frame, pause
		}
	}
	return 1, 0
}

// Sent notes that n bytes are sent now.
func (g *Gather) Sent(n int, now time.Time) {
	if now.Sub(g.sentAt) >= Pause {
		g.burst = 0
	}
	g.burst, g.sentAt = g.burst+int64(n), now
}
