package term_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// open lends ports to the host lab.
func open(t *testing.T, h term.Handle, ports ...vocab.LentPort) {
	t.Helper()
	must.Do(t, h.LendTo("lab", loans.Change{Ports: ports}))
}

// used begins a use of a port, and returns what has ended it, nil while it lasts.
func used(t *testing.T, h term.Handle, port int, may func(*loans.Loan) bool) func() error {
	t.Helper()
	_, ctx, done, err := h.PortLent(context.Background(), "lab", port, may)
	must.Do(t, err)
	t.Cleanup(done)
	return func() error {
		synctest.Wait()
		return context.Cause(ctx)
	}
}

func portsOf(h term.Handle) (all []string) {
	loan, _ := h.Loan("lab")
	for _, p := range loan.Ports {
		name := fmt.Sprint(p.Port)
		if p.Auto {
			name += " found"
		}
		if p.Write {
			name += " write"
		}
		if p.Closed != "" {
			name += ": " + p.Closed
		}
		all = append(all, name)
	}
	return all
}

// Whatever ends the lending of a port also ends a request that is under way, at once.
func TestTheUseOfAPortEndsWithItsLending(t *testing.T) {
	bob := func(l *loans.Loan) bool {
		return slices.ContainsFunc(l.Audience.Grants, func(g loans.Grant) bool { return g.To == "bob" })
	}
	for what, c := range map[string]struct {
		end func(h term.Handle, child *testkit.Child) error
		err error
	}{
		"unlent":           {func(h term.Handle, _ *testkit.Child) error { return h.Unlend("lab") }, loans.ErrNotLent},
		"the port unlent":  {func(h term.Handle, _ *testkit.Child) error { return h.DropPorts("lab", 3000) }, loans.ErrNoPort},
		"its time is over": {nil, loans.ErrNoPort},
		"the loan's time":  {func(h term.Handle, _ *testkit.Child) error { return h.LendUntil("lab", time.Now()) }, loans.ErrNotLent},
		"it has exited":    {func(_ term.Handle, c *testkit.Child) error { c.End(0); return nil }, term.ErrExited},
		"it changed hands": {func(h term.Handle, _ *testkit.Child) error { h.ClosePort("lab", 3000, "it is another's"); return nil }, loans.ErrNoPort},
		"no more for writing": {func(h term.Handle, _ *testkit.Child) error {
			return h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: 3000}}})
		}, loans.ErrNoPort},
		"not granted any more": {func(h term.Handle, _ *testkit.Child) error {
			return h.ChangeAudience("lab", loans.AudienceChange{Drop: []string{"bob"}})
		}, loans.ErrNoPort},
		"denied by name": {func(h term.Handle, _ *testkit.Child) error {
			return h.ChangeAudience("lab", loans.AudienceChange{Deny: []string{"bob"}})
		}, loans.ErrNoPort},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, child, _ := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}, Audience: []string{"bob"}})
				open(t, h, vocab.LentPort{Port: 3000, Write: true, Until: time.Now().Add(time.Hour)}, vocab.LentPort{Port: 3001, Until: time.Now().Add(time.Hour)})
				ended := used(t, h, 3000, bob)
				if err := ended(); err != nil {
					t.Fatalf("it ended at once: %v", err)
				}
				check.OK(t, h.ChangeAudience("lab", loans.AudienceChange{Grant: []string{"ann"}}))
				if err := ended(); err != nil {
					t.Fatalf("it ended when somebody else was granted: %v", err)
				}
				if c.end == nil {
					time.Sleep(time.Hour)
				} else {
					must.Do(t, c.end(h, child))
				}
				if err := ended(); !errors.Is(err, c.err) {
					t.Errorf("the use ended with %v, want %v", err, c.err)
				}
				if _, _, _, err := h.PortLent(t.Context(), "lab", 3000, bob); what != "no more for writing" && !errors.Is(err, c.err) {
					t.Errorf("it can be used again: %v", err)
				}
			})
		})
	}
}

// A port is used only by those it is lent to.
func TestPortsThatAreNotLent(t *testing.T) {
	h, _, pool := start(t, term.Options{}, term.Spec{LendTo: []string{"lab", "other"}})
	open(t, h, vocab.LentPort{Port: 3000}, vocab.LentPort{Port: loans.AutoPort})
	for _, c := range []struct {
		host string
		port int
		err  error
	}{{"lab", 3000, nil}, {"lab", 3001, loans.ErrNoPort}, {"lab", loans.AutoPort, loans.ErrNoPort}, {"other", 3000, loans.ErrNoPort}, {"nowhere", 3000, loans.ErrNotLent}} {
		_, _, done, err := h.PortLent(t.Context(), c.host, c.port, nil)
		if !errors.Is(err, c.err) {
			t.Errorf("port %d at %s: %v, want %v", c.port, c.host, err, c.err)
		}
		if err == nil {
			done()
		}
	}
	agent := must.Get(pool.As(term.Agent("a")).Find(string(h.ID())))(t)
	if err := agent.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: 3001}}}); !errors.As(err, new(*term.DeniedError)) {
		t.Errorf("an agent lends a port: %v", err)
	}
	if err := agent.DropPorts("lab", 3000); !errors.As(err, new(*term.DeniedError)) {
		t.Errorf("an agent ends a lending: %v", err)
	}
	if err := h.DropPorts("lab", 3001); !errors.Is(err, loans.ErrNoPort) {
		t.Errorf("the end of a port that is not lent: %v", err)
	}
}

// A terminal with too many ports keeps those that it had, and its audience.
func TestTooManyPortsChangeNothing(t *testing.T) {
	h, _, _ := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
	open(t, h, vocab.LentPort{Port: 3000})
	change := loans.Change{Audience: loans.AudienceChange{Grant: []string{"bob"}}}
	for i := range loans.MaxPorts {
		change.Ports = append(change.Ports, vocab.LentPort{Port: 4000 + i})
	}
	if err := h.LendTo("lab", change); !errors.Is(err, loans.ErrTooManyPorts) {
		t.Error(err)
	}
	if loan, _ := h.Loan("lab"); len(loan.Ports) != 1 || len(loan.Audience.Grants) != 0 {
		t.Errorf("it keeps %+v", loan)
	}
}

// Ports on which programs listen are opened if the person has opened those, and only
// then. What changed hands stays closed.
func TestPortsThatAreFound(t *testing.T) {
	h, _, _ := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
	want := func(what string, ports ...string) {
		t.Helper()
		if got := portsOf(h); !slices.Equal(got, ports) {
			t.Errorf("%s: %q, want %q", what, got, ports)
		}
	}
	h.FoundPorts([]int{3000})
	want("nothing is asked for")
	open(t, h, vocab.LentPort{Port: loans.AutoPort, Write: true})
	h.FoundPorts([]int{22, 3000, 70000})
	want("found", "0 found write", "3000 found write")
	h.FoundPorts(nil)
	want("the server restarts", "0 found write", "3000 found write")
	h.ClosePort("lab", 3000, "taken")
	h.FoundPorts([]int{3000})
	want("it is another's", "0 found write", "3000 found write: taken")
	h.FoundPorts([]int{5173})
	want("it listens elsewhere", "0 found write", "5173 found write")
	many := []int{}
	for i := range 2 * loans.MaxPorts {
		many = append(many, 4000+i)
	}
	h.FoundPorts(many)
	if n := len(portsOf(h)); n != loans.MaxPorts {
		t.Errorf("%d ports of a program with too many", n)
	}
	check.OK(t, h.DropPorts("lab", loans.AutoPort))
	want("unlent")
}

// The next daemon knows the ports, how often they were used, and why one was closed. It
// ignores numbers that no daemon has written.
func TestPortsSurviveTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab"}})
		open(t, h, vocab.LentPort{Port: 3000, Write: true, Until: time.Now().Add(time.Hour)}, vocab.LentPort{Port: 3001}, vocab.LentPort{Port: loans.AutoPort})
		h.CountFetch("lab", 3000)
		h.CountFetch("lab", 3000)
		h.ClosePort("lab", 3001, "taken")
		time.Sleep(time.Second)
		l.leave(pool)
		pool, h, l = adopting(t, v, term.Options{})
		if got, want := portsOf(h), []string{"3000 write", "3001: taken", "0 found"}; !slices.Equal(got, want) {
			t.Fatalf("the next daemon has %q, want %q", got, want)
		}
		if loan, _ := h.Loan("lab"); loan.Ports[0].Fetched != 2 || loan.Ports[0].Latest.IsZero() || loan.Ports[0].Since.IsZero() || !loan.Ports[0].IsOpen() {
			t.Errorf("%+v", loan.Ports[0])
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := portsOf(h), []string{"3001: taken", "0 found"}; !slices.Equal(got, want) {
			t.Errorf("after the port's time: %q, want %q", got, want)
		}
		l.leave(pool)
	})
}

// The audit log has who opened and ended what, and how often it was used.
func TestPortsAreAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var acts []string
		h, child, _ := start(t, term.Options{Observe: func(a term.Act) {
			mu.Lock()
			defer mu.Unlock()
			acts = append(acts, fmt.Sprintf("%s %s %s: %s", a.Actor, a.Kind, a.Host, a.Detail))
		}}, term.Spec{})
		until := time.Now().Add(time.Hour)
		open(t, h, vocab.LentPort{Port: 3000, Write: true, Until: until}, vocab.LentPort{Port: 3001}, vocab.LentPort{Port: 3002}, vocab.LentPort{Port: 3003})
		h.CountFetch("lab", 3001)
		h.CountFetch("lab", 3001)
		h.CountFetch("lab", 9999)
		must.Do(t, h.DropPorts("lab", 3001))
		time.Sleep(time.Hour)
		synctest.Wait()
		h.ClosePort("lab", 3002, "another program has it")
		h.ClosePort("lab", 3002, "again")
		must.Do(t, h.LendTo("other", loans.Change{Ports: []vocab.LentPort{{Port: 3003}}}))
		must.Do(t, h.Unlend("other"))
		child.End(0)
		<-h.Done()
		synctest.Wait()
		want := []string{
			"user lend lab: port 3000 (also for writing) until " + until.UTC().Format(time.RFC3339) + "; port 3001; port 3002; port 3003",
			"user unlend lab: port 3001, fetched 2 times",
			"nobody unlend lab: the time was up; port 3000, fetched 0 times",
			"nobody unlend lab: another program has it; port 3002, fetched 0 times",
			"user lend other: port 3003",
			"user unlend other: port 3003, fetched 0 times",
			"nobody unlend lab: the terminal has ended; port 3002, fetched 0 times; port 3003, fetched 0 times",
			"nobody exit : ",
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, acts); diff != "" {
			t.Error(diff)
		}
	})
}
