package host

import "time"

// An owner that sends faster than its observers read is paced: it waits while its
// acknowledgements are held back, and so does the host itself for the output of its own
// shells. Whether the child can wait decides which observers count:
//
//   - Terminals whose child waits for slow readers (createTerminal says so in its _meta)
//     and server-executed ones wait for the slowest subscriber that keeps up, so that
//     every one of them gets every byte.
//   - All others wait for the fastest subscriber only, and at most pacePeriod: their
//     child does not stop, and the owner would skip text that the fast ones could have
//     had.
const (
	// pacePeriod is how often a held terminal is checked.
	pacePeriod = 100 * time.Millisecond
	// healthy is how long a subscriber may leave one message unread before the terminal
	// stops waiting for it.
	healthy = time.Second
	// paceRate is how fast a subscriber must read a terminal's messages, in bytes per
	// second, so that it may hold the terminal without a limit.
	paceRate = 128 << 10
)

// holding is how long a subscriber has held its terminal. Guarded by the host's mutex.
type holding struct {
	holds   bool          // it is one of the terminal's ack.slow
	skipped bool          // it has held the terminal for too long, and does not hold it again until it has caught up
	used    time.Duration // used part of Options.HoldTime: the time for which it has held, minus the time that its bytes take at paceRate
	since   time.Time     // until when used counts, while it holds
	at      int64         // how many bytes of the log it had taken at since
}

// pacedLocked reports whether the owner has to wait, and records for which subscribers.
func (t *terminal) pacedLocked() bool {
	if !t.holds {
		return t.crowdedLocked()
	}
	for _, s := range t.subs {
		if !s.holding.holds && s.mayHoldLocked() {
			s.holding.holds, s.holding.since = true, time.Now()
			t.ack.slow++
		}
	}
	return t.ack.slow > 0 || t.feedsHoldLocked()
}

// crowdedLocked reports whether every subscriber that still reads is far behind.
func (t *terminal) crowdedLocked() bool {
	waiting := false
	for _, s := range t.subs {
		if s.paused || t.ownedBy(s.conn) || s.conn.peer.Sending() > healthy {
			continue
		}
		if !s.farBehind() {
			return false
		}
		waiting = true
	}
	for _, f := range t.feeds {
		switch {
		case !f.healthy():
		case !f.farBehind(&t.log):
			return false
		default:
			waiting = true
		}
	}
	return waiting
}

// farBehind reports whether the subscriber has more than a quarter of its channel's log
// to take.
func (s *subscription) farBehind() bool {
	log := &s.ch.log
	return len(s.own) > 0 || log.behind(s.next) > int64(log.maxBytes)/4 || log.next-s.next > int64(log.maxCount)/4
}

// mayHoldLocked reports whether the terminal waits for the subscriber.
func (s *subscription) mayHoldLocked() bool {
	if s.paused || s.ch.term.ownedBy(s.conn) {
		return false
	}
	if !s.farBehind() {
		if s.holding.skipped {
			s.holding = holding{at: s.taken()}
		}
		return false
	}
	return !s.holding.skipped
}

// taken returns how many bytes of its channel's log were sent to the subscriber.
func (s *subscription) taken() int64 { return s.ch.log.total - s.ch.log.behind(s.next) }

// holdLocked begins to hold the owner back.
func (t *terminal) holdLocked() {
	t.ack.held = true
	if t.ack.timer != nil {
		t.ack.timer.Reset(pacePeriod)
		return
	}
	t.ack.timer = time.AfterFunc(pacePeriod, func() {
		t.host.mu.Lock()
		defer t.host.mu.Unlock()
		t.holdOnLocked()
	})
}

// holdOnLocked checks whether the hold continues, pacePeriod after the last check.
func (t *terminal) holdOnLocked() {
	if !t.ack.held {
		return
	}
	now := time.Now()
	for _, s := range t.subs {
		if s.holding.holds {
			s.chargeLocked(now)
		}
	}
	if t.settleLocked(); t.ack.held {
		t.ack.timer.Reset(pacePeriod)
	}
}

// chargeLocked counts the time for which the subscriber has held the terminal, and ends
// that when it was too long.
func (s *subscription) chargeLocked(now time.Time) {
	p := &s.holding
	taken := s.taken()
	earned := time.Duration(float64(taken-p.at) / paceRate * float64(time.Second))
	p.used = max(0, p.used+now.Sub(p.since)-earned)
	p.since, p.at = now, taken
	p.skipped = p.used >= s.conn.h.opts.HoldTime
	if p.skipped || s.paused || !s.farBehind() {
		s.unholdLocked()
	}
}

// unholdLocked records that the terminal does not wait for the subscriber any more.
func (s *subscription) unholdLocked() {
	if s.holding.holds {
		s.holding.holds = false
		s.ch.term.ack.slow--
	}
}

// advancedLocked is called when a subscriber has taken something.
func (t *terminal) advancedLocked(s *subscription) {
	switch {
	case !t.ack.held || s.farBehind():
	case !t.holds:
		t.releaseAckLocked()
	case s.holding.holds:
		s.chargeLocked(time.Now())
		t.settleLocked()
	}
}

// settleLocked releases the owner if all subscribers for which it was held have caught
// up. If the child can wait, other subscribers may have fallen behind meanwhile because
// of text in transit; the owner is then held for them.
func (t *terminal) settleLocked() {
	if t.ack.held && t.ack.slow == 0 && (!t.holds || !t.pacedLocked()) {
		t.releaseAckLocked()
	}
}

// leftLocked is called when a subscription has ended.
func (t *terminal) leftLocked(s *subscription) {
	s.unholdLocked()
	t.settleLocked()
}

// freeLocked records that the terminal waits for nobody.
func (t *terminal) freeLocked() {
	t.ack.held = false
	if t.ack.slow == 0 {
		return
	}
	now := time.Now()
	for _, s := range t.subs {
		if s.holding.holds {
			s.chargeLocked(now)
			s.unholdLocked()
		}
	}
}
