package term

import (
	"bytes"
	"context"
	"time"

	"tether/internal/change"
)

// maxInput bounds the queued input of a child that does not read, in bytes: a large
// paste.
const maxInput = 1 << 20

const interrupt = 0x03 // ^C

// inputQueue is the input that is not written to the pty yet. Its goroutine, writeInput,
// exists only while the child does not take the input, so that input and output never
// wait for each other. Guarded by the terminal's mutex.
type inputQueue struct {
	waiting []byte
	typing  bool          // writeInput is running
	closed  bool          // the pty takes no more input
	space   change.Signal // raised when the queue was emptied
}

// write queues p, which a types, and returns when all of it is queued. It blocks while
// maxInput bytes are queued, for d at most if that is not 0. It returns ErrExited if the
// child is gone; queued input is dropped then. If the terminal is promoted while an
// agent's write blocks, the write ends with an error, and the rest is not typed into what
// is the person's terminal now.
func (t *Terminal) write(ctx context.Context, d time.Duration, a Actor, p []byte) error {
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
		if a == User {
			t.activity.person = now
		}
		if bytes.IndexByte(p[:n], interrupt) >= 0 {
			t.activity.stopped = now
		}
		t.answeredLocked(p[:n])
		t.stirLocked()
		t.pool.inputs.Input(t)
		t.holding.makeRoom() // input does not wait for slow readers
		t.paceLocked()
		t.log.Typed(p[:n])
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
		space := q.space.Next()
		t.mu.Unlock()
		if d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
			d = 0
		}
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

// typeNow writes as much as the child takes without blocking, nearly always everything,
// and leaves the rest to writeInput. It runs on the caller's goroutine: starting another
// one would delay the echo by more than the write takes.
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

// writeInput writes the queued input, and ends when the queue is empty.
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

// empty takes everything out of the queue and wakes writers that wait for room.
func (q *inputQueue) empty() {
	q.waiting = nil
	q.space.Raise()
}

func (q *inputQueue) shut() {
	q.closed = true
	q.empty()
}
