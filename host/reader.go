package host

import (
	"context"

	"tether/agenttools"
	"tether/host/output"
)

// textReader implements agenttools.Reader over the recorded text of one terminal.
type textReader struct {
	lookedAt
	sight int64 // value of Host.sight for which p was known to see the terminal
	out   *output.Reader
}

// newReader returns a reader at an offset.
func (l lookedAt) newReader(from int64) *textReader {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return &textReader{lookedAt: l, sight: l.h.sight - 1, out: l.t.out.Reader(from)}
}

// maySeeLocked reports whether the reader may continue, because the audience may have
// changed.
func (r *textReader) maySeeLocked() bool {
	if r.p == nil || r.sight == r.h.sight {
		return true
	}
	v := r.h.roster.Viewer(*r.p)
	from, ok := v.Sees(r.t.subject, r.h.roster)
	r.from, r.sight = from, r.h.sight
	return ok
}

// TryNext implements agenttools.Reader.
func (r *textReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	ev, ok, _, err := r.step(buf, false)
	return ev, ok, err
}

// Next implements agenttools.Reader.
func (r *textReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		ev, ok, moved, err := r.step(buf, true)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return agenttools.Event{}, ctx.Err()
		case <-r.h.ctx.Done():
			return agenttools.Event{}, errClosing
		}
	}
}

// Close implements agenttools.Reader.
func (r *textReader) Close() {}

// step returns the next event. If there is none and wait is set, moved is closed when
// there may be one. The host's lock is held only to find the text, not to decode it.
func (r *textReader) step(buf []byte, wait bool) (ev agenttools.Event, ok bool, moved <-chan struct{}, err error) {
	ev, ok, found, moved, err := r.find(len(buf), wait)
	if found {
		return r.out.Decode(buf), true, nil, nil
	}
	return ev, ok, moved, err
}

func (r *textReader) find(room int, wait bool) (ev agenttools.Event, ok, found bool, moved <-chan struct{}, err error) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if !r.out.Over() && !r.maySeeLocked() {
		return ev, false, false, nil, agenttools.ErrNotFound
	}
	r.h.wantLocked(r.t)
	ev, ok, found, err = r.out.Find(room, r.from)
	if !ok && !found && wait {
		moved = r.t.moved.Next()
	}
	return ev, ok, found, moved, err
}
