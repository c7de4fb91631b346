package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/events"
	"tether/internal/testkit/must"
	"tether/mcp"
	"tether/vocab"
)

// long is the timeout, in ms, of waits that end sooner because their condition is met.
const long = 600_000

func wait(t *testing.T, session *sdk.ClientSession, args m) (r readAnswer) {
	t.Helper()
	args["terminalId"] = "pty-a"
	text, isError := "", false
	done := make(chan struct{})
	go func() { // not under answer's patience, which is time of a bubble
		defer close(done)
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_terminal", Arguments: args})
		if err != nil {
			text, isError = err.Error(), true
			return
		}
		text, isError = res.Content[0].(*sdk.TextContent).Text, res.IsError
	}()
	<-done
	if isError {
		t.Fatalf("wait %v: %s", args, text)
	}
	unmarshal(t, text, &r)
	return r
}

// TestWait checks why and when a wait ends.
func TestWait(t *testing.T) {
	code := 3
	needsRows := map[string]bool{"a status of several lines": true, "a line that stands while others change": true}
	quickly := func(texts ...string) func(*fakeTerminal) { // one after the other, 100 ms apart
		return func(x *fakeTerminal) {
			for i, text := range texts {
				if i > 0 {
					time.Sleep(100 * time.Millisecond)
				}
				x.print(text)
			}
		}
	}
	for _, c := range []struct {
		name   string
		before func(*fakeTerminal)
		after  []func(*fakeTerminal) // one a second
		args   m
		want   string // reason
		at     time.Duration
		check  func(readAnswer) bool
	}{
		{"a line that comes", nil, []func(*fakeTerminal){say("starting\r\n"), say("Local: http://localhost:51"), say("73/\r\n")},
			m{"pattern": `localhost:(\d{4})`}, "pattern", 3 * time.Second, func(r readAnswer) bool { return r.Line == "Local: http://localhost:5173/" }},
		{"a line that is there", say("ready\r\n$ "), nil, m{"pattern": "^ready$"}, "pattern", 0, func(r readAnswer) bool { return r.Line == "ready" && r.Cursor > 0 }},
		{"a prompt without an end of line", nil, []func(*fakeTerminal){say("Password: ")}, m{"pattern": "Password: $"}, "pattern", 1200 * time.Millisecond, nil},
		{"a status that is written over", nil, []func(*fakeTerminal){quickly("Tests: 0 total\r", "Tests: 3 total\r\n")}, m{"pattern": "Tests: .* total"}, "pattern", 1100 * time.Millisecond,
			func(r readAnswer) bool { return r.Line == "Tests: 3 total" }},
		{"a status of several lines", nil, []func(*fakeTerminal){quickly("Looking for tests…\x1b[999D\x1b[KTests: 0 total\r\nTime: 0 s", "\r\x1b[K\x1b[1A\x1b[KTests: 3 total\r\nTime: 1 s")},
			m{"pattern": "Tests: .* total"}, "pattern", 1300 * time.Millisecond, func(r readAnswer) bool { return r.Line == "Tests: 3 total" }},
		{"any line", nil, []func(*fakeTerminal){quickly("Tests: 0 total\r", "Tests: 3 total\r\n")}, m{"pattern": "Tests: .* total", "settleMs": 0}, "pattern", time.Second,
			func(r readAnswer) bool { return r.Line == "Tests: 0 total" }},
		{"a line that stands while others change", nil, []func(*fakeTerminal){quickly("\x1b[2J\x1b[Hready\r\n", "\x1b[5Ha", "\x1b[5Hb", "\x1b[5Hc", "\x1b[5Hd")}, m{"pattern": "ready"}, "pattern", 1200 * time.Millisecond, nil},
		{"a line that has left a screen that is redrawn", say("\x1b[H"), []func(*fakeTerminal){say("ready\r\n" + strings.Repeat("x\r\n", 30))}, m{"pattern": "ready"}, "pattern", time.Second, nil},
		{"the last line before an exit", nil, []func(*fakeTerminal){func(x *fakeTerminal) { say("done")(x); exits(0)(x) }}, m{"pattern": "done"}, "pattern", time.Second, nil},
		{"a look at what is there", say("Password: "), nil, m{"pattern": "Password", "timeoutMs": 0}, "pattern", 0, nil},
		{"a line that stands too short", nil, []func(*fakeTerminal){nop, say("Password: ")}, m{"pattern": "Password", "timeoutMs": 2100}, "timeout", 2100 * time.Millisecond, nil},
		{"a coloured line", nil, []func(*fakeTerminal){say("\x1b[32mrea\x1b[1mdy\x1b[0m in 5 ms\r\n")}, m{"pattern": "^ready in"}, "pattern", time.Second, nil},
		{"a line before since does not count", say("ready\r\n"), []func(*fakeTerminal){say("x\r\n")}, m{"pattern": "ready", "since": 7, "timeoutMs": 2000}, "timeout", 2 * time.Second,
			func(r readAnswer) bool { return r.History == "x\n" }},
		{"nothing", nil, nil, m{"pattern": "x"}, "timeout", 30 * time.Second, nil},
		{"nothing, and no time", say("a"), nil, m{"pattern": "b", "timeoutMs": 0}, "timeout", 0, func(r readAnswer) bool { return r.History == "a" && r.Cursor == 1 }},
		{"the exit", say("out\r\n"), []func(*fakeTerminal){nop, exits(3)}, m{}, "exit", 2 * time.Second, func(r readAnswer) bool {
			return r.Exited && *r.ExitCode == 3 && r.ExitReason == "exited" && r.History == "out\n"
		}},
		{"the exit ends a wait for a line", nil, []func(*fakeTerminal){say("crash\r\n"), exits(1)}, m{"pattern": "ready"}, "exit", 2 * time.Second,
			func(r readAnswer) bool { return r.History == "crash\n" && *r.ExitCode == 1 }},
		{"an exit that has happened", func(x *fakeTerminal) { say("crash\r\n")(x); exits(1)(x) }, nil, m{"exit": true}, "exit", 0, nil},
		{"a line before an exit that has happened", func(x *fakeTerminal) { say("ready\r\n")(x); exits(0)(x) }, nil, m{"pattern": "ready"}, "pattern", 0, nil},
		{"silence", say("old"), nil, m{"idleMs": 1500}, "idle", 1500 * time.Millisecond, nil},
		{"silence after noise", say("old"), []func(*fakeTerminal){say("a"), say("b")}, m{"idleMs": 1500, "pattern": "never"}, "idle", 3500 * time.Millisecond, nil},
		{"a command that runs", running("make"), []func(*fakeTerminal){say("cc\r\n"), finishes(vocab.Command{N: 1, Line: new("make"), Exit: &code})}, m{"command": true}, "command", 2 * time.Second,
			func(r readAnswer) bool {
				return r.Command != nil && r.Command.Line == "make" && *r.Command.ExitCode == 3
			}},
		{"no command runs", func(x *fakeTerminal) { say("$ ")(x); finishes(vocab.Command{N: 1, Line: new("ls")})(x) }, nil, m{"command": true}, "command", 0,
			func(r readAnswer) bool { return r.Command.Line == "ls" && r.Cursor == 2 }},
		{"one that has finished since", func(x *fakeTerminal) {
			say("$ ")(x)
			finishes(vocab.Command{N: 1, Line: new("ls")})(x)
			running("cat")(x)
		}, nil, m{"command": true, "since": 1}, "command", 0,
			func(r readAnswer) bool { return r.Command.Line == "ls" }},
		{"one within it does not end it", running("ssh box"), []func(*fakeTerminal){finishes(vocab.Command{N: 2, Line: new("ls"), Within: 1}), finishes(vocab.Command{N: 1, Line: new("ssh box"), Verified: true})},
			m{"command": true}, "command", 2 * time.Second, func(r readAnswer) bool { return r.Command.Line == "ssh box" }},
		{"one that is not verified", running("make"), []func(*fakeTerminal){finishes(vocab.Command{N: 2, Line: new("forged")}), finishes(vocab.Command{N: 1, Line: new("make"), Verified: true})},
			m{"verified": true}, "command", 2 * time.Second, func(r readAnswer) bool { return r.Command.Line == "make" && r.Command.Verified }},
		{"one that is not verified is enough", running("make"), []func(*fakeTerminal){finishes(vocab.Command{N: 1, Line: new("make")})}, m{"command": true}, "command", time.Second,
			func(r readAnswer) bool { return !r.Command.Verified }},
	} {
		for name, enter := range entrances {
			if name == "an event" && (c.want != "pattern" || c.args["since"] != nil || c.args["settleMs"] != nil || c.args["timeoutMs"] != nil || needsRows[c.name]) {
				continue // only a wait can be asked for these, or sees other rows
			}
			t.Run(c.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, x := withTerminal("pty-a")
					if c.before != nil {
						c.before(x)
					}
					ask := enter(t, f, x)
					played := make(chan struct{})
					go func() {
						defer close(played)
						for _, act := range c.after {
							time.Sleep(time.Second)
							act(x)
						}
					}()
					began := time.Now()
					r := ask(c.args)
					if took := time.Since(began).Truncate(time.Millisecond); r.Reason != c.want || took != c.at {
						t.Errorf("%s after %v, want %s after %v: %+v", r.Reason, took, c.want, c.at, r)
					}
					if c.check != nil && !c.check(r) {
						t.Errorf("the answer is %+v", r)
					}
					<-played
					synctest.Wait()
					if n := x.open(); n != 0 {
						t.Errorf("%d readers are left open", n)
					}
				})
			})
		}
	}
}

// entrances are the ways to ask for what a wait waits for.
var entrances = map[string]func(*testing.T, *fakeTerminals, *fakeTerminal) func(m) readAnswer{
	"wait_terminal": func(t *testing.T, f *fakeTerminals, _ *fakeTerminal) func(m) readAnswer {
		session := one(t, f)
		return func(args m) readAnswer { return wait(t, session, args) }
	},
	// As the command line, declared terminals and the host's shells wait.
	"Wait": func(t *testing.T, _ *fakeTerminals, x *fakeTerminal) func(m) readAnswer {
		return func(args m) (r readAnswer) {
			ms := func(name string, absent int) time.Duration {
				n, ok := args[name].(int)
				if !ok {
					n = absent
				}
				return time.Duration(n) * time.Millisecond
			}
			req := agenttools.WaitRequest{Since: -1, Idle: ms("idleMs", 0), Settle: ms("settleMs", 200), Timeout: max(1, ms("timeoutMs", 30_000))}
			req.Pattern, _ = args["pattern"].(string)
			req.Verified, _ = args["verified"].(bool)
			if req.Command, _ = args["command"].(bool); req.Verified {
				req.Command = true
			}
			if since, ok := args["since"].(int); ok {
				req.Since = int64(since)
			}
			if req.Settle == 0 {
				req.Settle = -1
			}
			got := must.Get(agenttools.Wait(t.Context(), x, nil, req))(t)
			text, _ := agenttools.Result{Answer: got}.Text()
			unmarshal(t, text, &r)
			return r
		}
	},
	// The first event of a subscription.
	"an event": func(t *testing.T, f *fakeTerminals, x *fakeTerminal) func(m) readAnswer {
		return func(args m) readAnswer {
			e := events.New(events.Options{Terminals: f})
			defer e.Close()
			about, _ := json.Marshal(m{"terminalId": "pty-a", "pattern": args["pattern"]})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			first := &firstEvent{cancel: cancel}
			_ = e.Stream(ctx, &events.Request{Name: events.Line, Arguments: about, Oldest: true}, first)
			return first.answer
		}
	},
}

// firstEvent ends its stream with the first event.
type firstEvent struct {
	cancel context.CancelFunc
	answer readAnswer
}

func (*firstEvent) Active(string, bool) error { return nil }
func (*firstEvent) Heartbeat(string) error    { return nil }
func (f *firstEvent) Event(ev events.Event) error {
	f.answer.Reason, f.answer.Line = "pattern", ev.Data["line"].(string)
	f.answer.Cursor = ev.Data["offset"].(int64) + int64(len(f.answer.Line))
	f.cancel()
	return nil
}

func say(s string) func(*fakeTerminal) { return func(x *fakeTerminal) { x.print(s) } }
func nop(*fakeTerminal)                {}
func exits(code int) func(*fakeTerminal) {
	return func(x *fakeTerminal) { x.exit(vocab.Exit{Code: code, Reason: "exited"}) }
}
func finishes(c vocab.Command) func(*fakeTerminal) { return func(x *fakeTerminal) { x.finish(c) } }
func running(line string) func(*fakeTerminal) {
	return func(x *fakeTerminal) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.info.Detection, x.info.Running = true, line
		x.commands = append(x.commands, vocab.Command{N: len(x.commands) + 1, Line: new(line), Running: true, Verified: true})
	}
}

// A flood of output does not make a wait miss its timeout or its line.
func TestWaitInFlood(t *testing.T) {
	f, x := withTerminal("pty-a")
	session := one(t, f)
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; !stop.Load(); n++ {
			x.print(strings.Repeat("flood "+strconv.Itoa(n)+"\r\n", 100))
		}
	}()
	defer func() { stop.Store(true); <-ended }()
	eventually(t, "it floods", func() bool { return x.Info().End > 0 })
	if r := wait(t, session, m{"pattern": "never", "timeoutMs": 300}); r.Reason != "timeout" || len(r.History) > 8<<10 || r.History == "" {
		t.Errorf("%s with %d bytes", r.Reason, len(r.History))
	}
	if r := wait(t, session, m{"pattern": "^flood \\d+5$", "since": x.Info().End, "timeoutMs": long}); r.Reason != "pattern" {
		t.Errorf("%+v", r.Reason)
	}
}

// When a client disconnects or cancels, the resources of its wait are freed.
func TestWaitIsFreed(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(cancel context.CancelFunc, conn net.Conn)
	}{
		{"cancelled", func(cancel context.CancelFunc, _ net.Conn) { cancel() }},
		{"gone", func(_ context.CancelFunc, conn net.Conn) { conn.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, x := withTerminal("pty-a")
			session, conn := dial(t, newServer(t, mcp.Options{Tools: agenttools.New(agenttools.Options{Terminals: f, Waits: 1})}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "wait_terminal", Arguments: m{"terminalId": "pty-a", "timeoutMs": 600000}})
				ended <- err
			}()
			eventually(t, "the wait reads", func() bool { return x.open() == 1 })
			if text, isError := answer(t, session, "wait_terminal", m{"terminalId": "pty-a"}); !isError || text != "1 calls of wait_terminal are waiting, the maximum" {
				t.Errorf("one wait too many: %q", text)
			}
			c.end(cancel, conn)
			<-ended
			eventually(t, "the wait is freed", func() bool { return x.open() == 0 })
		})
	}
}

func TestWaitReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTerminals{}
		f.add("pty-a", agenttools.OwnerUser)
		var told atomic.Int32
		session := connect(t, newServer(t, mcp.Options{Tools: toolsOver(f)}), &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				if r.Params.ProgressToken == "mine" {
					told.Add(1)
				}
			},
		})
		params := &sdk.CallToolParams{Name: "wait_terminal", Arguments: m{"terminalId": "pty-a", "timeoutMs": 21000}}
		params.SetProgressToken("mine")
		must.Get(session.CallTool(t.Context(), params))(t)
		if n := told.Load(); n != 4 {
			t.Errorf("told %d times in 21 s, want 4", n)
		}
	})
}

func TestWaitForPort(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if r := wait(t, session, m{"port": port, "timeoutMs": 300}); r.Reason != "timeout" || r.Address != "" {
		t.Errorf("a port that is closed: %+v", r)
	}
	got := make(chan readAnswer, 1)
	go func() { got <- wait(t, session, m{"port": port, "timeoutMs": long}) }()
	eventually(t, "the wait reads", func() bool { return x.open() == 1 })
	if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		t.Skipf("somebody else took port %d: %v", port, err)
	}
	defer l.Close()
	if r := <-got; r.Reason != "port" || r.Address != l.Addr().String() || r.Listener != "" {
		t.Errorf("a port that opens: %+v", r)
	}
	for owner, want := range map[string]string{"pty-a": "this terminal", "pty-b": "another program"} {
		f.owner = owner
		if r := wait(t, session, m{"port": port, "timeoutMs": long}); r.Listener != want {
			t.Errorf("the port of %s: listener %q", owner, r.Listener)
		}
	}
	x.exit(vocab.Exit{Code: 1})
	if r := wait(t, session, m{"port": 1}); r.Reason != "exit" {
		t.Errorf("a program that exits without: %+v", r)
	}
}

func TestWaitForURL(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	var status atomic.Int32
	status.Store(503)
	elsewhere := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/there":
		default:
			w.WriteHeader(int(status.Load()))
		}
	}))
	defer srv.Close()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer tls.Close()
	elsewhere = "http://example.com/"
	for _, c := range []struct {
		path   string
		status int
		detail string
	}{{"", 503, "it answers 503"}, {"/away", 0, "it must be localhost"}} {
		eventually(t, c.detail, func() bool { // an answer may take longer than a wait
			r := wait(t, session, m{"url": srv.URL + c.path, "timeoutMs": 300})
			if r.Reason != "timeout" {
				t.Fatalf("%q: %+v", c.path, r)
			}
			return r.Status == c.status && strings.Contains(r.Detail, c.detail)
		})
	}
	for _, url := range []string{srv.URL + "/moved", tls.URL, strings.Replace(srv.URL, "127.0.0.1", "app.localhost", 1) + "/there"} {
		if r := wait(t, session, m{"url": url, "timeoutMs": long}); r.Reason != "url" || r.Status != 200 {
			t.Errorf("%s: %+v", url, r)
		}
	}
	time.AfterFunc(150*time.Millisecond, func() { status.Store(204) })
	if r := wait(t, session, m{"url": srv.URL + "/", "port": 1, "timeoutMs": long}); r.Reason != "url" || r.Status != 204 {
		t.Errorf("becomes ready: %+v", r)
	}
}
