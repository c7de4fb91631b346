package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/shells"
	"tether/internal/testkit/must"
)

// shellRunner runs shells that report their commands: "serve" prints a line and goes on
// until Ctrl-C, "exit" ends the shell, "last" is done and then ends it, everything else
// is printed back and has failed with 1 if it is "false". mute shells report nothing.
type shellRunner struct {
	mute bool
	hold chan chan struct{} // unless it is nil, receives a channel for which a start waits

	mu    sync.Mutex
	shell []*shellProcess
}

func (r *shellRunner) Start(_ context.Context, t shells.Request) (shells.Process, error) {
	if r.hold != nil {
		wait := make(chan struct{})
		r.hold <- wait
		<-wait
	}
	p := &shellProcess{fakeProcess: &fakeProcess{asked: t, events: make(chan shells.Event, 1000), killed: make(chan struct{})}, mute: r.mute,
		taken: make(chan struct{})}
	p.say("$ ")
	if !r.mute {
		p.act(ahp.TerminalCommandDetectionAvailable{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shell = append(r.shell, p)
	return p, nil
}

// asked is how many shells were started, and in which directory the last one.
func (r *shellRunner) asked() (n int, cwd string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.shell), r.shell[len(r.shell)-1].asked.Cwd
}

type shellProcess struct {
	*fakeProcess
	mute  bool
	taken chan struct{} // closed when the host has taken all that "last" does

	mu      sync.Mutex
	n       int
	running bool
}

func (p *shellProcess) Reports() bool         { return !p.mute }
func (p *shellProcess) say(text string)       { p.events <- shells.Event{Text: []byte(text)} }
func (p *shellProcess) act(action ahp.Action) { p.events <- shells.Event{Action: action} }

// shellOver comes after all that "last" does.
var shellOver ahp.Action = ahp.TerminalTitleChanged{Title: "over"}

func (p *shellProcess) Next(ctx context.Context) (shells.Event, error) {
	ev, err := p.fakeProcess.Next(ctx)
	if err == nil && ev.Action == shellOver {
		close(p.taken)
	}
	return ev, err
}

func (p *shellProcess) Input(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, entered := strings.CutSuffix(text, "\r")
	switch {
	case text == "\x03" && p.running:
		p.finish("^C\r\n", 130)
	case p.running || !entered:
		p.say(text)
	default:
		p.begin(line)
	}
	return nil
}

func (p *shellProcess) begin(line string) {
	p.n++
	p.running = true
	p.say(line + "\r\n")
	if !p.mute {
		p.act(ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(p.n), CommandLine: line, Timestamp: 1})
	}
	switch line {
	case "serve":
		p.say("ready at http://localhost:3000/\r\n")
	case "last":
		three := int64(3)
		p.finish("", 0)
		p.act(ahp.TerminalExited{ExitCode: &three})
		p.act(shellOver)
		<-p.taken
	case "exit":
		three := int64(3)
		p.act(ahp.TerminalExited{ExitCode: &three})
	case "false":
		p.finish("", 1)
	default:
		p.finish("made "+line+"\r\n", 0)
	}
}

func (p *shellProcess) finish(text string, code int64) {
	p.running = false
	p.say(text)
	if !p.mute {
		p.act(ahp.TerminalCommandFinished{CommandID: fmt.Sprint(p.n), ExitCode: &code})
	}
	p.say("$ ")
}

// outcome is the answer of run_command.
type outcome struct {
	TerminalID, Reason, History string
	ExitCode                    *int
	Cursor                      int64
}

// desk is an agent at the MCP door of a host with shells, and a person who watches it and
// may take part.
type desk struct {
	t       *testing.T
	h       *host.Host
	url     string
	runner  *shellRunner
	agent   *sdk.ClientSession
	person  *viewer
	session string // the agent's
	chat    string
}

func newDesk(t *testing.T, connect dialer) *desk {
	t.Helper()
	d := &desk{t: t, runner: &shellRunner{}}
	d.h, d.url = serve(t, host.Options{Sessions: true, AgentShells: true, Runner: d.runner, Access: newUsers("operator-bot", "admin-ann", "agent-eye")})
	var err error
	if d.agent, err = connect(t, d.url, "operator-bot", nil); err != nil {
		t.Fatal(err)
	}
	d.person = as(t, d.url, "admin-ann", "person", viewOptions{subs: []string{ahp.RootURI}})
	d.look()
	return d
}

// look has the person subscribe to the agent's one session and its chat.
func (d *desk) look() {
	d.t.Helper()
	all := listSessions(d.t, d.person)
	if len(all) != 1 || all[0].Title != "agent bot" {
		d.t.Fatalf("sessions %+v", all)
	}
	d.session = all[0].Resource
	must.Do(d.t, d.person.subscribe(d.session))
	d.chat = d.person.session(d.session).DefaultChat
	must.Do(d.t, d.person.subscribe(d.chat))
}

func (d *desk) run(args map[string]any) (o outcome) {
	d.t.Helper()
	if args["timeoutMs"] == nil {
		args["timeoutMs"] = 600_000
	}
	r, err := d.agent.CallTool(d.t.Context(), &sdk.CallToolParams{Name: "run_command", Arguments: args})
	if err != nil {
		d.t.Fatalf("run_command %v: %v", args, err)
	}
	d.decode(r, &o)
	return o
}

func (d *desk) decode(r *sdk.CallToolResult, into any) {
	d.t.Helper()
	text := r.Content[0].(*sdk.TextContent).Text
	if err := json.Unmarshal([]byte(text), into); err != nil || r.IsError {
		d.t.Fatalf("answered %s: %v", text, err)
	}
}

// refused calls a tool and returns the error that the model is told.
func (d *desk) refused(tool string, args map[string]any) string {
	d.t.Helper()
	r, err := d.agent.CallTool(d.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error()
	}
	if !r.IsError {
		d.t.Errorf("%s %v is answered %s, want an error", tool, args, r.Content[0].(*sdk.TextContent).Text)
	}
	return r.Content[0].(*sdk.TextContent).Text
}

// held waits until the only terminal has a claim of that kind, used by a call or not, and
// returns its URI.
func (d *desk) held(kind string, used bool) (uri string) {
	d.t.Helper()
	d.person.await(fmt.Sprintf("a terminal held by a %s, in use %v", kind, used), func() bool {
		all := d.person.root.Terminals
		if len(all) != 1 || all[0].Claim.Kind != kind || (all[0].Claim.ToolCallID != "") != used {
			return false
		}
		uri = all[0].Resource
		return true
	})
	return uri
}

func (d *desk) says(uri string, a ahp.Action, want string) {
	d.t.Helper()
	if got := d.person.rejected(uri, a); want == "" && got != "" || !strings.Contains(got, want) {
		d.t.Errorf("%s is answered %q, want %q", a.Type(), got, want)
	}
}

func (d *desk) sessionClaim() ahp.Action {
	return ahp.TerminalClaimed{Claim: ahp.Claim{Kind: ahp.ClaimSession, Session: d.session, Chat: d.chat}}
}

// The flows of AHP's guide to terminals, between an agent at the MCP door and a person at
// an AHP client.
func TestAgentShellFlows(t *testing.T) {
	for door, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		for name, flow := range map[string]func(*desk){
			"an agent runs a command":  shellRuns,
			"a background server":      shellServes,
			"a client detaches":        shellIsDetached,
			"a client interacts":       shellIsTaken,
			"a session is disposed of": shellsEnd,
		} {
			t.Run(door+", "+name, func(t *testing.T) { flow(newDesk(t, connect)) })
		}
	}
}

func shellRuns(d *desk) {
	o := d.run(map[string]any{"command": "make all", "cwd": "/src"})
	if o.Reason != "command" || o.ExitCode == nil || *o.ExitCode != 0 || !strings.Contains(o.History, "made make all") {
		d.t.Errorf("answered %+v", o)
	}
	if n, cwd := d.runner.asked(); n != 1 || cwd != "/src" {
		d.t.Errorf("%d shells, the last in %q", n, cwd)
	}
	uri := d.held(ahp.ClaimSession, false)
	p := d.person
	p.await("the call in the chat", func() bool { return len(p.talks[d.chat].chat.Turns) == 1 })
	c := p.chat(d.chat).Turns[0].ToolCall("call-1")
	if c.Status != ahp.ToolCompleted || !slices.ContainsFunc(c.Content, func(b ahp.ToolContent) bool { return b.Terminal != nil && b.Terminal.Resource == uri }) {
		d.t.Errorf("the person sees %+v", c)
	}
	for _, ref := range []string{o.TerminalID, "host/make", "make"} {
		if again := d.run(map[string]any{"command": "false", "terminalId": ref}); again.Reason != "command" || *again.ExitCode != 1 || again.TerminalID != o.TerminalID {
			d.t.Errorf("in the same shell, called %s: %+v", ref, again)
		}
	}
	var all []listed
	use(d.t, d.agent, "list_terminals", nil, &all)
	if len(all) != 1 || all[0].ID != o.TerminalID || all[0].Owner != "agent" || all[0].Machine != "host" {
		d.t.Errorf("listed %+v", all)
	}
	if o = d.run(map[string]any{"command": "exit", "terminalId": o.TerminalID}); o.Reason != "exit" || *o.ExitCode != 3 {
		d.t.Errorf("the end of the shell: %+v", o)
	}
	if got := d.refused("run_command", map[string]any{"command": "make", "terminalId": o.TerminalID}); !strings.Contains(got, "has exited") {
		d.t.Errorf("in a shell that has ended: %s", got)
	}
}

func shellServes(d *desk) {
	o := d.run(map[string]any{"command": "serve", "background": true})
	if o.Reason != "background" {
		d.t.Errorf("answered %+v", o)
	}
	d.held(ahp.ClaimSession, false)
	var w waited
	use(d.t, d.agent, "wait_terminal", map[string]any{"terminalId": o.TerminalID, "pattern": "ready at", "since": o.Cursor}, &w)
	if w.Reason != "pattern" || !strings.Contains(w.Line, "localhost:3000") {
		d.t.Errorf("the server: %+v", w)
	}
	// The session reclaims: the agent finds it busy, interrupts it, and uses the shell
	// again.
	if got := d.refused("run_command", map[string]any{"command": "make", "terminalId": o.TerminalID}); !strings.Contains(got, `still runs "serve"`) {
		d.t.Errorf("in a shell that is busy: %s", got)
	}
	var wrote struct{ Cursor int64 }
	use(d.t, d.agent, "write_terminal", map[string]any{"terminalId": o.TerminalID, "input": "\x03"}, &wrote)
	use(d.t, d.agent, "wait_terminal", map[string]any{"terminalId": o.TerminalID, "command": true, "since": wrote.Cursor}, &w)
	if w.Reason != "command" || w.Command == nil || *w.Command.ExitCode != 130 {
		d.t.Errorf("interrupted: %+v", w)
	}
	if again := d.run(map[string]any{"command": "serve again", "terminalId": o.TerminalID}); again.Reason != "command" || again.TerminalID != o.TerminalID {
		d.t.Errorf("restarted: %+v", again)
	}
	var killed struct{ Terminated bool }
	for range 2 { // the second time it is not there any more
		use(d.t, d.agent, "kill_terminal", map[string]any{"terminalId": o.TerminalID}, &killed)
		if !killed.Terminated {
			d.t.Errorf("killed: %+v", killed)
		}
	}
	d.person.await("the end", func() bool { return len(d.person.root.Terminals) == 0 })
	<-d.runner.shell[0].killed
}

func shellIsDetached(d *desk) {
	answered := make(chan outcome, 1)
	go func() { answered <- d.run(map[string]any{"command": "serve"}) }()
	uri := d.held(ahp.ClaimSession, true)
	must.Do(d.t, d.person.subscribe(uri))
	d.person.awaitText(uri, "ready at http://localhost:3000/\r\n")
	d.says(uri, ahp.TerminalInput{Data: "q"}, "in use by a tool call")
	d.says(uri, d.sessionClaim(), "")
	o := <-answered
	if o.Reason != "detached" {
		d.t.Errorf("the agent is told %+v", o)
	}
	d.held(ahp.ClaimSession, false)
	if d.person.state(uri).Lifecycle.Exited() {
		d.t.Error("it has ended")
	}
}

func shellIsTaken(d *desk) {
	o := d.run(map[string]any{"command": "make"})
	uri := d.held(ahp.ClaimSession, false)
	must.Do(d.t, d.person.subscribe(uri))
	d.says(uri, ahp.TerminalInput{Data: "ls\r"}, "held by a session: claim it first")
	d.says(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, "")
	d.says(uri, ahp.TerminalInput{Data: "ls\r"}, "")
	d.person.awaitText(uri, "made ls\r\n$ ")
	for tool, args := range map[string]map[string]any{"run_command": {"command": "make"}, "write_terminal": {"input": "x"}, "kill_terminal": {}} {
		args["terminalId"] = o.TerminalID
		if got := d.refused(tool, args); !strings.Contains(got, "the user has taken over") {
			d.t.Errorf("%s: %s", tool, got)
		}
	}
	d.says(uri, d.sessionClaim(), "")
	if again := d.run(map[string]any{"command": "make more", "terminalId": o.TerminalID}); again.Reason != "command" {
		d.t.Errorf("given back: %+v", again)
	}
}

// Disposing of the session ends its shells and calls, and the agent goes on in another
// session.
func shellsEnd(d *desk) {
	kept := d.run(map[string]any{"command": "make"})
	before := d.session
	answered := make(chan string, 1)
	go func() { answered <- d.refused("run_command", map[string]any{"command": "serve", "timeoutMs": 600_000}) }()
	d.person.await("a call that uses a terminal of its own", func() bool {
		all := d.person.root.Terminals
		return len(all) == 2 && all[1].Claim.ToolCallID != ""
	})
	must.Do(d.t, d.person.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: before}, nil))
	if got := <-answered; !strings.Contains(got, "was cancelled") {
		d.t.Errorf("the call is answered %q", got)
	}
	d.person.await("no terminals", func() bool { return len(d.person.root.Terminals) == 0 })
	if got := d.refused("run_command", map[string]any{"command": "make", "terminalId": kept.TerminalID}); !strings.Contains(got, "no terminal") {
		d.t.Errorf("in a shell of before: %s", got)
	}
	if o := d.run(map[string]any{"command": "make"}); o.Reason != "command" {
		d.t.Errorf("afterwards: %+v", o)
	}
	d.look()
	if d.session == before {
		d.t.Error("the session that was disposed of is back")
	}
	if err := d.person.subscribe(before); !ahp.IsGone(code(err)) {
		d.t.Errorf("subscribe to it: %v", err)
	}
}

func TestAgentShellMistakes(t *testing.T) {
	d := newDesk(t, overHTTP)
	d.person.create("ahp-terminal:/lent")
	must.Do(t, d.person.call(ahp.MethodCreateTerminal, serverTerminal("ahp-terminal:/persons", "person"), nil))
	var all []listed
	use(t, d.agent, "list_terminals", nil, &all)
	for _, tt := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"run_command", map[string]any{"command": " "}, "command is missing"},
		{"run_command", map[string]any{"command": "a\nb"}, "one line"},
		{"run_command", map[string]any{"command": "a\x1b[31m"}, "one line"},
		{"run_command", map[string]any{"command": strings.Repeat("x", 4001)}, "4001 bytes"},
		{"run_command", map[string]any{"command": "make", "timeoutMs": 600_001}, "out of range"},
		{"run_command", map[string]any{"command": "make", "cwd": "/", "terminalId": "pty-x"}, "cwd is only for a new shell"},
		{"run_command", map[string]any{"command": "make", "terminalId": "pty-x"}, "no terminal"},
		{"run_command", map[string]any{"command": "make", "terminalId": all[0].ID}, "is not yours"},
		{"run_command", map[string]any{"command": "make", "terminalId": all[1].ID}, "is not yours"},
		{"write_terminal", map[string]any{"terminalId": all[0].ID, "input": "x"}, "is not yours"},
		{"write_terminal", map[string]any{"terminalId": all[1].ID, "input": "x"}, "is not yours"},
		{"write_terminal", map[string]any{"terminalId": all[1].ID, "input": ""}, "1 to 65536"},
		{"kill_terminal", map[string]any{"terminalId": all[0].ID}, "is not yours"},
		{"kill_terminal", map[string]any{"terminalId": all[1].ID}, "is not yours"},
	} {
		if got := d.refused(tt.tool, tt.args); !strings.Contains(got, tt.want) {
			t.Errorf("%s %v: %s, want %q in it", tt.tool, tt.args, got, tt.want)
		}
	}
	for range 8 {
		d.run(map[string]any{"command": "serve", "background": true})
	}
	if got := d.refused("run_command", map[string]any{"command": "serve"}); !strings.Contains(got, "8 shells") {
		t.Errorf("one more: %s", got)
	}
}

// With any number of concurrent requests, a session has no more shells than it may,
// including those that are being started.
func TestAgentShellsAtOnce(t *testing.T) {
	d := newDesk(t, overHTTP)
	d.runner.hold = make(chan chan struct{})
	const asked = 12
	refusals := make(chan string, asked)
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			r, err := d.agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "serve", "background": true}})
			if err != nil {
				t.Error(err)
			} else if r.IsError {
				refusals <- r.Content[0].(*sdk.TextContent).Text
			}
		})
	}
	var starts []chan struct{}
	for refused := 0; len(starts)+refused < asked; {
		select {
		case start := <-d.runner.hold:
			starts = append(starts, start)
		case why := <-refusals:
			if refused++; !strings.Contains(why, "8 shells") {
				t.Errorf("refused: %s", why)
			}
		case <-t.Context().Done():
			t.Fatal("nothing comes of some")
		}
	}
	for _, start := range starts {
		close(start)
	}
	all.Wait()
	if len(starts) != 8 {
		t.Errorf("%d shells were started", len(starts))
	}
}

// The exit code is the command's also where its shell ended a moment later.
func TestACommandAfterWhichItsShellEnds(t *testing.T) {
	d := newDesk(t, overHTTP)
	if o := d.run(map[string]any{"command": "last"}); o.Reason != "command" || o.ExitCode == nil || *o.ExitCode != 0 {
		t.Errorf("answered %+v", o)
	}
}

// A shell that does not report its commands is done when it is quiet, and the answer says
// so.
func TestAgentShellWithoutReports(t *testing.T) {
	d := newDesk(t, overHTTP)
	d.runner.mute = true
	if o := d.run(map[string]any{"command": "make"}); o.Reason != "idle" || o.ExitCode != nil || !strings.Contains(o.History, "made make") {
		t.Errorf("answered %+v", o)
	}
}

// An agent that does not wait any more leaves the command running, in the background.
func TestAgentShellWhoseAgentGoes(t *testing.T) {
	d := newDesk(t, overHTTP)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = d.agent.CallTool(ctx, &sdk.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "serve", "timeoutMs": 600_000}})
	}()
	d.held(ahp.ClaimSession, true)
	cancel()
	<-gone
	d.held(ahp.ClaimSession, false)
	o := d.run(map[string]any{"command": "make"})
	if o = d.run(map[string]any{"command": "serve", "terminalId": o.TerminalID, "timeoutMs": 1}); o.Reason != "timeout" {
		t.Errorf("who waits for a moment is told %+v", o)
	}
}

// Only operators and administrators have these tools, and only where the host was started
// so.
func TestWhoMayRunCommandsAtTheHost(t *testing.T) {
	for _, tt := range []struct {
		token              string
		sessions, commands bool
		runner             shells.Runner
		want               bool
	}{
		{"operator-bot", true, true, &shellRunner{}, true}, {"admin-ann", true, true, &shellRunner{}, true},
		{"agent-bot", true, true, &shellRunner{}, false}, {"observer-bot", true, true, &shellRunner{}, false},
		{"operator-bot", false, true, &shellRunner{}, false}, {"operator-bot", true, false, &shellRunner{}, false},
		{"operator-bot", true, true, nil, false},
	} {
		t.Run(fmt.Sprintf("%s, sessions %v, agent shells %v, runner %v", tt.token, tt.sessions, tt.commands, tt.runner != nil), func(t *testing.T) {
			_, url := serve(t, host.Options{Sessions: tt.sessions, AgentShells: tt.commands, Runner: tt.runner, Access: newUsers(tt.token)})
			agent := must.Get(overHTTP(t, url, tt.token, nil))(t)
			names := toolNames(t, agent)
			for _, name := range []string{"run_command", "write_terminal", "kill_terminal"} {
				if slices.Contains(names, name) != tt.want {
					t.Errorf("offered %v", names)
				}
				if r, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"command": "x"}}); !tt.want && err == nil && !r.IsError {
					t.Errorf("%s is called all the same", name)
				}
			}
		})
	}
}
