package events

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"tether/agenttools"
	"tether/vocab"
)

// fakes are terminals whose children the test plays.
type fakes struct {
	mu      sync.Mutex
	all     []*fake
	version uint64
	moved   chan struct{}
}

func (f *fakes) add(id string) *fake {
	t := &fake{f: f, changed: make(chan struct{}), info: agenttools.Info{ID: id, Name: id, Cols: 80, Rows: 24, Owner: agenttools.OwnerUser, CreatedAt: time.Now()}}
	f.mu.Lock()
	f.all = append(f.all, t)
	f.mu.Unlock()
	f.tell()
	return t
}

func (f *fakes) remove(t *fake) {
	f.mu.Lock()
	f.all = slices.DeleteFunc(f.all, func(o *fake) bool { return o == t })
	f.mu.Unlock()
	f.tell()
}

func (f *fakes) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	if f.moved != nil {
		close(f.moved)
	}
	f.moved = make(chan struct{})
}

func (f *fakes) List() (out []agenttools.Info) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.all {
		out = append(out, t.Info())
	}
	return out
}

func (f *fakes) Open(id string) (agenttools.Terminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.all {
		if t.info.ID == id {
			return t, nil
		}
	}
	return nil, agenttools.ErrNotFound
}

func (f *fakes) Changed(ctx context.Context, since uint64) (uint64, error) {
	for {
		f.mu.Lock()
		now, moved := f.version, f.moved
		f.mu.Unlock()
		if now != since {
			return now, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return since, ctx.Err()
		}
	}
}

// fake is one terminal: a log of bytes, with marks.
type fake struct {
	f       *fakes
	mu      sync.Mutex
	info    agenttools.Info
	log     []byte // from info.Start on
	marks   []agenttools.Event
	state   vocab.State
	changed chan struct{}
	limit   int
}

func (t *fake) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	t.info.End = t.info.Start + int64(len(t.log))
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *fake) print(format string, args ...any) {
	t.change(func() {
		t.log = fmt.Appendf(t.log, format, args...)
		if n := len(t.log) - t.limit; t.limit > 0 && n > 0 {
			t.log = slices.Clone(t.log[n:])
			t.info.Start += int64(n)
		}
	})
}

func (t *fake) finish(c vocab.Command) {
	t.change(func() {
		t.log = append(t.log, 0) // as a shell's mark takes room
		c.End = t.info.End
		t.marks = append(t.marks, agenttools.Event{Off: t.info.Start + int64(len(t.log)), Finished: &c})
	})
}

func (t *fake) exit(code int) {
	t.change(func() {
		t.info.Exit = &vocab.Exit{Code: code, Reason: "exited", At: time.Now()}
		t.marks = append(t.marks, agenttools.Event{Off: t.info.Start + int64(len(t.log)), Exited: true})
	})
	t.f.tell()
}

func (t *fake) Info() agenttools.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.info
}

func (t *fake) Commands() []vocab.Command { return nil }

func (t *fake) State() (vocab.State, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state, t.changed
}

func (t *fake) Read(from int64) (agenttools.Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &fakeReader{t: t, pos: min(from, t.info.End)}
	for _, m := range t.marks {
		if m.Off < r.pos {
			r.mark++
		}
	}
	return r, nil
}

type fakeReader struct {
	t    *fake
	pos  int64
	mark int
	over bool
}

func (r *fakeReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.over {
		return agenttools.Event{}, false, io.EOF
	}
	if r.pos < t.info.Start {
		lost := t.info.Start - r.pos
		r.pos = t.info.Start
		for r.mark < len(t.marks) && t.marks[r.mark].Off < r.pos {
			r.mark++
		}
		return agenttools.Event{Lost: lost, Off: r.pos}, true, nil
	}
	limit := t.info.End
	if r.mark < len(t.marks) {
		m := t.marks[r.mark]
		if m.Off <= r.pos {
			r.mark++
			r.over = m.Exited
			return m, true, nil
		}
		limit = m.Off
		if m.Finished != nil {
			limit--
		}
		if r.pos == limit {
			r.pos = m.Off
			return agenttools.Event{Off: r.pos}, true, nil
		}
	}
	if r.pos >= limit {
		return agenttools.Event{}, false, nil
	}
	n := copy(buf, t.log[r.pos-t.info.Start:limit-t.info.Start])
	r.pos += int64(n)
	return agenttools.Event{Data: buf[:n], Off: r.pos}, true, nil
}

func (r *fakeReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		r.t.mu.Lock()
		changed := r.t.changed
		r.t.mu.Unlock()
		ev, ok, err := r.TryNext(buf)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agenttools.Event{}, ctx.Err()
		}
	}
}

func (r *fakeReader) Close() {}
