package uplink

import (
	"context"
	"errors"
	"time"
)

const (
	// Bounds of one terminal's text in transit, in bytes. They decide how long another terminal's echo waits during a flood, so the bound is
	// least while somebody types at another. Otherwise it is the amount that the host acknowledges within windowTime, measured over measureTime: if
	// daemon and host share processors with the child, less would make them wait for each other while the child prints.
	windowLeast = 64 << 10
	windowMost  = 256 << 10
	windowTime  = 8 * time.Millisecond
	measureTime = 20 * time.Millisecond
	// frame is the most text in one action, in bytes, and typedFrame while somebody types at another terminal.
	frame      = 64 << 10
	typedFrame = 32 << 10
	// little bounds the text in transit, and the text sent within the last pause, with which the next text goes out at once, in bytes: echo
	// and prompts. Beyond it text gathers to a whole frame until an acknowledgement arrives and the pause is over: a near host answers each
	// read of the pty before the next one, and tiny frames cost a flood twice the CPU.
	little = 2 << 10
	pause  = 2 * time.Millisecond
)

// errSilent: see publisher.patience.
var errSilent = errors.New("the host answers but acknowledges no output")

// patience is how much longer the host may leave all text in transit unacknowledged. A host that does so for two heartbeats, while it
// answers those, has lost an acknowledgement or the terminal: announcing the terminal again makes it report its state.
func (p *publisher) patience() time.Duration {
	return 2*p.s.link.opts.Heartbeat - time.Since(p.heard)
}

// inflight is the amount of text in transit, why the host takes no more of it, and whether the host does not know the audience yet.
func (p *publisher) inflight() (bytes int64, problem string, stale bool) {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	if p.le.acked != p.acked {
		p.acked, p.heard = p.le.acked, time.Now()
	}
	return p.le.sent - p.le.acked, p.le.problem, p.le.told != p.le.version
}

// measure sets the window to the amount that the host has acknowledged within windowTime. Only a host that acknowledges by itself is
// measured.
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

// bounds are the size of the next frame and of the window at this moment.
func (p *publisher) bounds() (piece, most int64) {
	piece, most = frame, p.window
	if p.le.h.TypedElsewhere() {
		piece, most = typedFrame, windowLeast
	}
	return piece, most
}

// room is how much text may go in the next action, besides the text in transit.
func (p *publisher) room(inflight int64) int64 {
	piece, most := p.bounds()
	if n := p.s.marker.MaxDataBytes; n > 0 {
		piece = min(piece, n)
	}
	return min(piece, most-inflight)
}

// least is how many bytes are worth a frame now. If that changes by itself, it does so after rest.
func (p *publisher) least(inflight int64) (n int64, rest time.Duration) {
	piece, _ := p.bounds()
	if inflight > little {
		return piece, 0
	}
	if p.burst <= little {
		return 1, 0
	}
	if rest = pause - time.Since(p.sentAt); rest > 0 {
		return piece, rest
	}
	return 1, 0
}

// wait returns when there may be something to do again: least bytes, a mark or room, or after rest if that is not 0.
func (p *publisher) wait(ctx context.Context, inflight, least int64, rest time.Duration) error {
	if inflight > 0 && !p.s.marker.Resume {
		return p.barrier(ctx) // no acknowledgement comes by itself
	}
	if inflight > 0 {
		left := p.patience()
		if left <= 0 {
			return errSilent
		}
		rest = sooner(rest, left)
	}
	if p.retitled {
		rest = sooner(rest, p.titleRest())
	}
	if p.owesInput() {
		if left := p.inputRest(); left > 0 && p.reader.Pending() == 0 {
			rest = sooner(rest, left)
		}
	}
	var ready <-chan struct{}
	if p.room(inflight) > 0 {
		ready = p.reader.Ready(int(least))
	}
	var rested <-chan time.Time
	if rest > 0 {
		rested = p.after(rest)
		defer p.timer.Stop()
	}
	select {
	case <-ready:
		p.due = true
	case <-p.le.acks:
	case <-p.input.changed:
	case <-rested:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sooner is the shorter of two times to rest, of which the first may be 0 for none.
func sooner(rest, other time.Duration) time.Duration {
	if other = max(other, 1); rest == 0 || other < rest {
		return other
	}
	return rest
}

// after is time.After with one timer for all.
func (p *publisher) after(d time.Duration) <-chan time.Time {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	return p.timer.C
}

// barrier proves by a ping that everything sent has arrived, for hosts that do not acknowledge. The ping goes the same way as the output.
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
