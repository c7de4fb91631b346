package flow

import "time"

// Pause is the silence that ends a burst of output.
const Pause = 2 * time.Millisecond

// Gather decides when a terminal's output is sent: a little, such as an echo or a prompt,
// at once, and a flood in whole frames. Unacknowledged bytes alone cannot tell them
// apart: a near receiver acknowledges each read of the pty before the next one, so a
// flood would cost both sides a frame and a thread switch for each read. Therefore the
// bytes of the present burst count, too. A Gather has one owner.
type Gather struct {
	Little int64 // output is sent at once while at most so many bytes are unacknowledged, and at most so many belong to the burst

	burst  int64 // bytes sent without a pause
	sentAt time.Time
}

// Least returns how many bytes must be pending before more is sent: 1, or a whole frame
// while more than Little is unacknowledged or belongs to the present burst. If pause is
// not 0, the burst ends after it.
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

// Sent records that n bytes are sent now.
func (g *Gather) Sent(n int, now time.Time) {
	if now.Sub(g.sentAt) >= Pause {
		g.burst = 0
	}
	g.burst, g.sentAt = g.burst+int64(n), now
}
