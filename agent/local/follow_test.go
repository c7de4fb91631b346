package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/platform/pty"
)

// follow opens a terminal's events.
func (w *world) follow(c *localclient.Client, ref string, o localclient.FollowOptions) *localclient.Follower {
	w.t.Helper()
	f, err := c.Follow(w.t.Context(), ref, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(f.Close)
	return f
}

// hears collects output until it contains text, and returns where to continue.
func hears(t *testing.T, f *localclient.Follower, text string) (next int64) {
	t.Helper()
	for got := ""; got != text; {
		e, err := f.Next()
		if err != nil || e.Type != localapi.EventOutput || !strings.HasPrefix(text, got+e.Data) {
			t.Fatalf("after %q: %+v, %v, want %q", got, e, err, text)
		}
		got += e.Data
		next = e.Raw
	}
	return next
}

func TestEvents(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("x")
	f := w.follow(w.client, tm.ID, localclient.FollowOptions{})
	child.Print("one \x1b[1m端\xff\r\n")
	at := hears(t, f, "one \x1b[1m端\ufffd\r\n")
	child.Print("two\r\n")
	hears(t, f, "two\r\n")
	f.Close()
	again := w.follow(w.client, tm.ID, localclient.FollowOptions{From: at})
	hears(t, again, "two\r\n")
	child.End(3)
	e, err := again.Next()
	if err != nil || e.Type != localapi.EventExit || e.Signal != "" || e.Code != 3 || e.At.IsZero() {
		t.Errorf("the end: %+v, %v", e, err)
	}
	if _, err := again.Next(); !errors.Is(err, localclient.ErrDropped) {
		t.Errorf("after the end: %v", err)
	}
	late := w.follow(w.client, tm.ID, localclient.FollowOptions{From: 1 << 40})
	if e, err := late.Next(); err != nil || e.Type != localapi.EventExit {
		t.Errorf("from beyond the end: %+v, %v", e, err)
	}
}

func TestFollowThatLags(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10})
	tm, child := w.spawn("x")
	line := strings.Repeat("x", 1022) + "\r\n"
	for range 200 {
		child.Print(line)
	}
	testkit.Eventually(t, patience, "all is read", func() bool {
		now, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && now.Bytes == int64(200*len(line))
	})
	f := w.follow(w.client, tm.ID, localclient.FollowOptions{})
	e, err := f.Next()
	if err != nil || e.Type != localapi.EventLagged || e.Lost < 100<<10 {
		t.Fatalf("%+v, %v", e, err)
	}
	if e, err := f.Next(); err != nil || e.Type != localapi.EventOutput || !strings.HasPrefix(e.Data, "xxx") {
		t.Errorf("then %.100v, %v", e, err)
	}
}

func TestFollowRefusals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("persons")
	agent := w.client.As("a")
	_, none := w.client.Follow(t.Context(), "pty-none", localclient.FollowOptions{})
	wantCode(t, "no terminal", none, localapi.CodeNoTerminal)
	_, before := w.client.Follow(t.Context(), tm.ID, localclient.FollowOptions{From: -1})
	wantCode(t, "a place before the start", before, localapi.CodeBadRequest)
	_, lease := agent.Follow(t.Context(), tm.ID, localclient.FollowOptions{Lease: true})
	wantCode(t, "an agent's lease of the person's", lease, localapi.CodeDenied)
	w.follow(agent, tm.ID, localclient.FollowOptions{}).Close()
}

func TestFollowersGetTheEnd(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("x")
	f := w.follow(w.client, tm.ID, localclient.FollowOptions{})
	go w.server.Drain()
	if e, err := f.Next(); err != nil || e.Type != localapi.EventDropped || e.Message == "" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestSpawnRequestsOfAgents(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	agent := w.client.As("a")
	for _, c := range []struct {
		name string
		req  localapi.SpawnRequest
		code localapi.Code
	}{
		{"an unknown door", localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Door: "ahp"}, localapi.CodeBadRequest},
		{"what the policy denies", localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: testkit.Abs("/")}, localapi.CodeDenied},
	} {
		_, err := agent.Spawn(t.Context(), c.req)
		wantCode(t, c.name, err, c.code)
	}
	for i := range 6 { // more than an agent may have in the background
		if _, err := agent.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Door: "acp", Name: fmt.Sprint(i)}); err != nil {
			t.Errorf("the door acp, %d: %v", i, err)
		}
		<-w.children
	}
	w.daemon.mu.Lock()
	defer w.daemon.mu.Unlock()
	for _, r := range w.daemon.specs {
		if !r.ByAgent() || r.Door != "acp" {
			t.Errorf("started %+v", r)
		}
	}
}

// leased is a terminal in a bubble, whose child the test plays.
func leased(t *testing.T) (*term.Pool, term.Handle, *testkit.Child) {
	t.Helper()
	child := testkit.NewChild()
	pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return child, nil }})
	h, err := pool.As(term.Agent("a")).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Leased: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return pool, h, child
}

// TestLeases is about a proxy that is killed: its terminals must not stay.
func TestLeases(t *testing.T) {
	const soon, late = local.LeaseGrace - time.Second, 2 * time.Second
	alive := func(t *testing.T, h term.Handle, want bool) {
		t.Helper()
		synctest.Wait()
		if got := h.Info().Exit == nil; got != want {
			t.Errorf("it lives: %v, want %v", got, want)
		}
	}
	in := func(name string, f func(t *testing.T, l *local.Leases, h term.Handle, pool *term.Pool)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, h, _ := leased(t)
				l := &local.Leases{}
				f(t, l, h, pool)
				l.Close()
			})
		})
	}
	actor := term.Agent("a")
	in("nobody follows it", func(t *testing.T, l *local.Leases, h term.Handle, _ *term.Pool) {
		l.Expect(h)
		time.Sleep(soon)
		alive(t, h, true)
		time.Sleep(late)
		alive(t, h, false)
	})
	in("its follower goes, another comes in time, and goes", func(t *testing.T, l *local.Leases, h term.Handle, _ *term.Pool) {
		l.Expect(h)
		for range 3 {
			leave, err := l.Take(actor, h)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			alive(t, h, true)
			leave()
			time.Sleep(soon)
			alive(t, h, true)
		}
		time.Sleep(late)
		alive(t, h, false)
	})
	in("two followers", func(t *testing.T, l *local.Leases, h term.Handle, _ *term.Pool) {
		one, _ := l.Take(actor, h)
		two, _ := l.Take(actor, h)
		one()
		time.Sleep(time.Hour)
		alive(t, h, true)
		two()
		time.Sleep(soon + late)
		alive(t, h, false)
	})
	in("it has become the person's", func(t *testing.T, l *local.Leases, h term.Handle, pool *term.Pool) {
		leave, _ := l.Take(actor, h)
		persons, err := pool.As(term.User).Find(string(h.ID()))
		if err == nil {
			err = persons.Promote()
		}
		if err != nil {
			t.Fatal(err)
		}
		leave()
		time.Sleep(time.Hour)
		alive(t, h, true)
	})
	in("an earlier daemon has left it", func(t *testing.T, l *local.Leases, h term.Handle, pool *term.Pool) {
		l.Resume(pool.As)
		time.Sleep(soon)
		alive(t, h, true)
		time.Sleep(late)
		alive(t, h, false)
	})
	in("the daemon ends", func(t *testing.T, l *local.Leases, h term.Handle, _ *term.Pool) {
		l.Expect(h)
		leave, _ := l.Take(actor, h)
		l.Close()
		leave()
		time.Sleep(time.Hour)
		alive(t, h, true)
	})
}
