package jsonrpc

import (
	"context"

	"tether/internal/change"
)

// writeLoop sends queued messages until the peer ends. ctx is never cancelled: a blocked
// Send ends when the channel is closed.
func (p *Peer) writeLoop(ctx context.Context) {
	batch, gathers := p.ch.(BatchSender)
	held := false // the channel may have kept messages back, see BatchSender.SendMore
	for {
		q, m, more := p.next(!held)
		if q == nil {
			return
		}
		var err error
		p.sends()
		switch {
		case m.data == nil:
			err = batch.Flush(ctx)
			held = false
		case q == &p.beside.out:
			err = p.binary.SendBinary(ctx, m.data)
			held = false
		case more && gathers:
			// The channel may gather messages while more are queued. It never waits for
			// more to come.
			err = batch.SendMore(ctx, m.data)
			held = true
		default:
			err = p.ch.Send(ctx, m.data)
			held = false
		}
		p.since.Store(0)
		if err != nil {
			p.shut(&writeError{err}, nil)
			return
		}
		if m.data != nil {
			p.sent(q, m)
		}
	}
}

// sendDirectly sends msg on the caller's goroutine if nothing is queued and nobody
// writes: waking writeLoop would delay an echo by a thread switch. It returns false if
// msg has to be queued instead.
func (p *Peer) sendDirectly(ctx context.Context, msg []byte) (done bool, err error) {
	if !p.beginDirect() {
		return false, nil
	}
	return true, p.endDirect(p.hand(ctx, msg), nil, false)
}

// PullDirectly sends the messages of [Options.Source] on the caller's goroutine if
// nothing else is queued and nobody writes, as SendRaw does. The caller has checked that
// the channel takes limit bytes without blocking; the first message beyond them and all
// later ones are left to the write goroutine. If done is false, nothing was sent and the
// caller has to call [Peer.Wake].
func (p *Peer) PullDirectly(ctx context.Context, limit int) (done bool) {
	if !p.beginDirect() {
		return false
	}
	var msg []byte
	var more bool
	var err error
	for err == nil {
		if msg, more = p.opts.Source(); msg == nil || len(msg) > limit {
			break
		}
		limit -= len(msg)
		err, msg = p.hand(ctx, msg), nil
	}
	_ = p.endDirect(err, msg, more) // Run reports it
	return true
}

// beginDirect makes the caller the writer, if nothing is queued and nobody writes.
// writeLoop leaves the channel alone until endDirect.
func (p *Peer) beginDirect() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := p.cancel != nil && p.cause == nil
	if !running || p.writing || p.late != nil || !p.control.empty() || !p.bulk.empty() || !p.beside.overtaken(p) {
		return false
	}
	p.writing, p.direct = true, true
	return true
}

// hand gives msg to the channel, between beginDirect and endDirect.
func (p *Peer) hand(ctx context.Context, msg []byte) error {
	p.pull(msg)
	p.sends()
	err := p.ch.Send(context.WithoutCancel(ctx), msg)
	p.since.Store(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled.cost -= len(msg) + messageCost
	return err
}

// endDirect lets writeLoop write again. late, if not nil, is the message that it writes
// next; more reports that the source has another one. err is the channel's error;
// endDirect returns the error for the sender.
func (p *Peer) endDirect(err error, late []byte, more bool) error {
	if err != nil {
		p.shut(&writeError{err}, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = late
	if !p.control.empty() || !p.bulk.empty() || p.drained != nil || p.woken || late != nil || more {
		p.wakeWriter()
	}
	p.writing, p.direct, p.woken = false, false, false
	if err != nil {
		err = p.closedLocked()
	}
	return err
}

// next returns the next message, which counts as being written from now on: of the
// control queue, else of the bulk queue, else what PullDirectly has left, else what the
// source returns, else of the stream, which does not wait for ever. q is where its cost
// is counted, nil when the peer has ended. If there is no message, next waits for one or,
// if wait is false, returns one without data. more reports that another message is likely
// to follow.
func (p *Peer) next(wait bool) (q *queue, m outgoing, more bool) {
	asked := p.opts.Source == nil // there is no source, or it has just returned no message
	for {
		p.mu.Lock()
		if p.cause != nil {
			p.mu.Unlock()
			return nil, outgoing{}, false
		}
		if p.direct {
			p.woken = true
			p.mu.Unlock()
			p.awaitWake()
			continue
		}
		if msg := p.beside.notice(p.opts.Taken); msg != nil {
			p.writing = true
			p.mu.Unlock()
			return &p.pulled, p.pull(msg), false
		}
		others := !p.control.empty() || !p.bulk.empty() || p.late != nil || !asked
		if m, ok := p.beside.next(p, others); ok {
			p.writing = true
			if !others && wait {
				p.drainedLocked()
			}
			p.mu.Unlock()
			return &p.beside.out, m, false
		}
		q = &p.control
		if q.empty() {
			q = &p.bulk
		}
		if !q.empty() {
			m = q.pop()
			more = !p.control.empty() || !p.bulk.empty()
			p.writing = true
			p.mu.Unlock()
			return q, m, more
		}
		if m.data, p.late = p.late, nil; m.data != nil {
			p.writing = true
			p.mu.Unlock()
			return &p.pulled, p.pull(m.data), true
		}
		idle := asked && wait
		p.writing = !idle
		if idle {
			p.drainedLocked()
		}
		p.mu.Unlock()
		switch {
		case idle:
			p.awaitWake()
			asked = p.opts.Source == nil
		case asked:
			return q, outgoing{}, false
		default:
			m.data, more = p.opts.Source()
			if m.data != nil {
				return &p.pulled, p.pull(m.data), more
			}
			asked = !more // look at the queues again before waiting: messages may have been queued meanwhile
		}
	}
}

// drainedLocked releases those who wait in Flush.
func (p *Peer) drainedLocked() {
	if p.drained != nil {
		close(p.drained)
		p.drained = nil
	}
}

func (p *Peer) awaitWake() {
	select {
	case <-p.wake:
	case <-p.done:
	}
}

// pull counts the cost of a message of the source.
func (p *Peer) pull(data []byte) outgoing {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled.cost += len(data) + messageCost
	return outgoing{data: data}
}

// Wake lets the peer ask [Options.Source] again. It never blocks.
func (p *Peer) Wake() { p.wakeWriter() }

// sent releases a message that the channel has taken.
func (p *Peer) sent(q *queue, m outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case q == &p.beside.out:
		p.beside.release(m)
	case p.cause == nil:
		q.release(m)
	}
	p.writing = false
}

// wakeWriter tells writeLoop that something was queued.
func (p *Peer) wakeWriter() {
	change.Wake(p.wake) // it has been woken and has not looked yet
}

// SendRaw sends one whole encoded message, for example one from package ahp, behind all
// earlier messages of SendRaw. msg is not kept. If nothing else is being written it goes
// to the channel at once, and SendRaw blocks as long as the channel does. Otherwise it is
// copied to the bulk queue, and SendRaw blocks while that is full, until ctx is done;
// senders are then served in order of arrival. It does not check msg.
func (p *Peer) SendRaw(ctx context.Context, msg []byte) error {
	if len(msg) > p.opts.MaxMessage {
		return ErrTooLarge
	}
	if done, err := p.sendDirectly(ctx, msg); done {
		return err
	}
	return p.enqueue(ctx, &p.bulk, msg)
}

// Notify queues a notification on the control queue and returns; it may overtake messages
// queued by [Peer.SendRaw]. params is encoded as JSON; a json.RawMessage is sent
// unchanged, nil is left out. Notify blocks while the control queue is full, until ctx is
// done.
func (p *Peer) Notify(ctx context.Context, method string, params any) error {
	msg, err := EncodeNotification(method, params)
	if err != nil {
		return err
	}
	return p.enqueue(ctx, &p.control, msg)
}

// Flush waits until everything queued has been handed to the channel, until ctx is done,
// or until the peer has ended, which is an error. Other senders that continue to send
// prolong it. Use it before closing, after a close message.
func (p *Peer) Flush(ctx context.Context) error {
	p.mu.Lock()
	if err := p.closedLocked(); err != nil || p.control.empty() && p.bulk.empty() && !p.writing {
		p.mu.Unlock()
		return err
	}
	if p.drained == nil {
		p.drained = make(chan struct{})
	}
	drained := p.drained
	p.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return p.closed()
	}
}

// Drop removes the messages of [Peer.SendRaw] and [Peer.CallBulk] that are still queued
// and that match selects. They are not sent and their senders are not told; a caller of
// CallBulk waits for an answer that never arrives. A message that is being written is
// sent. match must not call the peer and must not keep its argument.
func (p *Peer) Drop(match func(msg []byte) bool) {
	p.mu.Lock()
	p.bulk.remove(match)
	p.mu.Unlock()
	p.wakeWriter() // there may be nothing left for a Flush to wait for
}

// enqueue queues a copy of msg on q. It blocks while q is full.
func (p *Peer) enqueue(ctx context.Context, q *queue, msg []byte) error {
	if len(msg) > p.opts.MaxMessage {
		return ErrTooLarge
	}
	p.mu.Lock()
	if err := p.closedLocked(); err != nil {
		p.mu.Unlock()
		return err
	}
	if len(q.waiters) == 0 && q.fits(len(msg)) {
		q.push(msg)
		p.mu.Unlock()
		p.wakeWriter()
		return nil
	}
	w := &waiter{data: msg, ready: make(chan struct{})}
	q.waiters = append(q.waiters, w)
	p.mu.Unlock()
	return p.wait(ctx, q, w)
}

// wait blocks until w was admitted to q.
func (p *Peer) wait(ctx context.Context, q *queue, w *waiter) error {
	var err error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.done:
		err = p.closed()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.queued {
		return nil // it was admitted in the meantime
	}
	q.forget(w)
	return err
}

// reply queues msg itself on the control queue; its caller must not use it any more. It
// ignores the queue's bound and never blocks: [Peer.readLoop] stops reading while the
// bound is exceeded.
func (p *Peer) reply(msg []byte) error {
	p.mu.Lock()
	err := p.closedLocked()
	if err == nil {
		p.control.pushOwned(msg)
	}
	p.mu.Unlock()
	if err == nil {
		p.wakeWriter()
	}
	return err
}
