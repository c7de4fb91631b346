package lentports_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tether/agent/lentports"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/oneconn"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/vocab"
)

// world is a machine that lends port 3000 of a terminal to bob and the owner at the host
// lab, which asks over HTTP/2 in memory. The dev server is serve.
type world struct {
	t       *testing.T
	h       term.Handle // the person's
	child   *testkit.Child
	handler http.HandlerFunc // Serve of the server
	link    *http.Transport
	dials   atomic.Int64
	serve   func(conn net.Conn, in *bufio.Reader) // one connection; the kit closes it
	dialErr error
}

// run runs a test in a bubble, in which time passes only while everything waits.
func run(t *testing.T, o lentports.Options, port vocab.LentPort, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, child: testkit.NewChild()}
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return w.child, nil }})
		w.h = must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"web"}, Cwd: testkit.Abs("/app")}))(t)
		port.Port = 3000
		must.Do(t, w.h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{port}, Audience: loans.AudienceChange{Grant: []string{"bob"}}}))
		var servers sync.WaitGroup
		o.Terminals = pool.As
		o.Dial = func(context.Context, int) (net.Conn, error) {
			w.dials.Add(1)
			if w.dialErr != nil {
				return nil, w.dialErr
			}
			here, there := net.Pipe()
			servers.Go(func() {
				defer there.Close()
				w.serve(there, bufio.NewReader(there))
			})
			return here, nil
		}
		s := lentports.New(o)
		w.handler = func(rw http.ResponseWriter, r *http.Request) { s.Serve(rw, r, "lab", w.h.ID()) }
		l := testkit.NewPipes()
		host := &http.Server{Handler: w.handler, Protocols: new(http.Protocols)}
		host.Protocols.SetUnencryptedHTTP2(true)
		served := make(chan error, 1)
		go func() { served <- host.Serve(l) }()
		w.link = &http.Transport{Protocols: host.Protocols, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}
		defer func() {
			must.Do(t, pool.Close(context.Background()))
			servers.Wait()
			check.OK(t, host.Close())
			<-served
			w.link.CloseIdleConnections()
		}()
		test(t, w)
		w.child.End(0)
	})
}

// request is a request of bob's, unless headers say otherwise.
func (w *world) request(method, path string, body io.Reader, headers ...string) *http.Request {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(w.t.Context(), method, "http://lab"+path, body))(w.t)
	r.Header.Set(ahp.PortsPort, "3000")
	r.Header.Set(ahp.PortsReader, `{"names":["bob"]}`)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return r
}

func (w *world) ask(method, path string, headers ...string) *http.Response {
	w.t.Helper()
	return must.Get(w.link.RoundTrip(w.request(method, path, nil, headers...)))(w.t)
}

// text is the status and the body of an answer, or "reset" behind what came of it.
func text(resp *http.Response) string {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s := strings.TrimPrefix(resp.Status, "200 OK") + string(body)
	if err != nil {
		s += " reset"
	}
	return s
}

// head reads a request up to the end of its headers.
func head(in *bufio.Reader) string {
	var all strings.Builder
	for {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if err != nil || line == "\r\n" {
			return all.String()
		}
	}
}

// says is a dev server that answers each connection's first request with these bytes,
// and waits until the connection is closed.
func says(answer string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		head(in)
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(io.Discard, in)
	}
}

// handles is a dev server of net/http.
func handles(h http.HandlerFunc) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		oneconn.Serve(context.Background(), &http.Server{Handler: h}, &begun{conn, in})
	}
}

// begun is a connection from which something was already read.
type begun struct {
	net.Conn
	in io.Reader
}

func (c *begun) Read(p []byte) (int, error) { return c.in.Read(p) }

var errRefused = errors.New("connection refused")
