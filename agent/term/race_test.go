package term_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// gated is a child some of whose methods wait until they are let through.
type gated struct {
	*testkit.Child
	resize chan struct{} // nil: Resize does not wait
	write  error         // the error of Write; nil: success
	writes chan struct{} // nil: Write does not wait
	size   term.Size     // of the last Resize
}

func (g *gated) Resize(s term.Size) error {
	if g.resize != nil {
		<-g.resize
	}
	g.size = s
	return nil
}

func (g *gated) Write(p []byte) (int, error) {
	if g.writes != nil {
		<-g.writes
	}
	if g.write != nil {
		return 0, g.write
	}
	return g.Child.Write(p)
}

// startGated is start with a child of these manners.
func startGated(t *testing.T, g *gated) term.Handle {
	t.Helper()
	g.Child = testkit.NewChild()
	pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return g, nil }})
	t.Cleanup(func() { pool.Close(context.Background()) })
	return must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/")}))(t)
}

// A resize that is under way at the exit must not put a mark behind it: no reader would
// come to its end.
func TestResizeDuringTheExitLeavesTheExitLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{resize: make(chan struct{})}
		h := startGated(t, g)
		resized := make(chan error, 1)
		go func() { resized <- h.Resize(term.Size{Cols: 100, Rows: 30}) }()
		synctest.Wait()
		g.End(0)
		<-h.Done()
		close(g.resize)
		if err := <-resized; !errors.Is(err, term.ErrExited) {
			t.Errorf("Resize = %v, want ErrExited", err)
		}
		r := reader(t, h, output.ReaderOptions{})
		check.Equal(t, "events differ", []item{{Mark: output.MarkExited}}, events(t, r))
		if _, ok, err := r.TryNext(make([]byte, 64)); err != io.EOF {
			t.Errorf("after the exit: %v, %v, want io.EOF", ok, err)
		}
	})
}

// Two resizes at once must leave the size that the pty has as the last mark.
func TestResizesHaveOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{resize: make(chan struct{})}
		h := startGated(t, g)
		for _, cols := range []uint16{100, 120} {
			go h.Resize(term.Size{Cols: cols, Rows: 30})
			synctest.Wait()
		}
		go h.Resize(pty.DefaultSize) // back to the former size
		synctest.Wait()
		for range 3 {
			g.resize <- struct{}{}
			synctest.Wait()
		}
		if got := h.Info().Size; got != g.size {
			t.Errorf("the terminal says %v, the pty has %v", got, g.size)
		}
	})
}

// A pty that takes no input any more releases waiting writers.
func TestWriteEndsWhenThePtyRefusesInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{write: errors.New("input/output error"), writes: make(chan struct{})}
		h := startGated(t, g)
		written := make(chan error, 1)
		go func() { written <- h.Write(t.Context(), make([]byte, 5<<20)) }()
		synctest.Wait()
		close(g.writes)
		synctest.Wait()
		select {
		case err := <-written:
			if !errors.Is(err, term.ErrExited) {
				t.Errorf("Write = %v, want ErrExited", err)
			}
		default:
			t.Error("Write still waits for a pty that takes nothing")
			g.End(0)
		}
	})
}

// brief is a child that takes a little input at once, and the rest in its time.
type brief struct {
	gated
	room int
	err  error // of TryWrite
}

func (b *brief) TryWrite(p []byte) (int, error) {
	n := min(b.room, len(p))
	_, _ = b.Child.Write(p[:n])
	return n, b.err
}

// However much the child takes at once, all input arrives, in order, and no writer waits
// for the child.
func TestInputThatIsTakenInPart(t *testing.T) {
	for _, room := range []int{0, 1, 5, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			b := &brief{gated: gated{Child: testkit.NewChild(), writes: make(chan struct{})}, room: room}
			pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return b, nil }})
			defer pool.Close(context.Background())
			h := must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/")}))(t)
			want := ""
			for i := range 100 {
				s := strings.Repeat(string(rune('a'+i%26)), 1+i%17)
				want += s
				must.Do(t, h.Write(t.Context(), []byte(s)))
			}
			close(b.writes)
			synctest.Wait()
			if got := b.Typed(); got != want {
				t.Errorf("with room for %d bytes %d arrived of %d, or in another order", room, len(got), len(want))
			}
			b.err = errors.New("input/output error")
			_ = h.Write(t.Context(), []byte("x"))
			if err := h.Write(t.Context(), []byte("x")); !errors.Is(err, term.ErrExited) {
				t.Errorf("a write to a child that takes no input = %v, want ErrExited", err)
			}
			b.End(0)
		})
	}
}

// A spawn that is under way when the pool closes must not outlive it.
func TestCloseDuringSpawnLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child, goOn := testkit.NewChild(), make(chan struct{})
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { <-goOn; return child, nil }})
		spawned := make(chan error, 1)
		ended := false
		go func() {
			_, err := pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), Ended: func() { ended = true }})
			spawned <- err
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- pool.Close(t.Context()) }()
		synctest.Wait()
		close(goOn)
		if err := <-spawned; !errors.Is(err, term.ErrClosed) {
			t.Errorf("Spawn = %v, want ErrClosed", err)
		}
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("Close = %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Close waits for a child that nobody kills")
			child.End(0)
		}
		if !child.Killed() || !ended {
			t.Errorf("killed=%v ended=%v, want both", child.Killed(), ended)
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { <-goOn; return nil, io.EOF }})
		go pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/")})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- pool.Close(ctx) }()
		time.Sleep(time.Minute)
		select {
		case err := <-closed:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close = %v, want the context's error", err)
			}
		default:
			t.Error("Close does not end with its context")
		}
		close(goOn)
	})
}

func TestTwoSpawnsWithOneIDAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { <-goOn; return testkit.NewChild(), nil }})
		defer pool.Close(context.Background())
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := pool.As(term.User).Spawn(term.Spec{ID: "pty-same", Command: []string{"fake"}, Cwd: testkit.Abs("/")})
				errs <- err
			}()
		}
		synctest.Wait()
		close(goOn)
		a, b := <-errs, <-errs
		var e *term.SpecError
		if (a == nil) == (b == nil) || !errors.As(errors.Join(a, b), &e) {
			t.Errorf("two spawns with one id = %v and %v, want one to be refused", a, b)
			return
		}
	})
}

// The last bytes of a child wait in its pty while a slow reader holds the pump; the drain
// must not give them up for that.
func TestDrainWaitsForAHeldPump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Hold})
		r := reader(t, h, output.ReaderOptions{Hold: true})
		go func() {
			for range 65 { // the last one does not fit before the reader moves
				f.Print(line)
			}
			f.Print("last words")
		}()
		synctest.Wait()
		f.Die(0)
		time.Sleep(8 * time.Second) // within the stall time, but beyond the drain's
		got := ""
		for _, e := range events(t, r) {
			got += e.Data
		}
		<-h.Done()
		for _, e := range events(t, r) {
			got += e.Data
		}
		if want := strings.Repeat(line, 65) + "last words"; got != want {
			t.Errorf("read %d bytes, want %d with the last words", len(got), len(want))
		}
	})
}
