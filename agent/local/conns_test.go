package local_test

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/rawio"
)

// request is a request of an agent, or of the person without a name.
func request(path, agent string) string {
	if agent != "" {
		agent = localapi.PrincipalHeader + ": " + agent + "\r\n"
	}
	return "GET " + path + " HTTP/1.1\r\nHost: tether\r\n" + agent + "\r\n"
}

// open opens connections and sends text on each.
func (w *world) open(n int, text string) (all []net.Conn) {
	w.t.Helper()
	for range n {
		conn := w.dial()
		must.Get(io.WriteString(conn, text))(w.t)
		all = append(all, conn)
	}
	return all
}

// wait opens connections on which an agent, or the person, waits for a terminal that does
// not end, until there are so many.
func (w *world) wait(n, total int, agent string) []net.Conn {
	w.t.Helper()
	of := term.User
	if agent != "" {
		of = term.Agent(agent)
	}
	all := w.open(n, request("/v1/terminals/one/wait", agent))
	testkit.Eventually(w.t, patience, "the waits", func() bool { return w.server.BusyConns(of) == total })
	return all
}

// refused asks as an agent, and returns the message of the refusal; "" if there is an
// answer.
func (w *world) refused(agent string) string {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	must.Get(io.WriteString(conn, request("/v1/terminals", agent)))(w.t)
	resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(w.t)
	if resp.StatusCode == http.StatusOK {
		return ""
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests || !resp.Close {
		w.t.Fatalf("%s, %v, want 429 and the end of the connection", resp.Status, err)
	}
	return string(text)
}

// An agent has 64 connections, all agents have 192, and the next one is told so. The
// person and other agents are not concerned; the person sees which agent it is.
func TestAgentsConnectionsAreBounded(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("one")
	a := w.wait(local.MaxAgentConns, 64, "a")
	if got := w.refused("a"); !strings.Contains(got, "agent a has 64 connections to the daemon open, the maximum") {
		t.Errorf("the 65th: %s", got)
	}
	if got := w.refused("b"); got != "" {
		t.Errorf("another agent: %s", got)
	}
	l, err := w.client.List(t.Context())
	if want := []localapi.Connections{{Of: "agent a", Open: 64, Max: 64}}; err != nil || !cmp.Equal(l.Crowded, want) {
		t.Errorf("the person's list: %+v, %v", l.Crowded, err)
	}
	if s, err := w.client.As("b").Status(t.Context()); err != nil || len(s.Connections) != 1 || s.Connections[0].Of != "agent b" {
		t.Errorf("what an agent sees: %+v, %v", s.Connections, err)
	}
	a[0].Close()
	testkit.Eventually(t, patience, "room for another", func() bool { return w.refused("a") == "" })

	w.wait(0, 63, "a") // the request for room has ended
	w.wait(1, 64, "a")
	w.wait(64, 64, "b")
	w.wait(64, 64, "c")
	if got := w.refused("d"); !strings.Contains(got, "all agents together have 192 connections to the daemon open, the maximum; agent d has 0 of them") {
		t.Errorf("the 193rd: %s", got)
	}
	l, err = w.client.List(t.Context())
	if err != nil || len(l.Crowded) != 3 {
		t.Errorf("the person's list: %+v, %v", l.Crowded, err)
	}
}

// Connections on which an agent waits for nothing make room for its next ones, the oldest
// first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	idle := w.open(local.MaxAgentConns, request("/v1/whoami", "a"))
	for _, c := range idle {
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
	}
	testkit.Eventually(t, patience, "an answer to the 65th", func() bool { return w.refused("a") == "" }) // once they are idle
	closed := 0
	for _, c := range idle {
		_, err := io.WriteString(c, request("/v1/whoami", "a"))
		if err == nil {
			_, err = http.ReadResponse(bufio.NewReader(c), nil)
		}
		if err != nil {
			closed++
		}
	}
	if closed != 1 {
		t.Errorf("%d were closed, want 1", closed)
	}
}

// The person's connections are bounded, too, by the number of files that may be open.
func TestPersonsConnectionsAreBounded(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	for files, want := range map[uint64]int{0: 1024, 20: 64, 256: 64, 1024: 256, 4096: 1024, math.MaxUint64: 1024} {
		if got := local.MaxPersonConns(files); got != want {
			t.Errorf("with %d files: %d, want %d", files, got, want)
		}
	}
	w := serve(t, local.Options{Files: 1024}, term.Options{})
	w.spawn("one")
	w.client.Close()
	testkit.Eventually(t, patience, "the end of its connection", func() bool { return w.server.OpenConns() == 0 })
	w.wait(256, 256, "")
	if got := w.refused(""); !strings.Contains(got, "your programs have 256 connections to the daemon open, the maximum") {
		t.Errorf("one too many: %s", got)
	}
	if got := w.refused("a"); got != "" {
		t.Errorf("an agent: %s", got)
	}
}

// Connections on which no request comes count for their callers, too. Nobody's make room
// for the next ones.
func TestConnectionsWithoutARequest(t *testing.T) {
	for who, max := range map[term.Actor]int{term.Agent("a"): local.MaxAgentConns, {}: local.MaxNobodysConns} {
		t.Run(who.String(), func(t *testing.T) {
			w := serve(t, local.Options{}, term.Options{})
			w.server.SayWho(func() term.Actor { return who })
			w.open(200, "")
			w.open(200, "GET /v1/")
			testkit.Eventually(t, patience, "the others are closed", func() bool { return w.server.OpenConns() <= max+1 })
			if _, err := w.client.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Looking for callers delays nobody else, even where it takes for ever.
func TestLookingForCallersDelaysNobody(t *testing.T) {
	end := make(chan bool)
	w := serve(t, local.Options{}, term.Options{})
	w.server.SayWho(func() term.Actor { <-end; return term.Actor{} })
	t.Cleanup(func() { close(end) })
	w.open(1500, "")
	if _, err := w.client.List(t.Context()); err != nil {
		t.Error(err)
	}
}

// An agent may have 16 user interfaces; the person's own are not concerned.
func TestInterfacesAreBounded(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	full := func(c *localclient.Client) {
		t.Helper()
		_, resp, err := websocket.Dial(t.Context(), "ws://"+localapi.Host+"/pty", &websocket.DialOptions{HTTPClient: c.HTTP()})
		if err == nil || resp == nil || resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("one too many: %v", err)
		}
	}
	for _, name := range []string{"a", "b"} {
		for range local.MaxViewersOfAgent {
			w.uiOf(w.client.As(name))
		}
		full(w.client.As(name))
	}
	for range local.MaxViewers {
		w.ui()
	}
	full(w.client)
}

// Over TCP nobody keeps out a client that shows a token.
func TestTCPConnectionsAreBounded(t *testing.T) {
	d := serveTCP(t)
	var all []net.Conn
	for range local.MaxNobodysConns + 10 {
		c := must.Get(net.Dial("tcp", d.addr))(t)
		defer c.Close()
		all = append(all, c)
	}
	for _, c := range all[:10] { // make room for the later ones
		must.Do(t, c.SetReadDeadline(time.Now().Add(patience)))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one of the oldest is open: %v", err)
		}
	}
	if resp, body := d.ask("GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n\r\n"); resp.StatusCode != http.StatusOK {
		t.Errorf("with a token: %s %s", resp.Status, body)
	}
}

// A head that an agent does not finish, or nobody, is waited for for 2 s, on a connection
// that was used before, too.
func TestHeadsThatDoNotCome(t *testing.T) {
	for name, sent := range map[string][]string{
		"nothing": nil, "half a head": {"GET / HTTP/1.1\r\n"}, "one byte after a request": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "G"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := must.Get(local.OpenTokens(t.TempDir()))(t)
			must.Get(tokens.User())(t)
			synctest.Test(t, func(t *testing.T) {
				server := local.NewServer(local.Options{Access: term.NewPool(term.Options{}).As, Daemon: &fakeDaemon{}, Tokens: tokens})
				port := pipes{testkit.NewPipes()}
				served := make(chan error, 1)
				go func() { served <- server.ServeTCP(port) }()
				here := must.Get(port.Dial())(t)
				defer here.Close()
				began := time.Now()
				for i, piece := range sent {
					if i > 0 { // once the one before is answered
						if resp, err := http.ReadResponse(bufio.NewReader(here), nil); err != nil || resp.StatusCode != http.StatusForbidden {
							t.Fatalf("%+v, %v", resp, err)
						}
						synctest.Wait()
					}
					must.Get(io.WriteString(here, piece))(t)
				}
				if _, err := io.ReadAll(here); err != nil && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it was open for %v", took)
				}
				check.OK(t, errors.Join(server.Close(), <-served))
			})
		})
	}
}

// Connections of both doors are read and written without Go's scheduler.
func TestConnectionsAreWrapped(t *testing.T) {
	tcp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l, inner := local.Table(tcp)
	defer l.Close()
	_, conn := testkit.Connect(t, l)
	if c := inner(conn); rawio.Wrap(c) != c {
		t.Errorf("%T is not wrapped", c)
	}
}
