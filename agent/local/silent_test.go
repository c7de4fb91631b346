package local_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tether/agent/local"
	"tether/internal/testkit"
	"tether/platform/ipc"
)

// curt closes the first connections without a word, as a daemon does that makes way in that instant.
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
	inner, err := ipc.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	l := &curt{Listener: inner}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() { server.Close(); <-served }()

	c := local.NewClient(socket)
	defer c.Close()
	l.left.Store(2)
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("a question is not asked again: %v", err)
	}
	c = local.NewClient(socket)
	defer c.Close()
	l.left.Store(1)
	if err := c.Shutdown(t.Context()); err == nil || errors.Is(err, local.ErrNotRunning) {
		t.Errorf("what may have been done was done again: %v", err)
	}
}
