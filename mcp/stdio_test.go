package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agenttools"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// rawClient sends and receives lines without the SDK.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// raw opens a session and completes the handshake.
func raw(t *testing.T, s *mcp.Server) *rawClient {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), there) }()
	t.Cleanup(func() {
		here.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	must.Do(t, here.SetDeadline(time.Now().Add(patience)))
	c := &rawClient{t: t, conn: here, in: bufio.NewReader(here)}
	c.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *rawClient) send(lines ...string) {
	c.t.Helper()
	must.Get(io.WriteString(c.conn, strings.Join(lines, "\n")+"\n"))(c.t)
}

// message is a message of the server.
type message struct {
	JSONRPC string `json:"jsonrpc"`
	ID      any    `json:"id"`
	Error   *struct {
		Code    int
		Message string
	} `json:"error"`
	Result json.RawMessage `json:"result"`
}

func (c *rawClient) receive() message {
	c.t.Helper()
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", line, err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		c.t.Fatalf("%v in %q", err, line)
	}
	return m
}

const listCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_terminals"}}`

// An invalid request is answered, and the session continues.
func TestBadLines(t *testing.T) {
	for _, c := range []struct {
		name, line string
		code       int
		id         any
		want       string
	}{
		{"no JSON", "{bad", -32700, nil, "a line is not JSON"},
		{"not UTF-8", "\xff\xfe", -32700, nil, "a line is not JSON"},
		{"half a message", `{"jsonrpc":"2.0","id":1,"method":"tools/c`, -32700, nil, "a line is not JSON"},
		{"two messages", listCall + listCall, -32700, nil, "a line is not JSON"},
		{"a number", "7", -32600, nil, ""},
		{"a string", `"x"`, -32600, nil, ""},
		{"a batch", "[" + listCall + "]", -32600, nil, "batches are not supported; send one message per line"},
		{"an empty batch", "[]", -32600, nil, "batches are not supported; send one message per line"},
		{"half a character", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"\ud83d"}}`, -32600, 3.0, "surrogate pair"},
		{"an argument that is not UTF-8", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"` + "a\xe9" + `"}}`, -32600, 3.0, "not UTF-8"},
		{"an id that is half a character", `{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}`, -32600, nil, "surrogate pair"},
		{"another protocol", `{"jsonrpc":"1.0","id":3,"method":"ping"}`, -32600, 3.0, ""},
		{"an id that is none", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, -32600, nil, ""},
		{"a method that does not exist", `{"jsonrpc":"2.0","id":5,"method":"tools/kill"}`, -32601, 5.0, ""},
		{"parameters that are none", `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[1]}`, -32602, 6.0, ""},
		{"a second handshake", `{"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, 0, 8.0, "duplicate"},
		{"10 MiB", `{"jsonrpc":"2.0","id":9,"method":"ping","x":"` + strings.Repeat("x", 10<<20) + `"}`, -32600, nil, "a message has more than 1048576 bytes"},
		{"10 MiB of nothing", strings.Repeat(" ", 10<<20), -32600, nil, "a message has more than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
			go func() { // the pipe has no buffer
				io.WriteString(client.conn, c.line+"\n\n \r\n"+listCall+"\n")
			}()
			got, next := client.receive(), client.receive()
			if got.ID == 7.0 { // calls are answered in the order in which they end
				got, next = next, got
			}
			if got.Error == nil || got.Error.Code != c.code || got.ID != c.id || !strings.Contains(got.Error.Message, c.want) {
				t.Errorf("answer %+v %+v", got, got.Error)
			}
			if next.ID != 7.0 || next.Error != nil {
				t.Errorf("the next request: %+v", next)
			}
		})
	}
}

// A notification is never answered, even a faulty one.
func TestBadNotifications(t *testing.T) {
	client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
	client.send(`{"jsonrpc":"2.0","method":"no/such"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":4}`, listCall)
	if m := client.receive(); m.ID != 7.0 || m.Error != nil {
		t.Errorf("first answer %+v", m)
	}
}

// Before the handshake, the server serves only a ping.
func TestNothingBeforeHandshake(t *testing.T) {
	here, there := net.Pipe()
	s := newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})})
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), there) }()
	c := &rawClient{t: t, conn: here, in: bufio.NewReader(here)}
	c.send(listCall)
	if m := c.receive(); m.Error == nil || !strings.Contains(m.Error.Message, "initialization") {
		t.Errorf("answer %+v", m)
	}
	here.Close()
	check.OK(t, <-served)
}

// halfConn is a connection of which a client can close one direction.
type halfConn struct {
	io.Reader
	io.Writer
	close func()
}

func (h halfConn) Close() error { h.close(); return nil }

// A script that pipes its requests in and closes its side gets its answers.
func TestAnswersAfterEnd(t *testing.T) {
	f := &fakeTerminals{killing: 100 * time.Millisecond}
	f.add("pty-a", agenttools.OwnerAgent)
	s := newServer(t, mcp.Options{Tools: toolsOver(f)})
	requests := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"kill_terminal","arguments":{"terminalId":"pty-a"}}}`,
		listCall, // without an end of line after it
	}, "\n")
	out, answers := io.Pipe()
	go s.Serve(context.Background(), halfConn{strings.NewReader(requests), answers, func() { answers.Close() }})
	var ids []any
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var m message
		unmarshal(t, lines.Text(), &m)
		ids = append(ids, m.ID)
	}
	slices.SortFunc(ids, func(a, b any) int { return int(a.(float64) - b.(float64)) })
	if len(ids) != 3 || ids[0] != 1.0 || ids[1] != 2.0 || ids[2] != 7.0 {
		t.Errorf("answers to %v", ids)
	}
}

// endingMessages returns its messages and then io.EOF at once.
type endingMessages struct {
	lines []string
	io.WriteCloser
}

func (m *endingMessages) Next() (data []byte, done func(), err error) {
	if len(m.lines) == 0 {
		return nil, nil, io.EOF
	}
	data, m.lines = []byte(m.lines[0]), m.lines[1:]
	return data, func() {}, nil
}

// A request directly before the end of the stream is answered. It was lost when the end
// was read before the request had a slot of calls.
func TestAnswerToLastRequest(t *testing.T) {
	for range 20 {
		f := &fakeTerminals{killing: time.Millisecond}
		f.add("pty-a", agenttools.OwnerAgent)
		s := newServer(t, mcp.Options{Tools: toolsOver(f)})
		out, answers := io.Pipe()
		go s.ServeMessages(t.Context(), &endingMessages{[]string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"kill_terminal","arguments":{"terminalId":"pty-a"}}}`,
		}, answers})
		var last message
		for lines := bufio.NewScanner(out); lines.Scan(); {
			last = message{}
			unmarshal(t, lines.Text(), &last)
		}
		if last.ID != 2.0 || last.Error != nil {
			t.Fatalf("the last answer is to %v, with error %+v", last.ID, last.Error)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{}), Sessions: 2})
	connect(t, s, nil)
	_, conn := dial(t, s, nil)
	_, there := net.Pipe()
	if err := s.Serve(t.Context(), there); !errors.Is(err, mcp.ErrTooMany) {
		t.Errorf("a third session: %v", err)
	}
	conn.Close()
	eventually(t, "a place is free", func() bool {
		here, there := net.Pipe()
		here.Close()
		return s.Serve(t.Context(), there) == nil
	})
}

// The number of unanswered requests is bounded if the client does not read. When it
// reads, it gets all answers.
func TestFloodOfRequests(t *testing.T) {
	client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
	const n = 5000
	var sent atomic.Int32
	go func() {
		for i := range n {
			fmt.Fprintf(client.conn, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
			sent.Add(1)
		}
	}()
	was := int32(-1)
	eventually(t, "it is not read any more", func() bool {
		now := sent.Load()
		defer func() { was = now }()
		return now > 0 && now == was
	})
	if sent.Load() > 2000 {
		t.Errorf("%d requests were read without an answer", sent.Load())
	}
	seen := map[any]bool{}
	for range n {
		seen[client.receive().ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d answers", len(seen))
	}
}

// The number of messages that the server reads is bounded while the client does not read
// the answer to initialize.
func TestFloodBehindTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})})
		here, there := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), there) }()
		const n = 10000
		sent := 0
		go func() {
			_, _ = io.WriteString(here, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n")
			for sent = range n {
				if _, err := fmt.Fprintf(here, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"%0100d"}}`+"\n", sent, sent); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if sent > n/10 {
			t.Errorf("%d notifications were read while the answer before them waits", sent)
		}
		here.Close()
		check.OK(t, <-served)
		synctest.Wait()
	})
}

// A request with the id of one that is being answered is refused; the first one is still
// answered.
func TestTwoRequestsOfOneID(t *testing.T) {
	f, x := withTerminal("pty-a")
	client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(f)}))
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","pattern":"ready","timeoutMs":600000}}}`
	client.send(call, call)
	if m := client.receive(); m.ID != nil || m.Error == nil || !strings.Contains(m.Error.Message, "being answered") {
		t.Errorf("the second one is answered %+v", m)
	}
	x.print("ready\r\n")
	if m := client.receive(); m.ID != 7.0 || m.Error != nil {
		t.Errorf("the first one is answered %+v", m)
	}
}

// asking is a client that sends one request after the other. It fails if a request is not
// done when its answer is written: the client might send the next one before that, and it
// would be refused.
type asking struct {
	t        *testing.T
	requests []string
	next     chan bool // 1 slot: the request before was answered
	open     atomic.Int32
	closed   chan struct{}
	close    sync.Once
}

func (a *asking) Next() (data []byte, done func(), err error) {
	if len(a.requests) == 0 {
		return nil, nil, io.EOF
	}
	select {
	case <-a.next:
	case <-a.closed:
		return nil, nil, io.EOF
	}
	a.open.Add(1)
	data, a.requests = []byte(a.requests[0]), a.requests[1:]
	return data, func() { a.open.Add(-1) }, nil
}

func (a *asking) Write(line []byte) (int, error) {
	if n := a.open.Load(); n != 0 {
		a.t.Errorf("%d requests are not done when the answer is written: %s", n, line)
	}
	a.next <- true
	return len(line), nil
}

func (a *asking) Close() error { a.close.Do(func() { close(a.closed) }); return nil }

func TestRequestsAreDoneBeforeTheirAnswers(t *testing.T) {
	s := newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})})
	client := &asking{t: t, next: make(chan bool, 1), closed: make(chan struct{}), requests: []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, // ids may be used again
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":3,"method":"nonsense"}`,
	}}
	client.next <- true
	check.OK(t, s.ServeMessages(t.Context(), client))
	if n := client.open.Load(); n != 0 || len(client.requests) > 0 {
		t.Errorf("in the end %d requests are not done, and %d were not read", n, len(client.requests))
	}
}

// Close ends waiting calls.
func TestCloseEndsSessions(t *testing.T) {
	f, x := withTerminal("pty-a")
	s := mcp.New(mcp.Options{Tools: toolsOver(f)})
	client := raw(t, s)
	client.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"terminal:///pty-a"}}`)
	client.receive()
	client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":600000}}}`)
	eventually(t, "both read", func() bool { return x.open() == 2 })
	s.Close()
	if n := x.open(); n != 0 {
		t.Errorf("%d readers are left", n)
	}
	if _, there := net.Pipe(); s.Serve(t.Context(), there) == nil {
		t.Error("a closed server serves")
	}
}

// FuzzLines sends any lines. Each line is answered or is a notification, answers are
// JSON, and the session still works.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		listCall, "{}", "[]", "null", "{bad", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "\x00", " ",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_terminal","arguments":{"terminalId":"pty-a","since":1e3}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":0}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"terminal:///pty-a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}`, `{"jsonrpc":"2.0","id":1,"result":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("timeoutMs")) && !bytes.Contains(data, []byte(`"timeoutMs":0`)) || bytes.Contains(data, []byte("notifications/cancelled")) {
			t.Skip("it may wait for long, or end what follows")
		}
		terminals := &fakeTerminals{}
		terminals.add("pty-a", agenttools.OwnerAgent).print("out\r\n")
		s := mcp.New(mcp.Options{Tools: toolsOver(terminals)})
		defer s.Close()
		client := raw(t, s)
		go io.WriteString(client.conn, string(data)+"\n"+`{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
		for client.receive().ID != "last" {
		}
	})
}
