package devserver_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/devserver"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// A port is open soon after a server prints that it listens, and in any case after some
// seconds. An idle terminal is looked at rarely, one that does not ask never.
func TestPortsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		children := map[string]*testkit.Child{"web": testkit.NewChild(), "other": testkit.NewChild()}
		pool := term.NewPool(term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) { return children[c.Path], nil }})
		defer pool.Close(context.Background())
		spawn := func(name string, ports ...int) term.Handle {
			return must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{name}, Cwd: testkit.Abs("/"), LendTo: []string{"lab"}, Ports: ports}))(t)
		}
		spawn("other", 3000)
		var mu sync.Mutex
		var listens []int
		looks := 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			devserver.Find(ctx, pool.As(term.User), func(h term.Handle) ([]int, error) {
				mu.Lock()
				defer mu.Unlock()
				looks++
				if h.Info().Name != "web" {
					t.Errorf("%s is looked at", h.Info().Name)
				}
				return listens, nil
			})
		}()
		defer func() { cancel(); <-ended }()
		h := spawn("web", loans.AutoPort)
		want := func(after time.Duration, ports ...int) {
			t.Helper()
			time.Sleep(after)
			loan, _ := h.Loan("lab")
			var got []int
			for _, p := range loan.OpenPorts() {
				got = append(got, p.Port)
			}
			if !slices.Equal(got, ports) {
				t.Errorf("open are %v, want %v", got, ports)
			}
		}
		set := func(ports ...int) int {
			mu.Lock()
			defer mu.Unlock()
			listens = ports
			return looks
		}
		want(time.Minute)
		set(5173)
		children["web"].Print("Local: http://localhost:5173/\n")
		want(2*time.Second, 5173)
		before := set(5174)
		want(time.Minute, 5174)
		if n := set() - before; n > 10 {
			t.Errorf("%d looks in a minute at a terminal that prints nothing", n)
		}
		children["web"].End(0)
		want(time.Minute)
	})
}
