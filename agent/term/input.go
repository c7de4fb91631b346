package term

import (
	"context"
	"time"
)

// maxInput bounds the input that waits for a child which does not read, in
// bytes: a large paste.
const maxInput = 1 << 20

// inputQueue is what was typed and not yet written to the pty. Its own queue,
// and a goroutine that exists only while the child does not take it, keep input
// from ever waiting for output or the other way round. Guarded by the terminal's
// mutex.
type inputQueue struct {
	waiting []byte
	typing  bool          // writeInput runs
	closed  bool          // the pty takes no more
	space   chan struct{} // closed when the queue was emptied; made by who waits
}

// write queues p, typed by a, for the child and returns when it is queued, which
// may wait while maxInput bytes are queued already. It returns ErrExited when the
// child is gone; what was queued then is dropped. A promotion meanwhile ends it:
// what an agent has not queued by then is not typed into what is the person's.
func (t *Terminal) write(ctx context.Context, a Actor, p []byte) error {
	for len(p) > 0 {
		t.mu.Lock()
		q := &t.input
		if err := Allow(a, OpType, Info{ID: t.id, Owner: t.ownership.owner, Private: t.origin.private}); err != nil {
			t.mu.Unlock()
			return err
		}
		if q.closed {
			t.mu.Unlock()
			return ErrExited
		}
		n := min(len(p), maxInput-len(q.waiting))
		q.waiting = append(q.waiting, p[:n]...)
		now := time.Now()
		t.activity.typed = now
		t.pool.typed.Store(&now)
		t.readers.makeRoom() // who types does not wait for slow readers
		t.paceLocked()
		t.commands.tracker.Input(p[:n])
		p = p[n:]
		types := !q.typing && len(q.waiting) > 0
		q.typing = q.typing || types
		if len(p) == 0 {
			t.mu.Unlock()
			if types {
				t.typeNow()
			}
			return nil
		}
		if types {
			go t.writeInput()
		}
		if q.space == nil {
			q.space = make(chan struct{})
		}
		space := q.space
		t.mu.Unlock()
		select {
		case <-space:
		case <-t.life.done:
			return ErrExited
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// typeNow writes what the child has room for, which is nearly always
// everything that is queued, and leaves the rest to writeInput. A goroutine that is
// started for a key costs its echo more time than the write does.
func (t *Terminal) typeNow() {
	w, ok := t.pty.(interface{ TryWrite(p []byte) (int, error) })
	if !ok {
		go t.writeInput()
		return
	}
	t.mu.Lock()
	batch := t.input.waiting
	t.mu.Unlock()
	n, err := w.TryWrite(batch)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.input.shut()
	}
	switch rest := t.input.waiting[min(n, len(t.input.waiting)):]; {
	case len(rest) > 0:
		t.input.waiting = rest
		go t.writeInput()
	default:
		t.input.empty()
		t.input.typing = false
	}
}

// writeInput writes what is queued and ends when there is nothing left.
func (t *Terminal) writeInput() {
	for {
		t.mu.Lock()
		batch := t.input.waiting
		t.input.empty()
		if len(batch) == 0 || t.input.closed {
			t.input.typing = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if _, err := t.pty.Write(batch); err != nil {
			t.mu.Lock()
			t.input.shut()
			t.input.typing = false
			t.mu.Unlock()
			return
		}
	}
}

// empty takes what is queued out and lets whoever waits for that go on.
func (q *inputQueue) empty() {
	q.waiting = nil
	if q.space != nil {
		close(q.space)
		q.space = nil
	}
}

func (q *inputQueue) shut() {
	q.closed = true
	q.empty()
}
