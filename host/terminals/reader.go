package terminals

import (
	"context"

	"tether/agenttools"
	"tether/host/output"
)

// textReader implements agenttools.Reader over the recorded text of one terminal.
type textReader struct {
	Seen
	sight int64 // value of Book.Sight for which p was known to see the terminal
	out   *output.Reader
}

// newReader returns a reader at an offset.
func (l Seen) newReader(from int64) *textReader {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	return &textReader{Seen: l, sight: l.book.Sight - 1, out: l.t.Out.Reader(from)}
}

// maySee reports whether the reader may continue, because the audience may have
// changed.
func (r *textReader) maySee() bool {
	if r.p == nil || r.sight == r.book.Sight {
		return true
	}
	v := r.book.Roster.Viewer(*r.p)
	from, ok := v.Sees(r.t.Subject, r.book.Roster)
	r.from, r.sight = from, r.book.Sight
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
		case <-r.book.opts.Context.Done():
			return agenttools.Event{}, ErrClosing
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
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	if !r.out.Over() && !r.maySee() {
		return ev, false, false, nil, agenttools.ErrNotFound
	}
	r.book.want(r.t)
	ev, ok, found, err = r.out.Find(room, r.from)
	if !ok && !found && wait {
		moved = r.t.Moved.Next()
	}
	return ev, ok, found, moved, err
}
