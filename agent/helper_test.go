package agent_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/pty"
	"tether/vocab"
)

// patience is how long a test waits for an expected event.
const patience = testkit.Patience

// home makes directories for one daemon.
func home(t *testing.T) dirs.Dirs {
	t.Helper()
	testkit.Home(t)
	return must.Get(dirs.Get())(t)
}

// daemon is one that runs in this process.
type daemon struct {
	t      *testing.T
	client *localclient.Client
	cancel context.CancelFunc
	ended  chan error
}

// start runs a daemon and waits until it is ready. It ends with the test at the latest.
func start(t *testing.T, c agent.Config) *daemon {
	t.Helper()
	c.AllowRoot, c.Timeout = true, cmp.Or(c.Timeout, patience)
	if c.Holder.Path == "" && c.Terminals.Start == nil {
		c.Terminals.Start = inProcess
	}
	settings := config.Default()
	if c.Settings != nil {
		settings = *c.Settings
	}
	settings.Lend.AsRoot = true // tests are the same for everybody
	c.Settings = &settings
	ready := make(chan struct{})
	c.Ready = func() { close(ready) }
	a := must.Get(agent.New(c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{t: t, client: localclient.New(agent.SocketPath(c.Dirs)), cancel: cancel, ended: make(chan error, 1)}
	go func() { d.ended <- a.Run(ctx) }()
	select {
	case <-ready:
	case err := <-d.ended:
		t.Fatalf("it ended: %v", err)
	}
	t.Cleanup(d.end)
	return d
}

// inProcess starts a terminal without a holder, for tests to which it makes no
// difference.
func inProcess(_ term.ID, c pty.Command) (term.PTY, error) { return pty.Start(c) }

// end stops it and wants it to end well. It may be called again.
func (d *daemon) end() {
	d.t.Helper()
	d.cancel()
	d.client.Close()
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Errorf("the daemon ended with %v", err)
		}
		d.ended <- nil
	case <-time.After(patience):
		d.t.Error("the daemon does not end")
	}
}

// status waits until the daemon's status is as ok wants it.
func (d *daemon) status(what string, ok func(localapi.Status) bool) localapi.Status {
	d.t.Helper()
	var s localapi.Status
	testkit.Eventually(d.t, patience, what, func() bool {
		var err error
		s, err = d.client.Status(d.t.Context())
		return err == nil && ok(s)
	})
	return s
}

// serveHTTP serves a handler on a port of its own, and returns its ws URL. No request
// outlives the test.
func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background()) // also ends upgraded connections, which the server no longer tracks
	var mu sync.Mutex                                       // guards requests against one that comes when they are waited for
	var requests sync.WaitGroup
	s := &http.Server{BaseContext: func(net.Listener) context.Context { return ctx }}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		over := ctx.Err() != nil
		if !over {
			requests.Add(1)
		}
		mu.Unlock()
		if over {
			return
		}
		defer requests.Done()
		h.ServeHTTP(w, r)
	})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() {
		mu.Lock()
		cancel()
		mu.Unlock()
		s.Close()
		<-done
		requests.Wait()
	})
	return "ws://" + l.Addr().String()
}

// startHost runs a reference host.
func startHost(t *testing.T, token string) string {
	t.Helper()
	h := host.New(host.Options{Token: token, Grace: time.Minute})
	url := serveHTTP(t, h)
	t.Cleanup(h.Close)
	return url
}

// list waits until the daemon has so many terminals: it answers before it has taken up
// all that earlier ones have left.
func (d *daemon) list(n int) (list localapi.TerminalList) {
	d.t.Helper()
	testkit.Eventually(d.t, patience, fmt.Sprint(n, " terminals are there"), func() bool {
		var err error
		if list, err = d.client.List(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		return len(list.Terminals) == n
	})
	return list
}

// prints runs a command to its end and returns its output and exit code.
func prints(t *testing.T, c *localclient.Client, r localapi.SpawnRequest) (string, int) {
	t.Helper()
	if r.Cwd == "" {
		r.Cwd = testkit.Abs("/")
	}
	tm := must.Get(c.Spawn(t.Context(), r))(t)
	body := must.Get(c.Read(t.Context(), tm.ID, localclient.ReadOptions{Follow: true}, nil))(t)
	defer body.Close()
	out := must.Get(io.ReadAll(body))(t)
	var exit *vocab.Exit
	testkit.Eventually(t, patience, "the exit is known", func() bool {
		tm, err := c.Find(t.Context(), tm.ID)
		exit = tm.Exit
		return err == nil && exit != nil
	})
	return string(out), exit.Code
}

// shutDown runs a daemon with three terminals until it is asked to end. Its socket is
// gone then; the terminals are as they were.
func shutDown(t *testing.T, command []string) (dirs.Dirs, []localapi.Terminal) {
	t.Helper()
	d := home(t)
	a := start(t, agent.Config{Dirs: d, Terminals: term.Options{KillGrace: 100 * time.Millisecond}})
	var all []localapi.Terminal
	for range 3 {
		tm := must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: command, Env: os.Environ(), Cwd: testkit.Abs("/")}))(t)
		all = append(all, tm)
	}
	must.Do(t, a.client.Shutdown(t.Context()))
	a.end()
	if _, err := os.Lstat(agent.SocketPath(d)); err == nil {
		t.Error("the socket is still there")
	}
	return d, all
}
