package term_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// fakes returns a pool whose terminals are fake, and the last fake.
func fakes(t *testing.T, o term.Options) (*term.Pool, func() *testkit.Child) {
	var last atomic.Pointer[testkit.Child] // terminals may start at the same time
	o.Start = func(term.ID, pty.Command) (term.PTY, error) {
		child := testkit.NewChild()
		last.Store(child)
		return child, nil
	}
	p := term.NewPool(o)
	t.Cleanup(func() { p.Close(context.Background()) })
	return p, last.Load
}

func TestSpecErrorsNameTheField(t *testing.T) {
	p, _ := fakes(t, term.Options{})
	for _, c := range []struct {
		spec term.Spec
		want string
	}{
		{term.Spec{Cwd: testkit.Abs("/")}, "command: no command was given"},
		{term.Spec{Command: []string{"x"}, Cwd: "src"}, `directory: "src" is not an absolute path`},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Size: term.Size{Cols: 80}}, "size: 80x0 is out of range, each side must be 1 to 1000"},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Size: term.Size{Cols: 65535, Rows: 24}}, "size: 65535x24 is out of range, each side must be 1 to 1000"},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Name: "a\x1b[2J"}, `name: "a\x1b[2J" must be at most 256 bytes without control characters`},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Name: ".."}, `name: ".." is not a valid terminal name; choose another`},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Name: "."}, `name: "." is not a valid terminal name; choose another`},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Name: "/"}, `name: "/" is not a valid terminal name; choose another`},
		{term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true, LendTo: []string{"h"}}, "private: the terminal is private"},
	} {
		_, err := p.As(term.User).Spawn(c.spec)
		var e *term.SpecError
		if !errors.As(err, &e) || err.Error() != c.want {
			t.Errorf("Spawn(%+v) = %v, want %q", c.spec, err, c.want)
		}
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	p := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return nil, errors.New("no pty left") }})
	_, err := p.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")})
	if err == nil || err.Error() != `start "x": no pty left` {
		t.Errorf("error = %v", err)
	}
	if err := p.Close(t.Context()); err != nil || len(p.As(term.User).List()) != 0 {
		t.Errorf("Close = %v with %d terminals", err, len(p.As(term.User).List()))
	}
	if _, err := p.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}); !errors.Is(err, term.ErrClosed) {
		t.Errorf("Spawn on a closed pool = %v, want ErrClosed", err)
	}
}

func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, last := fakes(t, term.Options{})
		user := p.As(term.User)
		spawn := func(id term.ID, name string) {
			must.Get(user.Spawn(term.Spec{ID: id, Name: name, Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		}
		spawn("pty-old", "web")
		last().End(0)
		synctest.Wait()
		spawn("pty-abcdef", "web")
		spawn("pty-abcxyz", "api")
		spawn("pty-q", "twin")
		spawn("pty-r", "twin")
		for ref, want := range map[string]string{
			"pty-old": "pty-old", "web": "pty-abcdef", "abcd": "pty-abcdef", "pty-abcx": "pty-abcxyz", "api": "pty-abcxyz",
			"ab": "no such terminal", "none": "no such terminal", "": "no such terminal",
			"abc":  `"abc" matches 2 terminals: [pty-abcdef pty-abcxyz]`,
			"twin": `"twin" matches 2 terminals: [pty-q pty-r]`,
		} {
			h, err := user.Find(ref)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = string(h.ID())
			}
			if got != want {
				t.Errorf("Find(%q) = %s, want %s", ref, got, want)
			}
		}
	})
}

func TestExitedTerminalsAreKeptWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, last := fakes(t, term.Options{KeepExited: 3, KeepFor: time.Hour})
		user := p.As(term.User)
		spawn := func() {
			must.Get(user.Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		}
		for range 10 {
			spawn()
			last().End(0)
			synctest.Wait()
			time.Sleep(time.Minute)
		}
		spawn()
		if n := len(user.List()); n != 4 {
			t.Errorf("%d terminals listed, want 3 exited and 1 running", n)
		}
		version := must.Get(p.Changed(t.Context(), 0))(t)
		time.Sleep(2 * time.Hour)
		if n := len(user.List()); n != 1 {
			t.Errorf("%d terminals listed two hours later, want the one running", n)
		}
		if next, err := p.Changed(t.Context(), 0); err != nil || next == version {
			t.Errorf("version %d, %v after terminals were forgotten, want a new one", next, err)
		}
	})
}

func TestMaxTerminals(t *testing.T) {
	p, _ := fakes(t, term.Options{MaxTerminals: 2})
	for i := range 3 {
		_, err := p.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")})
		if (err != nil) != (i == 2) {
			t.Errorf("spawn %d: %v", i, err)
		}
		if i == 2 && !strings.Contains(err.Error(), "kill one first") {
			t.Errorf("error %q does not say what to do", err)
		}
	}
}

func TestChangedFollowsThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, last := fakes(t, term.Options{})
		v := must.Get(p.Changed(t.Context(), 0))(t)
		for name, change := range map[string]func(){
			"spawn": func() { p.As(term.User).Spawn(term.Spec{ID: "pty-a", Command: []string{"x"}, Cwd: testkit.Abs("/")}) },
		} {
			change()
			next, err := p.Changed(t.Context(), v)
			if err != nil || next == v {
				t.Fatalf("%s: version %d, %v; want a new one", name, next, err)
			}
			v = next
		}
		h, _ := p.As(term.User).Find("pty-a")
		go func() { time.Sleep(time.Second); h.Lend("lab") }()
		if next, err := p.Changed(t.Context(), v); err != nil || next == v {
			t.Errorf("lend: version %d, %v; want a new one", next, err)
		} else {
			v = next
		}
		last().End(0)
		if next, err := p.Changed(t.Context(), v); err != nil || next == v {
			t.Errorf("exit: version %d, %v; want a new one", next, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		v, _ = p.Changed(ctx, 0)
		if _, err := p.Changed(ctx, v); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing changed: %v, want the context's error", err)
		}
	})
}

func TestDispose(t *testing.T) {
	for _, c := range []struct {
		how      term.OnDispose
		attached bool
		killed   bool
	}{
		{term.DisposeAuto, false, true}, {term.DisposeAuto, true, false},
		{term.DisposeKill, true, true}, {term.DisposeUnlend, false, false},
	} {
		t.Run(fmt.Sprintf("%s attached=%v", c.how, c.attached), func(t *testing.T) {
			h, f, pool := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
			if c.attached {
				leave := must.Get(h.Attach())(t)
				defer leave()
			}
			seen := must.Get(pool.As(term.Host("lab")).Find(string(h.ID())))(t)
			killed, err := seen.Dispose(t.Context(), c.how)
			if err != nil || killed != c.killed || f.Killed() != c.killed {
				t.Errorf("Dispose = %v, %v, want killed %v", killed, err, c.killed)
			}
			if i := h.Info(); len(i.LentTo) != 0 {
				t.Errorf("still lent to %v", i.LentTo)
			}
		})
	}
}

func TestInputIsOrderedBoundedAndEndsWithTheChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		want := ""
		for i := range 1000 {
			s := fmt.Sprintf("line %d\r", i)
			want += s
			must.Do(t, h.Write(t.Context(), []byte(s)))
		}
		big := strings.Repeat("p", 3<<20) // more than the queue holds
		must.Do(t, h.Write(t.Context(), []byte(big)))
		synctest.Wait()
		if got := f.Typed(); got != want+big {
			t.Errorf("typed %d bytes, want %d in order", len(got), len(want)+len(big))
		}
		f.End(0)
		<-h.Done()
		if err := h.Write(t.Context(), []byte("x")); !errors.Is(err, term.ErrExited) {
			t.Errorf("write after the exit = %v, want ErrExited", err)
		}
		if err := h.Resize(term.Size{Cols: 2, Rows: 2}); !errors.Is(err, term.ErrExited) {
			t.Errorf("resize after the exit = %v, want ErrExited", err)
		}
		if err := h.Kill(t.Context()); err != nil {
			t.Errorf("kill after the exit = %v, want nil", err)
		}
	})
}
