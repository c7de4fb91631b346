package uplink

import (
	"context"
	"errors"
	"time"
)

const (
	// The window bounds how many bytes of one terminal are sent but not acknowledged.
	// Another terminal's echo queues behind them, so it is windowLeast while somebody
	// types at another terminal. Otherwise it is what the host acknowledges within
	// windowTime, at least windowLeast and at most windowMost, measured over measureTime.
	// With a smaller window, daemon and host would wait for each other when they share
	// processors with the child.
	windowLeast = 64 << 10
	windowMost  = 256 << 10
	windowTime  = 8 * time.Millisecond
	measureTime = 20 * time.Millisecond
	// frame is the most text in one action, in bytes, and typedFrame while somebody types
	// at another terminal.
	frame      = 64 << 10
	typedFrame = 32 << 10
	// little is how many unacknowledged bytes may be in transit while output is still
	// sent without gathering more, see flow.Gather.
	little = 2 << 10
)

// errSilent ends publisher.run, see silenceLeft. The terminal is then announced again
// after a pause.
var errSilent = errors.New("the host answers but acknowledges no output")

// silenceLeft returns how much longer the host may acknowledge none of the text in
// transit. A host that acknowledges nothing for two heartbeats, although it answers them,
// has lost an acknowledgement or the terminal: a new announcement makes it report its
// state.
func (p *publisher) silenceLeft() time.Duration {
	return 2*p.s.link.opts.Heartbeat - time.Since(p.heard)
}

// inflight updates acked and heard from the link's state. It returns the number of
// unacknowledged bytes, why the host accepts no more output ("" if it does), and whether
// the host must be told of a changed audience.
func (p *publisher) inflight() (bytes int64, problem string, stale bool) {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	if p.le.acked != p.acked {
		p.acked, p.heard = p.le.acked, time.Now()
	}
	return p.le.sent - p.le.acked, p.le.problem, p.le.sentVersion != p.le.version
}

// measure sets the window to the amount that the host acknowledges within windowTime, at
// its rate since the last measurement. It does so only for a host with resume, which
// acknowledges by itself.
func (p *publisher) measure() {
	now := time.Now()
	took := now.Sub(p.measured)
	if took < measureTime || !p.s.marker.Resume {
		return
	}
	rate := float64(p.acked-p.measuredAt) / float64(took)
	p.window = min(max(int64(rate*float64(windowTime)), windowLeast), windowMost)
	p.measured, p.measuredAt = now, p.acked
}

// bounds returns the greatest size of the next frame, and the size of the window.
func (p *publisher) bounds() (size, window int64) {
	if p.le.h.TypedElsewhere() {
		return typedFrame, windowLeast
	}
	return frame, p.window
}

// room returns how much text the next action may have, given the text in transit.
func (p *publisher) room(inflight int64) int64 {
	size, window := p.bounds()
	if n := p.s.marker.MaxDataBytes; n > 0 {
		size = min(size, n)
	}
	return min(size, window-inflight)
}

// wait blocks until there may be something to send: at least so many readable bytes, a
// mark, an acknowledgement, a change of the input state, or after pause if that is not 0.
// If text is unacknowledged and the host does not acknowledge by itself, it calls barrier
// instead. It returns errSilent if the host has acknowledged nothing for too long.
func (p *publisher) wait(ctx context.Context, inflight, least int64, pause time.Duration) error {
	if inflight > 0 && !p.s.marker.Resume {
		return p.barrier(ctx) // no acknowledgement comes by itself
	}
	if inflight > 0 {
		left := p.silenceLeft()
		if left <= 0 {
			return errSilent
		}
		pause = sooner(pause, left)
	}
	if p.retitled {
		pause = sooner(pause, p.titleLeft())
	}
	if p.owesInput() {
		if left := p.inputLeft(); left > 0 && p.reader.Pending() == 0 {
			pause = sooner(pause, left)
		}
	}
	if p.s.marker.States && p.s.link.opts.Checkout != nil {
		pause = sooner(pause, max(p.checkoutLeft(), inputPause)) // it waits until the output was sent
	}
	var ready <-chan struct{}
	if p.room(inflight) > 0 {
		ready = p.reader.Ready(int(least))
	}
	var paused <-chan time.Time
	if pause > 0 {
		paused = p.after(pause)
		defer p.timer.Stop()
	}
	select {
	case <-ready:
		p.due = true
	case <-p.le.acks:
	case <-p.input.changed:
	case <-paused:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sooner returns the shorter of two pauses. A first one of 0 counts as none.
func sooner(pause, other time.Duration) time.Duration {
	if other = max(other, 1); pause == 0 || other < pause {
		return other
	}
	return pause
}

// after is time.After with a timer that is used again.
func (p *publisher) after(d time.Duration) <-chan time.Time {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	return p.timer.C
}

// barrier sends a ping behind all output and blocks until the answer: that output has
// then arrived. Hosts that do not acknowledge need it, and so does the exit.
func (p *publisher) barrier(ctx context.Context) error {
	p.s.link.mu.Lock()
	sent := p.le.sent
	p.s.link.mu.Unlock()
	if err := p.s.conn.Barrier(ctx); err != nil {
		return err
	}
	p.s.link.update(p.le, func(le *lending) { le.acked = sent })
	return nil
}
