package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// follow opens a terminal's stream.
func (w *world) follow(c *localclient.Client, ref string, from int64) *localclient.Output {
	w.t.Helper()
	f := must.Get(c.Read(w.t.Context(), ref, localclient.ReadOptions{Follow: true, Marks: true, From: from}, nil))(w.t)
	w.t.Cleanup(func() { f.Close() })
	return f
}

// hears collects output until it contains text, and returns where to continue.
func hears(t *testing.T, f *localclient.Output, text string) (next int64) {
	t.Helper()
	for got := ""; got != text; {
		m, err := f.Next()
		if err != nil || m.Control != nil || !strings.HasPrefix(text, got+string(m.Data)) {
			t.Fatalf("after %q: %+v, %v, want %q", got, m, err, text)
		}
		got += string(m.Data)
		next = m.Raw
	}
	return next
}

// marked is the next mark of a stream.
func marked(t *testing.T, f *localclient.Output) localapi.Control {
	t.Helper()
	m, err := f.Next()
	if err != nil || m.Control == nil {
		t.Fatalf("%+v, %v, want a mark", m, err)
	}
	return *m.Control
}

func TestMarks(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("x")
	f := w.follow(w.client, tm.ID, 0)
	child.Print("one \x1b[1m端\xff\r\n")
	at := hears(t, f, "one \x1b[1m端\ufffd\r\n")
	h, err := w.pool.As(term.User).Find(tm.ID)
	if err == nil {
		err = h.Resize(term.Size{Cols: 99, Rows: 9})
	}
	must.Do(t, err)
	child.Print("two\r\n")
	if c := marked(t, f); c.Type != localapi.ControlResized || c.Cols != 99 || c.Rows != 9 {
		t.Errorf("the size: %+v", c)
	}
	hears(t, f, "two\r\n")
	f.Close()
	again := w.follow(w.client, tm.ID, at)
	marked(t, again)
	hears(t, again, "two\r\n")
	child.End(3)
	if c := marked(t, again); c.Type != localapi.ControlExit || c.Signal != "" || c.Code != 3 {
		t.Errorf("the end: %+v", c)
	}
	if _, err := again.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if c := marked(t, w.follow(w.client, tm.ID, 1<<40)); c.Type != localapi.ControlExit {
		t.Errorf("from beyond the end: %+v", c)
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
	f := w.follow(w.client, tm.ID, 0)
	if c := marked(t, f); c.Type != localapi.ControlLagged || c.Lost < 100<<10 {
		t.Fatalf("%+v", c)
	}
	if m, err := f.Next(); err != nil || m.Control != nil || !strings.HasPrefix(string(m.Data), "xxx") {
		t.Errorf("then %.100v, %v", m, err)
	}
}

func TestFollowRefusals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("persons")
	agent := w.client.As("a")
	refused := func(c *localclient.Client, ref string, from int64, lease bool) error {
		return second(c.Read(t.Context(), ref, localclient.ReadOptions{Follow: true, Marks: true, From: from, Lease: lease}, nil))
	}
	wantCode(t, "no terminal", refused(w.client, "pty-none", 0, false), localapi.CodeNoTerminal)
	wantCode(t, "a place before the start", refused(w.client, tm.ID, -1, false), localapi.CodeBadRequest)
	wantCode(t, "an agent's lease of the person's", refused(agent, tm.ID, 0, true), localapi.CodeDenied)
	w.follow(agent, tm.ID, 0).Close()
}

func TestFollowersGetTheEnd(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("x")
	f := w.follow(w.client, tm.ID, 0)
	go w.server.Drain()
	if m, err := f.Next(); !errors.Is(err, localclient.ErrStopped) {
		t.Errorf("%+v, %v", m, err)
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
	h := must.Get(pool.As(term.Agent("a")).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Leased: true}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.OK(t, pool.Close(ctx))
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
			leave := must.Get(l.Take(actor, h))(t)
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
		must.Do(t, err)
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
