package local_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/local"
	"tether/agent/term"
)

// pipes is a port to which the test connects by pipes, whose deadlines are in the time of a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234} }

// Who announces a body and does not send it holds a connection for a moment, not for ever, also without a token: the others could not come
// in any more.
func TestABodyThatDoesNotCome(t *testing.T) {
	for name, c := range map[string]struct{ auth, want string }{
		"from anybody":           {"", "HTTP/1.1 401 "},
		"from who has the token": {"Authorization: Bearer TOKEN\r\n", "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, err := local.OpenTokens(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			token, err := tokens.User()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				server := local.NewServer(local.Options{Access: term.NewPool(term.Options{}).As, Daemon: &fakeDaemon{}, Tokens: tokens})
				port := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- server.ServeTCP(port) }()
				here, there := net.Pipe()
				defer here.Close()
				port.conns <- there
				if err := here.SetDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				request := "POST /v1/terminals HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n" + c.auth + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
				if _, err := io.WriteString(here, strings.ReplaceAll(request, "TOKEN", token)); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(here)
				if err != nil || !strings.HasPrefix(string(answer), c.want) {
					t.Errorf("%.40q, %v; want %q and the end of the connection", answer, err, c.want)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
