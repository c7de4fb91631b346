package jsonrpc

import "time"

const (
	// What is on its way of a stream is ahead of the next message: of the echo of a key.
	// So its window follows the time after which the other side has taken it: it grows
	// while that is less than paceQueue, and an eighth, above the least time seen, and
	// shrinks beyond.
	paceQueue   = 2 * time.Millisecond
	firstWindow = 64 << 10 // bytes
	leastWindow = 2 * streamStep
	// leastFor is how long a least time counts: the way may have become longer.
	leastFor = 10 * time.Second

	// While Options.Typing, the stream leaves in small pieces, with pauses in which all
	// processors are free for the echo: 15 MB/s, of several hundred without.
	typingPause = time.Millisecond // after streamMessage bytes

	markTime = 50 * time.Microsecond // see paceMark
)

// A pacer decides how much of a stream may be on its way. It is guarded by the lock of
// beside.
//
// It is another rule than that of a terminal's output (package uplink, pace.go). There
// the window is what the host records in some milliseconds, at most 256 KiB: 5 MB/s at a
// round trip of 50 ms. A download is to have at least 10 there, so its window must follow
// the way. For output, time that the host needs to record would pass for a longer way.
type pacer struct {
	window int64
	grows  bool          // it has not shrunk yet, so it doubles
	least  time.Duration // of the times since earliest, 0 if there is none
	before time.Duration // that of the time before
	since  time.Time     // of least
	shrunk int64         // up to here, what was sent before the window shrank: it says nothing new
	resume time.Time     // nothing leaves before
	timer  *time.Timer   // wakes the writer at resume; nil before the first pause
	marks  []paceMark    // of what is on its way, oldest first
}

// A paceMark is when messages left: the first of those within markTime.
type paceMark struct {
	end int64 // of bytes sent
	at  time.Time
}

// room returns how much may be on its way.
func (p *pacer) room() int64 {
	if p.window == 0 {
		p.window, p.grows = firstWindow, true
	}
	return p.window
}

// pauses reports whether nothing may be sent yet. It calls wake when that is over.
func (p *pacer) pauses(now time.Time, wake func()) bool {
	wait := p.resume.Sub(now)
	switch {
	case wait <= 0:
		return false
	case p.timer == nil:
		p.timer = time.AfterFunc(wait, wake)
	default:
		p.timer.Reset(wait)
	}
	return true
}

// stop ends the pauses.
func (p *pacer) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// left notes that n bytes were sent, up to end, while somebody typed or not.
func (p *pacer) left(n, end int64, now time.Time, typing bool) {
	if typing {
		p.resume = now.Add(typingPause * time.Duration(n) / streamMessage)
	}
	if last := len(p.marks) - 1; last >= 0 && now.Sub(p.marks[last].at) < markTime {
		p.marks[last].end = end
		return
	}
	p.marks = append(p.marks, paceMark{end, now})
}

// taken notes that the other side has taken n more bytes, so everything up to at, while
// inflight bytes were on their way.
func (p *pacer) taken(at, n, inflight int64, now time.Time) {
	i := 0
	for i < len(p.marks) && p.marks[i].end < at {
		i++
	}
	if i == len(p.marks) {
		p.marks = p.marks[:0]
		return
	}
	took := now.Sub(p.marks[i].at)
	p.marks = append(p.marks[:0], p.marks[i:]...)
	if now.Sub(p.since) > leastFor {
		p.before, p.least, p.since = p.least, 0, now
	}
	if p.least == 0 || took < p.least {
		p.least = took
	}
	least := p.least
	if p.before > 0 {
		least = min(least, p.before)
	}
	queued := took - least
	switch limit := paceQueue + least/8; {
	case queued > limit && at > p.shrunk:
		p.window -= p.window / 4
		p.grows, p.shrunk = false, p.marks[len(p.marks)-1].end
	case queued > limit || inflight < p.window/2: // the window was not the limit
	case p.grows:
		p.window += n
	default:
		p.window += n / 4
	}
	p.window = min(max(p.window, leastWindow), streamWindow)
}
