package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// receiver is a program with the AI SDK that has subscribed to events by webhook.
type receiver struct {
	t     *testing.T
	lines *bufio.Scanner
	stdin io.WriteCloser
	cmd   *exec.Cmd
	err   strings.Builder
}

// told is a line of receiver.mjs.
type told struct {
	Subscribed, Refreshed, Unsubscribed string
	Listed                              []string
	Challenges                          int
	Event                               *struct {
		EventID string `json:"eventId"`
		Name    string
		Data    struct {
			Line  string
			Count int
			Last  string
		}
	}
	Gap, Terminated json.RawMessage
}

func newReceiver(t *testing.T, url, token, kind, args string) *receiver {
	t.Helper()
	tools, err := filepath.Abs("../../bin/tools")
	must.Do(t, err)
	node := filepath.Join(tools, "node22/node_modules/node/bin/node")
	for _, need := range []string{node, filepath.Join(tools, "events/node_modules/@ai-sdk/mcp")} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("no AI SDK; make test installs it")
		}
	}
	// A program's modules are looked for from its own place on.
	dir := t.TempDir()
	script := must.Get(os.ReadFile("testdata/receiver.mjs"))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "receiver.mjs"), script, 0o600))
	must.Do(t, os.Symlink(filepath.Join(tools, "events/node_modules"), filepath.Join(dir, "node_modules")))
	r := &receiver{t: t, cmd: exec.Command(node, filepath.Join(dir, "receiver.mjs"), url, token, freePort(t), kind, args)}
	out := must.Get(r.cmd.StdoutPipe())(t)
	r.cmd.Stderr = &r.err
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must.Do(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	r.lines = bufio.NewScanner(out)
	return r
}

// next is the receiver's next report.
func (r *receiver) next() (one told) {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("the receiver has ended: %s", r.err.String())
	}
	if err := json.Unmarshal(r.lines.Bytes(), &one); err != nil {
		r.t.Fatalf("%s: %v", r.lines.Bytes(), err)
	}
	return one
}

// A client that others have made lists the events and subscribes by webhook: it answers a
// challenge, is told of each line once, renews its subscription, and unsubscribes. One
// whose token is revoked is told that it is over.
func TestWebhooksReachTheAISDK(t *testing.T) {
	s := newStage(t)
	port := freePort(t)
	state := filepath.Join(s.dir, "state")
	tokens := filepath.Join(state, "tokens.json")
	own, agent := filepath.Join(s.dir, "own.token"), filepath.Join(s.dir, "agent.token")
	args := []string{"--listen", "127.0.0.1:" + port, "--tokens", tokens, "--token-file", own, "--webhooks", "--webhook-allow", "127.0.0.1"}
	start(t, args...)
	must.Do(t, os.WriteFile(agent, []byte(s.do(t, "tether-host", "token", "create", "ci", "--role", "agent", "--tokens", tokens)), 0o600))
	s.do(t, "tether", "pair", "--token-file", own, "ws://127.0.0.1:"+port)
	s.do(t, "tether", "run", "--detach", "--name", "server", "--", "sh", "-c", `n=1; while :; do until [ -e line$n ]; do sleep 0.05; done; echo "error $n"; n=$((n+1)); done`)
	r := newReceiver(t, "http://127.0.0.1:"+port+"/mcp", agent, "terminal.line", `{"pattern":"^error"}`)
	sub := r.next()
	if !strings.HasPrefix(sub.Subscribed, "sub_") || sub.Refreshed != sub.Subscribed || sub.Challenges != 1 || !slices.Contains(sub.Listed, "terminal.line") {
		t.Fatalf("subscribed: %+v", sub)
	}
	var got []string
	expect := func(when string, want ...string) {
		t.Helper()
		for len(got) < len(want) {
			one := r.next()
			if one.Event == nil || one.Event.Name != "terminal.line" {
				t.Fatalf("%s: %s", when, r.lines.Bytes())
			}
			got = append(got, one.Event.Data.Line)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: told of %q, want %q", when, got, want)
		}
	}
	print := func(n int) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("line%d", n)), nil, 0o600))
	}
	print(1)
	expect("a line", "error 1")
	must.Get(io.WriteString(r.stdin, "\n"))(t)
	if one := r.next(); one.Refreshed != sub.Subscribed {
		t.Fatalf("renewed: %s", r.lines.Bytes())
	}
	print(2)
	expect("another one", "error 1", "error 2")
	_ = r.stdin.Close()
	if one := r.next(); one.Unsubscribed == "" {
		t.Fatalf("unsubscribed: %s", r.lines.Bytes())
	}
	r = newReceiver(t, "http://127.0.0.1:"+port+"/mcp", agent, "terminal.exited", `{}`)
	if one := r.next(); one.Subscribed == "" || one.Subscribed == sub.Subscribed {
		t.Fatalf("subscribed anew: %+v", one)
	}
	s.do(t, "tether-host", "token", "revoke", "ci", "--tokens", tokens)
	if one := r.next(); !strings.Contains(string(one.Terminated), `"code"`) {
		t.Fatalf("the token is revoked: %s", r.lines.Bytes())
	}
}

// tether-host events prints a line for each event at a host, for agents that wake on
// lines.
func TestEventsAtAHost(t *testing.T) {
	s := newStage(t)
	port := freePort(t)
	tokens := filepath.Join(s.dir, "state", "tokens.json")
	own, agent := filepath.Join(s.dir, "own.token"), filepath.Join(s.dir, "agent.token")
	start(t, "--listen", "127.0.0.1:"+port, "--tokens", tokens, "--token-file", own)
	must.Do(t, os.WriteFile(agent, []byte(s.do(t, "tether-host", "token", "create", "ci", "--role", "agent", "--tokens", tokens)), 0o600))
	s.do(t, "tether", "pair", "--token-file", own, "ws://127.0.0.1:"+port)
	s.do(t, "tether", "run", "--detach", "--name", "server", "--", "sh", "-c", "while :; do echo fine; echo 'error 1'; sleep 0.2; done")
	c := s.command("tether-host", "events", "--url", "ws://127.0.0.1:"+port, "--token-file", agent, "--pattern", "^error", "--json")
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	var ev told
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(fmt.Appendf(nil, `{"event":%s}`, line), &ev)
	}
	if err != nil || ev.Event.Name != "terminal.line" || ev.Event.Data.Line != "error 1" || ev.Event.EventID == "" {
		t.Errorf("it prints %s, %v", line, err)
	}

	mute := s.command("tether-host", "events", "--url", "ws://127.0.0.1:"+port, "--token-file", agent, "--pattern", "^error")
	var said bytes.Buffer
	mute.Stdout, mute.Stderr = unwritable(t), &said
	if err := mute.Run(); mute.ProcessState.ExitCode() != exitFailure || !strings.HasPrefix(said.String(), "tether-host: write to standard output: ") {
		t.Errorf("without a place for the events: %v, %s", err, said.String())
	}
}

// A subscription of a client that others have made outlives the host, also one that is
// killed as soon as an event has come: the next one tells its receiver of what was
// printed meanwhile, each line once, and then of what comes.
func TestTheAISDKOverARestartOfTheHost(t *testing.T) {
	s := newStage(t)
	port := freePort(t)
	tokens := filepath.Join(s.dir, "state", "tokens.json")
	own, agent := filepath.Join(s.dir, "own.token"), filepath.Join(s.dir, "agent.token")
	args := []string{"--listen", "127.0.0.1:" + port, "--tokens", tokens, "--token-file", own, "--webhooks", "--webhook-allow", "127.0.0.1"}
	stop := start(t, args...).end
	must.Do(t, os.WriteFile(agent, []byte(s.do(t, "tether-host", "token", "create", "ci", "--role", "agent", "--tokens", tokens)), 0o600))
	s.do(t, "tether", "pair", "--token-file", own, "ws://127.0.0.1:"+port)
	s.do(t, "tether", "run", "--detach", "--name", "server", "--", "sh", "-c", `n=1; while :; do until [ -e line$n ]; do sleep 0.05; done; echo "error $n"; n=$((n+1)); done`)
	r := newReceiver(t, "http://127.0.0.1:"+port+"/mcp", agent, "terminal.line", `{"pattern":"^error"}`)
	if one := r.next(); !strings.HasPrefix(one.Subscribed, "sub_") {
		t.Fatalf("subscribed: %+v", one)
	}
	l := lines{receiver: r, dir: s.dir}
	l.print()
	l.expect("before")
	for round := range 4 {
		stop(t)
		for range 4 {
			l.print()
		}
		if l.killed = round%2 == 1; round%2 == 0 {
			stop = startProcess(t, args...)
		} else {
			stop = start(t, args...).end
		}
		l.expect("what was printed while there was no host")
		l.print()
		l.expect("what is printed then")
	}
}

// Of several nodes one delivers. A client that has subscribed at another one is told of
// each line once, also when the node dies that delivers and that has the machine.
func TestWebhooksOfNodes(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	var nodes [2]*exec.Cmd
	var addresses, files [2]string
	for n := range 2 {
		files[n] = filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json")
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", "--tokens", files[n], "--nats", servers.URLs, "--webhooks", "--webhook-allow", "127.0.0.1")
	}
	agent, token := filepath.Join(s.dir, "agent.token"), filepath.Join(s.dir, "laptop.token")
	for path, args := range map[string][]string{agent: {"ci", "--role", "agent"}, token: {"laptop", "--once"}} {
		text := s.do(t, "tether-host", append(append([]string{"token", "create"}, args...), "--tokens", files[1])...)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	m := s.machine(t)
	m.do(t, "tether", "pair", "--token-file", token, "ws://"+addresses[0], "ws://"+addresses[1])
	m.do(t, "tether", "run", "--detach", "--name", "server", "--", "sh", "-c", `n=1; while :; do until [ -e $PARTS/line$n ]; do sleep 0.05; done; echo "error $n"; n=$((n+1)); done`)
	r := newReceiver(t, "http://"+addresses[1]+"/mcp", agent, "terminal.line", `{"pattern":"^error"}`)
	if one := r.next(); !strings.HasPrefix(one.Subscribed, "sub_") {
		t.Fatalf("subscribed: %+v", one)
	}
	l := lines{receiver: r, dir: s.dir, killed: true}
	for range 3 {
		l.print()
		l.expect("a line")
	}
	must.Do(t, nodes[0].Process.Kill())
	_ = nodes[0].Wait() // it was killed
	for range 3 {
		l.print()
	}
	l.expect("what was printed when the node had died")
	l.print()
	l.expect("a line at the other node")
}

// lines are those of a terminal that a receiver is to be told of.
type lines struct {
	*receiver
	dir            string
	printed, taken int
	seen           map[string]bool // events by id
	killed         bool            // a host was killed: a gap tells where it was, and the last event may come again
}

// print lets the terminal print one more.
func (l *lines) print() {
	l.t.Helper()
	l.printed++
	must.Do(l.t, os.WriteFile(filepath.Join(l.dir, fmt.Sprintf("line%d", l.printed)), nil, 0o600))
}

// expect takes events until each printed line is accounted for once; each delivery of the
// same event counts once.
func (l *lines) expect(when string) {
	l.t.Helper()
	for l.taken < l.printed {
		one := l.next()
		if l.killed && one.Gap != nil { // the last event may be lost; here it has come
			continue
		}
		if one.Event == nil {
			l.t.Fatalf("%s: %s", when, l.receiver.lines.Bytes())
		}
		if l.seen[one.Event.EventID] {
			continue
		}
		if l.seen == nil {
			l.seen = map[string]bool{}
		}
		l.seen[one.Event.EventID] = true
		last := one.Event.Data.Line
		if l.taken += max(one.Event.Data.Count, 1); one.Event.Data.Count > 1 {
			last = one.Event.Data.Last
		}
		if want := fmt.Sprintf("error %d", l.taken); last != want {
			l.t.Fatalf("%s: after %d matches the last is %q, want %q", when, l.taken, last, want)
		}
	}
	if l.taken != l.printed {
		l.t.Fatalf("%s: %d matches, want %d", when, l.taken, l.printed)
	}
}

// startProcess starts a host as a process of its own, which kill ends at once.
func startProcess(t *testing.T, args ...string) (kill func(*testing.T)) {
	t.Helper()
	c := exec.Command(filepath.Join(bin, "tether-host"), args...)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	kill = func(*testing.T) { _ = c.Process.Kill(); _ = c.Wait() }
	t.Cleanup(func() { kill(t) })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "READY") {
		t.Fatalf("it printed %q, %v", line, err)
	}
	return kill
}
