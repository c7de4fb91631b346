package channel

import (
	"math"
	"slices"
	"time"
)

// A source that sends faster than its takers read is paced: it waits while its
// acknowledgements are held back, and so does the host itself for the output of its own
// shells. Whether the source can wait decides which takers count:
//
//   - Sources that can wait (Channel.Holds) wait for the slowest taker that keeps up, so
//     that every one of them gets every byte.
//   - All others wait for the fastest taker only, and at most pacePeriod: their child does
//     not stop, and the source would skip text that the fast ones could have had.
const (
	// pacePeriod is how often a held source is checked.
	pacePeriod = 100 * time.Millisecond
	// healthy is how long a subscriber may leave one message unread, or a node may not
	// ask for what there is, before the source stops waiting for it.
	healthy = time.Second
	// paceRate is how fast a subscriber must read a channel's messages, in bytes per
	// second, so that it may hold the source without a limit.
	paceRate = 128 << 10
)

// pace records for whom a channel's source waits.
type pace struct {
	acks
	held  bool          // the source waits: no acknowledgement is sent
	slow  int           // the number of takers that hold up the source, if that can wait
	timer *time.Timer   // checks held again after pacePeriod
	wait  chan struct{} // for sources that get no acknowledgement: closed when the takers have caught up
}

// taker is who takes a channel's entries: a subscription, or another node.
type taker struct {
	c      *Channel
	out    *Outbox   // nil: a node, which asks for each piece
	asked  time.Time // when the node last asked
	paused bool      // it does not deliver yet
	next   int64     // index in the log of the envelope to deliver next
	own    []Piece   // only for this taker, and before the log: the rest of a restart
	holding
}

// holding is how long a taker has held the source.
type holding struct {
	holds   bool          // it is one of the channel's slow takers
	skipped bool          // it has held the source for too long, and does not hold it again until it has caught up
	used    time.Duration // used part of Limits.HoldTime: the time for which it has held, minus the time that its bytes take at paceRate
	since   time.Time     // until when used counts, while it holds
	at      int64         // how many bytes of the log it had taken at since
}

// Feed is the place of another node in a channel. The node asks for each piece.
type Feed struct{ taker }

// NewFeed adds a node. Its first request follows.
func (c *Channel) NewFeed() *Feed {
	f := &Feed{taker{c: c}}
	c.feeds = append(c.feeds, f)
	return f
}

// Ask records that the node asks for what comes after the index that it has; a negative
// one means that it has nothing of the log, and needs nothing of it.
func (f *Feed) Ask(index int64) {
	f.next, f.asked = f.c.log.next, time.Now()
	if index >= 0 {
		f.next = min(index, f.next)
	}
	f.c.advanced(&f.taker)
}

// End ends the feed.
func (f *Feed) End() {
	f.c.feeds = slices.DeleteFunc(f.c.feeds, func(o *Feed) bool { return o == f })
	f.c.left(&f.taker)
}

// takers yields the subscriptions and the nodes.
func (c *Channel) takers(yield func(*taker) bool) {
	for _, s := range c.subs {
		if !yield(&s.taker) {
			return
		}
	}
	for _, f := range c.feeds {
		if !yield(&f.taker) {
			return
		}
	}
}

// counts reports whether the source may have to wait for the taker.
func (t *taker) counts() bool {
	return !t.paused && (t.out == nil || t.c.Owner == 0 || t.out.Party != t.c.Owner)
}

// reads reports whether the taker has taken something lately.
func (t *taker) reads() bool {
	if t.out == nil {
		return time.Since(t.asked) < healthy
	}
	return t.out.to.Sending() <= healthy
}

// passed reports whether a source that can wait goes on without the taker.
func (t *taker) passed() bool {
	if t.out == nil {
		return !t.reads()
	}
	return t.skipped
}

// far reports whether the taker has more than a quarter of the log to take.
func (t *taker) far() bool {
	log := &t.c.log
	return len(t.own) > 0 || log.behind(t.next) > int64(log.limits.Bytes)/4 || log.next-t.next > int64(log.limits.Count)/4
}

// taken returns how many bytes of the log were sent to the taker.
func (t *taker) taken() int64 { return t.c.log.total - t.c.log.behind(t.next) }

// needed returns the index of the oldest entry that is still needed by a taker for which
// the source waits. It returns math.MaxInt64 if there is none, or if n more bytes fit.
func (c *Channel) needed(n int) int64 {
	need := int64(math.MaxInt64)
	if l := &c.log; !c.Holds || l.behind(l.first)+int64(n) <= int64(l.limits.Bytes) && l.next-l.first < int64(l.limits.Count) {
		return need
	}
	for t := range c.takers {
		if t.counts() && !t.passed() {
			need = min(need, t.next)
		}
	}
	return need
}

// Pace returns nil if the takers keep up. Otherwise the source, which gets no
// acknowledgement, waits until the returned channel is closed.
func (c *Channel) Pace() <-chan struct{} {
	if !c.paced() {
		return nil
	}
	c.hold()
	if c.wait == nil {
		c.wait = make(chan struct{})
	}
	return c.wait
}

// paced reports whether the source has to wait, and records for which takers.
func (c *Channel) paced() bool {
	if !c.Holds {
		return c.crowded()
	}
	for t := range c.takers {
		if !t.holds && t.mayHold() {
			t.holds, t.since = true, time.Now()
			c.slow++
		}
	}
	return c.slow > 0
}

// crowded reports whether every taker that still reads is far behind.
func (c *Channel) crowded() bool {
	waiting := false
	for t := range c.takers {
		switch {
		case !t.counts() || !t.reads():
		case !t.far():
			return false
		default:
			waiting = true
		}
	}
	return waiting
}

// mayHold reports whether a source that can wait waits for the taker.
func (t *taker) mayHold() bool {
	switch {
	case !t.counts():
		return false
	case t.far():
		return !t.passed()
	case t.skipped:
		t.holding = holding{at: t.taken()}
	}
	return false
}

// hold begins to hold the source back.
func (c *Channel) hold() {
	c.held = true
	if c.timer != nil {
		c.timer.Reset(pacePeriod)
		return
	}
	c.timer = time.AfterFunc(pacePeriod, func() {
		c.order.mu.Lock()
		defer c.order.mu.Unlock()
		c.holdOn()
	})
}

// holdOn checks whether the hold continues, pacePeriod after the last check.
func (c *Channel) holdOn() {
	if !c.held {
		return
	}
	now := time.Now()
	for t := range c.takers {
		if t.holds {
			t.charge(now)
		}
	}
	if c.settle(); c.held {
		c.timer.Reset(pacePeriod)
	}
}

// charge counts the time for which the taker has held the source, and ends that when it
// was too long. A node holds it while it asks.
func (t *taker) charge(now time.Time) {
	p := &t.holding
	if t.out != nil {
		taken := t.taken()
		earned := time.Duration(float64(taken-p.at) / paceRate * float64(time.Second))
		p.used = max(0, p.used+now.Sub(p.since)-earned)
		p.since, p.at = now, taken
		p.skipped = p.used >= t.c.order.limits.HoldTime
	}
	if t.passed() || t.paused || !t.far() {
		t.unhold()
	}
}

// unhold records that the source does not wait for the taker any more.
func (t *taker) unhold() {
	if t.holds {
		t.holds = false
		t.c.slow--
	}
}

// advanced is called when a taker has taken something.
func (c *Channel) advanced(t *taker) {
	switch {
	case !c.held || t.far():
	case !c.Holds:
		c.Release()
	case t.holds:
		t.charge(time.Now())
		c.settle()
	}
}

// settle releases the source if all takers for which it was held have caught up. If the
// source can wait, other takers may have fallen behind meanwhile because of text in
// transit; it is then held for them.
func (c *Channel) settle() {
	if c.held && c.slow == 0 && (!c.Holds || !c.paced()) {
		c.Release()
	}
}

// left is called when a taker has gone.
func (c *Channel) left(t *taker) {
	t.unhold()
	c.settle()
}

// Release ends the hold of a source and lets it have its acknowledgement.
func (c *Channel) Release() {
	if !c.held {
		return
	}
	c.free()
	c.timer.Stop()
	if c.wait != nil {
		close(c.wait)
		c.wait = nil
		return
	}
	c.owe()
}

// free records that the source waits for nobody.
func (c *Channel) free() {
	c.held = false
	if c.slow == 0 {
		return
	}
	now := time.Now()
	for t := range c.takers {
		if t.holds {
			t.charge(now)
			t.unhold()
		}
	}
}

// Stop stops the timer that checks a held source.
func (c *Channel) Stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}
