package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

func TestPeekMCP(t *testing.T) {
	for line, want := range map[string]peekedMCP{
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                                     {id: "7", method: "ping"},
		`{"jsonrpc":"2.0","id":"a\"b","result":{"id":9,"method":"no"}}`:                                {id: `"a\"b"`},
		`{"method":"notifications/initialized"}`:                                                       {method: "notifications/initialized"},
		`{"id":1,"method":"resources/subscribe","params":{"uri":"terminal:///x","other":[1,{"a":2}]}}`: {id: "1", method: "resources/subscribe", uri: "terminal:///x"},
		`{"id":null,"method":"ping"}`:                                                                  {method: "ping"},
		`{"id":{"a":1},"method":"ping"}`:                                                               {method: "ping"},
		`{"id":1,"method":7}`:                                                                          {id: "1"},
		`{"id":1,"method":"x","params":[1]}`:                                                           {id: "1", method: "x"},
		`{"method":"notifications/cancelled","params":{"requestId":3}}`:                                {method: "notifications/cancelled", cancelled: "3"},
		`{"id":1`:                    {},
		`[{"id":1,"method":"ping"}]`: {},
		"":                           {},
		"null":                       {},
	} {
		if got := peekMCP([]byte(line + "\n")); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// FuzzPeekMCP looks at anything: an id is JSON that can be sent back.
func FuzzPeekMCP(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"x"}}`))
	f.Add([]byte(`{"id":-0.5e1}`))
	f.Add([]byte(`{"id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m := peekMCP(line)
		if m.id == "" {
			return
		}
		if back := peekMCP([]byte(`{"jsonrpc":"2.0","id":` + m.id + `,"error":{}}`)); back.id != m.id {
			t.Errorf("%q has the id %q, which reads back as %q", line, m.id, back.id)
		}
	})
}

// A pipe whose client has ended, but whose input is held by another process, ends when
// nothing comes any more.
func TestOrphanedPipe(t *testing.T) {
	for _, c := range []struct {
		name string
		says time.Duration // when a message comes, after the parent's end; 0: never
		ends bool
	}{{"silent", 0, true}, {"behind a wrapper", 9 * time.Second, false}, {"of a client that lives", -time.Second, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				p := &mcpPipe{orphan: func() bool { return c.says >= 0 && time.Since(began) >= 20*time.Second }}
				ctx, cancel := context.WithCancel(t.Context())
				go p.watchParent(ctx)
				if c.says > 0 {
					time.Sleep(20*time.Second + c.says)
					p.mu.Lock()
					p.said++
					p.mu.Unlock()
				}
				time.Sleep(time.Minute)
				if p.isDone() != c.ends {
					t.Errorf("it has ended: %v", p.isDone())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// mcpEnd is the daemon's end of an MCP session, which a test plays.
type mcpEnd struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// mcpEnds is a daemon of such sessions.
func mcpEnds(t *testing.T) (door *localclient.Client, ends <-chan *mcpEnd) {
	t.Helper()
	socket := agent.SocketPath(dirsOf(testkit.Home(t)))
	l := must.Get(ipc.Listen(socket))(t)
	ch := make(chan *mcpEnd, 10)
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			if _, err := http.ReadRequest(in); err != nil {
				conn.Close()
				continue
			}
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcp\r\n\r\n")
			ch <- &mcpEnd{t, conn, in}
		}
	}()
	door = localclient.New(socket)
	t.Cleanup(func() { door.Close(); l.Close() })
	return door, ch
}

// hears is the next line of the client, which has these words in it.
func (e *mcpEnd) hears(words string) {
	e.t.Helper()
	_ = e.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := e.in.ReadString('\n'); err != nil || !strings.Contains(line, words) {
		e.t.Fatalf("the daemon heard %q, %v; want %s", line, err, words)
	}
}

func (e *mcpEnd) says(line string) {
	e.t.Helper()
	must.Get(io.WriteString(e.conn, line+"\n"))(e.t)
}

// A client that is done while there is no daemon is done, too, when the next one answers
// in that moment.
func TestMCPClientThatIsDoneWhileAway(t *testing.T) {
	door, ends := mcpEnds(t)
	in, say := io.Pipe()
	p := &mcpPipe{in: in, out: io.Discard, timeout: patience, notice: func(string, ...any) {}}
	opened := 0
	p.open = func(ctx context.Context) (*localclient.MCPStream, error) {
		if opened++; opened == 2 {
			say.Close()
			testkit.Eventually(t, patience, "it is done", p.isDone)
		}
		return door.MCP(ctx)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	(<-ends).conn.Close()
	next := <-ends
	_ = next.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := next.in.ReadString('\n'); err != io.EOF {
		t.Errorf("the next daemon heard %q, %v; want the end", line, err)
	}
	next.conn.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("it goes on without a client")
	}
}

// A client that takes no more ends the pipe with the error of the write. It is no loss of
// the daemon, which is not connected to again.
func TestMCPClientThatTakesNothing(t *testing.T) {
	door, ends := mcpEnds(t)
	in, say := io.Pipe()
	defer say.Close()
	taken, out := io.Pipe()
	taken.CloseWithError(syscall.EPIPE)
	p := &mcpPipe{open: door.MCP, in: in, out: out, timeout: patience, notice: func(format string, _ ...any) { t.Error(format) }}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	first := <-ends
	defer first.conn.Close()
	first.says(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	select {
	case err := <-ended:
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("it ends with %v", err)
		}
	case <-ends:
		t.Error("it connects again")
	}
}

// A subscription outlives the daemon even if the next one has the terminal only after a
// while, and the client is told to look at output printed meanwhile.
func TestMCPSubscriptionToATerminalThatComesLate(t *testing.T) {
	door, ends := mcpEnds(t)
	in, say := io.Pipe()
	var heard testkit.Output
	p := &mcpPipe{open: door.MCP, in: in, out: &heard, timeout: patience, notice: func(string, ...any) {}}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	const subscribe = `{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"terminal:///pty-a"}}`
	first := <-ends
	go io.WriteString(say, subscribe+"\n")
	first.hears(subscribe)
	first.says(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	testkit.Eventually(t, patience, "the client has the answer", func() bool { return strings.Contains(heard.String(), `"id":7`) })
	first.conn.Close()
	next := <-ends
	next.hears(subscribe)
	next.says(`{"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found"}}`)
	next.hears(subscribe)
	next.says(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	testkit.Eventually(t, patience, "the client is told to look", func() bool {
		return strings.Contains(heard.String(), `"method":"notifications/resources/updated","params":{"uri":"terminal:///pty-a"}`)
	})
	if got := heard.String(); strings.Count(got, `"id":7`) != 1 {
		t.Errorf("the client heard %s", got)
	}
	say.Close()
	_ = next.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := next.in.ReadString('\n'); err != io.EOF { // before the connection ends, or the pipe connects once more
		t.Errorf("the next daemon heard %q, %v; want the end", line, err)
	}
	next.conn.Close()
	<-ended
}

// A daemon that shuts down fails the streams of events it serves. The client does not
// hear of it: the next daemon goes on behind the last cursor.
func TestEventStreamThatAShutdownFails(t *testing.T) {
	door, ends := mcpEnds(t)
	in, say := io.Pipe()
	var heard testkit.Output
	p := &mcpPipe{open: door.MCP, in: in, out: &heard, timeout: patience, notice: func(string, ...any) {}}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	first := <-ends
	go io.WriteString(say, `{"jsonrpc":"2.0","id":"s","method":"events/stream","params":{"name":"terminal.line"}}`+"\n")
	first.hears(`"events/stream"`)
	const active = `{"jsonrpc":"2.0","method":"notifications/events/active","params":{"cursor":"c1","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}`
	first.says(active)
	testkit.Eventually(t, patience, "the client knows that the stream is active", func() bool { return strings.Contains(heard.String(), "events/active") })
	first.says(`{"jsonrpc":"2.0","id":"s","error":{"code":0,"message":"the server is shutting down"}}`)
	first.hears(`"cursor":"c1"`) // asked again, which is as well if it goes on after all
	first.conn.Close()
	next := <-ends
	next.hears(`"cursor":"c1"`)
	next.says(active)
	testkit.Eventually(t, patience, "the next daemon's message reaches the client", func() bool {
		return strings.Count(heard.String(), "events/active") == 2
	})
	if got := heard.String(); strings.Contains(got, "shutting down") {
		t.Errorf("the client heard %s", got)
	}
	// Its own end is the client's to hear.
	next.says(`{"jsonrpc":"2.0","id":"s","result":{}}`)
	testkit.Eventually(t, patience, "the stream ends", func() bool { return strings.Contains(heard.String(), `"result"`) })
	say.Close()
	_ = next.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := next.in.ReadString('\n'); err != io.EOF {
		t.Errorf("the next daemon heard %q, %v; want the end", line, err)
	}
	next.conn.Close()
	<-ended
}
