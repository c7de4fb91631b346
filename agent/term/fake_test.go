package term_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// start returns a terminal on a fake pty in a pool of its own.
func start(t *testing.T, o term.Options, s term.Spec) (term.Handle, *testkit.Child, *term.Pool) {
	t.Helper()
	f := testkit.NewChild()
	o.Start = func(term.ID, pty.Command) (term.PTY, error) { return f, nil }
	pool := term.NewPool(o)
	if s.Command == nil {
		s.Command = []string{"fake"}
	}
	if s.Cwd == "" {
		s.Cwd = testkit.Abs("/")
	}
	h := must.Get(pool.As(term.User).Spawn(s))(t)
	t.Cleanup(func() {
		check.OK(t, pool.Close(context.Background()))
	})
	return h, f, pool
}

// item is an event in a form that compares and prints well.
type item struct {
	Data string
	Off  int64
	Mark output.MarkKind
}

// events reads all available events, joining neighbouring data.
func events(t *testing.T, r *output.Reader) []item {
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

func reader(t *testing.T, h term.Handle, o output.ReaderOptions) *output.Reader {
	t.Helper()
	r := must.Get(h.Reader(o))(t)
	t.Cleanup(r.Close)
	return r
}

// prints has a child print, and returns when everybody has done what follows from that.
func prints(child *testkit.Child, text string) {
	child.Print(text)
	synctest.Wait()
}
