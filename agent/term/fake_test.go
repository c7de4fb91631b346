package term_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"tether/agent/term"
	"tether/platform/pty"
)

// fakePTY is a child without a process: tests write its output and end it.
// It blocks only on channels, so it lives in synctest bubbles.
type fakePTY struct {
	out    chan []byte
	eof    chan struct{}
	closed chan struct{}
	reaped chan struct{}
	once   sync.Once
	exit   pty.Exit

	mu     sync.Mutex
	rest   []byte
	typed  []byte
	size   term.Size
	killed bool
}

func newFakePTY() *fakePTY {
	return &fakePTY{out: make(chan []byte), eof: make(chan struct{}), closed: make(chan struct{}), reaped: make(chan struct{})}
}

// print hands p to the pump as one read and returns when it was taken.
func (f *fakePTY) print(p string) {
	select {
	case f.out <- []byte(p):
	case <-f.eof:
	case <-f.closed:
	}
}

// end is the end of output and of the process.
func (f *fakePTY) end(code int) {
	f.exit = pty.Exit{Code: code}
	close(f.reaped)
	close(f.eof)
}

func (f *fakePTY) WaitReadable() error {
	f.mu.Lock()
	has := len(f.rest) > 0
	f.mu.Unlock()
	if has {
		return nil
	}
	select {
	case <-f.eof:
		return io.EOF
	case p := <-f.out:
		f.mu.Lock()
		f.rest = p
		f.mu.Unlock()
		return nil
	case <-f.closed:
		return io.EOF
	}
}

func (f *fakePTY) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *fakePTY) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typed = append(f.typed, p...)
	return len(p), nil
}

func (f *fakePTY) Resize(s term.Size) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size = s
	return nil
}

func (f *fakePTY) Wait() pty.Exit { <-f.reaped; return f.exit }

func (f *fakePTY) Kill(context.Context, time.Duration) error {
	f.mu.Lock()
	again := f.killed
	f.killed = true
	f.mu.Unlock()
	if !again {
		f.end(137)
	}
	return nil
}

func (f *fakePTY) Pid() int { return 1 }

func (f *fakePTY) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// start returns a terminal on a fake pty in a pool of its own.
func start(t *testing.T, o term.Options, s term.Spec) (term.Handle, *fakePTY, *term.Pool) {
	t.Helper()
	f := newFakePTY()
	o.Start = func(term.ID, pty.Command) (term.PTY, error) { return f, nil }
	pool := term.NewPool(o)
	if s.Command == nil {
		s.Command = []string{"fake"}
	}
	if s.Cwd == "" {
		s.Cwd = "/"
	}
	h, err := pool.As(term.User).Spawn(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h, f, pool
}

// item is an event in a form that compares and prints well.
type item struct {
	Data string
	Off  int64
	Mark term.MarkKind
}

// events reads until what is there is exhausted, joining neighbouring data.
func events(t *testing.T, r *term.Reader) []item {
	t.Helper()
	var out []item
	buf := make([]byte, 4096)
	for {
		ev, ok, err := r.TryNext(buf)
		if err == io.EOF || err == nil && !ok {
			return out
		}
		if err != nil {
			t.Fatalf("after %v: %v", out, err)
		}
		switch n := len(out); {
		case ev.Mark != nil:
			out = append(out, item{Mark: ev.Mark.Kind})
		case n > 0 && out[n-1].Mark == 0 && out[n-1].Off+int64(len(out[n-1].Data)) == ev.Off:
			out[n-1].Data += string(ev.Data)
		default:
			out = append(out, item{Data: string(ev.Data), Off: ev.Off})
		}
	}
}

func reader(t *testing.T, h term.Handle, o term.ReaderOptions) *term.Reader {
	t.Helper()
	r, err := h.Reader(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}
