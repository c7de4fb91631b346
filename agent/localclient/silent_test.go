package localclient_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// gated is a daemon that stops: while it is closed, connections are accepted and nothing
// is answered, as the system does it for a process that was stopped. Requests that are
// open may be answered late.
type gated struct {
	stopped atomic.Bool
	changed chan struct{} // closed to go on
	asked   atomic.Int32  // requests
	looked  atomic.Int32  // for a sign of life
	late    chan struct{} // closed: /v1/environment is answered
}

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.stopped.Load() {
		select {
		case <-g.changed:
		case <-r.Context().Done():
			return
		}
	}
	if r.URL.Path == "/v1/health" {
		g.looked.Add(1)
	} else {
		g.asked.Add(1)
	}
	if r.URL.Path == "/v1/environment" {
		<-g.late
	}
	fmt.Fprint(w, "{}")
}

func startGated(t *testing.T) (*gated, *localclient.Client) {
	t.Helper()
	g := &gated{changed: make(chan struct{}), late: make(chan struct{})}
	socket := filepath.Join(testkit.Home(t), "s")
	l := must.Get(ipc.Listen(socket))(t)
	server := http.Server{Handler: g}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-served })
	c := localclient.New(socket)
	t.Cleanup(c.Close)
	c.Quick(20*time.Millisecond, 50*time.Millisecond)
	return g, c
}

// A request that a stopped daemon does not answer fails, with the status of a timeout,
// and reports whether it may have begun.
func TestStoppedDaemon(t *testing.T) {
	g, c := startGated(t)
	g.stopped.Store(true)
	_, err := c.Status(t.Context())
	var silent *localclient.SilentError
	if !errors.As(err, &silent) || silent.Changing || localapi.ExitStatus(err) != localapi.ExitTimeout {
		t.Errorf("a question: %v, status %d", err, localapi.ExitStatus(err))
	}
	if _, err = c.Spawn(t.Context(), localapi.SpawnRequest{}); !errors.As(err, &silent) || !silent.Changing {
		t.Errorf("a start: %v", err)
	}
	if _, err := c.As("a").Read(t.Context(), "x", localclient.ReadOptions{}, nil); !errors.As(err, &silent) {
		t.Errorf("an agent's client: %v", err)
	}
	if g.asked.Load() != 0 {
		t.Error("it was not stopped")
	}
}

// A daemon that works on an answer gives signs of life, and is waited for.
func TestSlowAnswerIsWaitedFor(t *testing.T) {
	g, c := startGated(t)
	c.Quick(20*time.Millisecond, testkit.Patience)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Environment(t.Context(), false)
		ended <- err
	}()
	testkit.Eventually(t, testkit.Patience, "it looked three times", func() bool { return g.looked.Load() >= 3 })
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(g.late)
	check.OK(t, <-ended)
}

// A patient client waits, says so once, and says when that is over.
func TestPatientClient(t *testing.T) {
	g, c := startGated(t)
	g.stopped.Store(true)
	said := make(chan bool, 8)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Patient(func(silent bool) { said <- silent }).Status(t.Context())
		ended <- err
	}()
	if !<-said {
		t.Error("first it said that it goes on")
	}
	g.stopped.Store(false)
	close(g.changed)
	check.OK(t, <-ended)
	if <-said {
		t.Error("it said twice that it waits")
	}
}

// curt closes the first connections without a word, as a daemon does that makes way in
// that instant.
type curt struct {
	net.Listener
	left atomic.Int32
}

func (l *curt) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.left.Add(-1) < 0 {
			return c, err
		}
		c.Close()
	}
}

func TestWithoutAWord(t *testing.T) {
	home := testkit.Home(t)
	socket := filepath.Join(home, "s")
	inner := must.Get(ipc.Listen(socket))(t)
	l := &curt{Listener: inner}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() { server.Close(); <-served }()

	c := localclient.New(socket)
	defer c.Close()
	l.left.Store(2)
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("a question is not asked again: %v", err)
	}
	c = localclient.New(socket)
	defer c.Close()
	l.left.Store(1)
	if err := c.Shutdown(t.Context()); err == nil || errors.Is(err, localclient.ErrNotRunning) {
		t.Errorf("what may have been done was done again: %v", err)
	}
}
