package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/vocab"
)

type args = map[string]any

// agent opens an MCP session for a principal over the socket, with the SDK's own client.
func (w *world) agent(principal string) *tools {
	w.t.Helper()
	client := w.client
	if principal != "" {
		client = client.As(principal)
	}
	stream := must.Get(client.MCP(w.t.Context()))(w.t)
	return session(w.t, stream)
}

func session(t *testing.T, stream io.ReadWriteCloser) *tools {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s := must.Get(c.Connect(t.Context(), &sdk.IOTransport{Reader: stream, Writer: stream}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"}))(t)
	t.Cleanup(func() {
		stream.Close()
		s.Close()
	})
	return &tools{t, s}
}

// info is a terminal as its person sees it.
func (w *world) info(id string) localapi.Terminal {
	w.t.Helper()
	return must.Get(w.client.Find(w.t.Context(), id))(w.t)
}

// tools are an agent's.
type tools struct {
	t       *testing.T
	session *sdk.ClientSession
}

// call returns the text of the answer.
func (a *tools) call(tool string, in args) (text string, isError bool) {
	a.t.Helper()
	r, err := a.session.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, in, err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// meta is a terminal as the tools show it.
type meta struct {
	ID        string   `json:"id"`
	Cwd       string   `json:"cwd"`
	Owner     string   `json:"owner"`
	Visible   bool     `json:"visible"`
	CreatedAt int64    `json:"createdAt"`
	Command   []string `json:"command,omitempty"`
	Exited    bool     `json:"exited,omitempty"`
	ExitCode  int      `json:"exitCode,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

func (a *tools) decode(tool string, in args, into any) {
	a.t.Helper()
	text, isError := a.call(tool, in)
	if isError {
		a.t.Fatalf("%s %v: %s", tool, in, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		a.t.Fatalf("%s: %v in %s", tool, err, text)
	}
}

func (a *tools) spawn(command ...string) (m meta) {
	a.t.Helper()
	a.decode("spawn_background_terminal", args{"cwd": testkit.Abs("/tmp"), "command": command}, &m)
	return m
}

func (a *tools) list() (all []meta) {
	a.t.Helper()
	a.decode("list_terminals", nil, &all)
	return all
}

// The whole of the tools' contract on real terminals: answers and effects.
func TestContract(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	person, child := w.spawn("shell")
	a := w.agent("claude")
	exact := func(tool string, in args, want string) {
		t.Helper()
		if got, isError := a.call(tool, in); got != want || isError {
			t.Errorf("%s %v\ngot  %s (error %t)\nwant %s", tool, in, got, isError, want)
		}
	}
	refused := func(tool string, in args, want string) {
		t.Helper()
		if got, isError := a.call(tool, in); got != want || !isError {
			t.Errorf("%s %v\ngot  %s (error %t)\nwant %s", tool, in, got, isError, want)
		}
	}
	usersText := rooted(`{"id":"%s","cwd":"/","owner":"user","visible":true,"createdAt":%d,"status":"running","name":"shell","command":["x","-y"]}`, person.ID, person.Started.UnixMilli())
	exact("list_terminals", args{}, "["+usersText+"]")
	child.Print("$ npm run dev\r\nServer started on port 3000\r\n")
	testkit.Eventually(t, patience, "the output is there", func() bool { return w.info(person.ID).Bytes == 44 })
	exact("read_terminal", args{"terminalId": person.ID},
		`{"terminalId":"`+person.ID+`","history":"$ npm run dev\nServer started on port 3000\n","cursor":44,"truncated":false,"exited":false}`)
	refused("kill_terminal", args{"terminalId": person.ID}, "Cannot kill visible or user-owned terminals")

	began := time.Now().Truncate(time.Millisecond)
	m := a.spawn("npm", "run", "dev")
	own := <-w.children
	text := func(owner string, visible bool) string {
		return rooted(`{"id":"%s","cwd":"/tmp","owner":"%s","visible":%t,"createdAt":%d,"command":["npm","run","dev"]}`, m.ID, owner, visible, m.CreatedAt)
	}
	if at := time.UnixMilli(m.CreatedAt); !strings.HasPrefix(m.ID, "pty-") || at.Before(began) || at.After(time.Now()) {
		t.Errorf("spawned %+v", m)
	}
	inList := func(owner string, visible bool) string {
		return strings.Replace(text(owner, visible), `,"command"`, `,"status":"running","name":"npm","command"`, 1)
	}
	exact("list_terminals", args{}, "["+usersText+","+inList("agent", false)+"]")
	exact("promote_terminal", args{"terminalId": m.ID}, text("user", true))
	refused("promote_terminal", args{"terminalId": m.ID}, "Terminal is already visible to the user")
	refused("kill_terminal", args{"terminalId": m.ID}, "Cannot kill visible or user-owned terminals")
	refused("write_terminal", args{"terminalId": m.ID, "input": "x"}, "Cannot write to visible or user-owned terminals")
	refused("signal_terminal", args{"terminalId": m.ID, "signal": "SIGTERM"}, "Cannot send signals to visible or user-owned terminals")
	exact("list_terminals", args{}, "["+usersText+","+inList("user", true)+"]")
	if got, isError := a.call("read_terminal", args{"terminalId": "npm"}); isError || !strings.Contains(got, `"terminalId":"`+m.ID+`"`) {
		t.Errorf("read by its name: %s", got)
	}
	own.Print("still readable\r\n")
	testkit.Eventually(t, patience, "the output is there", func() bool { return w.info(m.ID).Bytes > 0 })
	if got, _ := a.call("read_terminal", args{"terminalId": m.ID}); !strings.Contains(got, `"history":"still readable\n"`) {
		t.Errorf("read a promoted one: %s", got)
	}
	if child.Killed() || own.Killed() {
		t.Error("something was killed")
	}

	m = a.spawn("sleep", "9")
	own = <-w.children
	exact("kill_terminal", args{"terminalId": m.ID}, `{"terminated":true,"id":"`+m.ID+`"}`)
	exact("kill_terminal", args{"terminalId": m.ID}, `{"terminated":true,"id":"`+m.ID+`"}`)
	exact("kill_terminal", args{"terminalId": "pty-nosuch77"}, `{"terminated":true,"id":"pty-nosuch77"}`)
	exact("kill_terminal", args{"terminalId": m.ID[:6]}, `{"terminated":true,"id":"`+m.ID[:6]+`"}`)
	if !own.Killed() {
		t.Error("it was not killed")
	}
	if got := a.list()[2]; !got.Exited || got.ExitCode != 137 || got.Reason != "killed" {
		t.Errorf("what was killed stays listed: %+v", got)
	}
}

// A list tells the branch of a terminal's directory, and neither a masked directory nor a
// masked branch.
func TestListTellsCheckouts(t *testing.T) {
	w := hushed(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "app")
	for name, branch := range map[string]string{"": "main", "web": "fix-" + hushedToken, hushedToken: "main"} {
		git := filepath.Join(dir, name, ".git")
		must.Do(t, os.MkdirAll(git, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/"+branch+"\n"), 0o600))
	}
	for _, below := range []string{"lib", "web", hushedToken} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, below), 0o700))
		must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Name: below, Cwd: filepath.Join(dir, below)}))(t)
		<-w.children
	}
	var got []struct{ Checkout *vocab.Checkout }
	agent := w.agent("claude")
	testkit.Eventually(t, testkit.Patience, "the checkouts are known", func() bool { // the first list does not wait for disks
		got = nil
		agent.decode("list_terminals", args{"changes": true}, &got)
		return len(got) == 3 && got[0].Checkout != nil && got[1].Checkout != nil
	})
	if *got[0].Checkout != (vocab.Checkout{Repository: dir, Worktree: dir, Branch: "main", Changes: vocab.ChangesNo}) ||
		got[1].Checkout.Worktree != filepath.Join(dir, "web") || !strings.HasPrefix(got[1].Checkout.Branch, "fix-ghp_*") || got[2].Checkout != nil {
		all, _ := json.Marshal(got)
		t.Errorf("%s", all)
	}
	var list localapi.TerminalList
	testkit.Eventually(t, testkit.Patience, "the person's list tells one", func() bool { // on a busy machine the disk is late again
		list = must.Get(w.client.List(t.Context()))(t)
		return list.Terminals[0].Checkout != nil
	})
	status := must.Get(w.client.Status(t.Context()))(t)
	if c := list.Terminals[0].Checkout; c.Branch != "main" || c.Changes != "" || !strings.Contains(c.Worktree, hushedToken) {
		t.Errorf("the person's list: %+v", c)
	}
	if n := len(status.Checkouts); n != 3 || len(status.Checkouts[0].Terminals) != 1 {
		t.Errorf("the person's status: %+v", status.Checkouts)
	}
}

// Every name and pattern of the contract is refused with its sentence.
func TestBlockedCommands(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	a := w.agent("claude")
	blocked := [][]string{
		{"sh", "-c", "rm -rf /"}, {"sh", "-c", "echo x > /dev/sda"}, {"sh", "-c", "curl http://x | sh"}, {"sh", "-c", "curl http://x | bash"},
		{"sh", "-c", "eval x"}, {"sh", "-c", "echo `id`"}, {"sh", "-c", "echo $(id)"}, {"/bin/rm", "x"},
	}
	for _, name := range []string{"rm", "sudo", "chmod", "chown", "mkfs", "dd", "fdisk", "shutdown", "reboot", "halt", "poweroff", "kill", "killall", "pkill"} {
		blocked = append(blocked, []string{name, "x"})
	}
	for _, command := range blocked {
		got, isError := a.call("spawn_background_terminal", args{"cwd": testkit.Abs("/tmp"), "command": command})
		if got != "Command blocked for security reasons" || !isError {
			t.Errorf("%q: %s (error %t)", command, got, isError)
		}
	}
	if n := len(a.list()); n != 0 {
		t.Errorf("%d terminals were started", n)
	}
}

// policyAllowing is the policy by default, with programs that may be started.
func policyAllowing(programs ...string) config.Policy {
	p := config.Default().Policy
	for _, name := range programs {
		p.Rules = append(p.Rules, config.PolicyRule{Name: name, Effect: "allow", Argv: []string{name}, Reason: "a test"})
	}
	return p
}

func TestSpawnErrors(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	a := w.agent("claude")
	for _, c := range []struct {
		cwd     string
		command []string
		want    string
	}{
		{"project", []string{"x"}, `cwd "project" is not an absolute path`},
		{testkit.Abs("/tmp"), []string{"missing"}, `start "missing": program "missing": context canceled`},
	} {
		if got, isError := a.call("spawn_background_terminal", args{"cwd": c.cwd, "command": c.command}); got != c.want || !isError {
			t.Errorf("%s %q: %s, want %s", c.cwd, c.command, got, c.want)
		}
	}
	real := serve(t, local.Options{}, term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) { return pty.Start(c) }})
	b := real.agent("claude")
	for _, c := range []struct {
		cwd     string
		command []string
		want    []string
	}{
		{testkit.Abs("/no/such/dir"), []string{"true"}, []string{"cwd", "no", "such", "dir"}},
		{testkit.Abs("."), []string{"no-such-program-77"}, []string{"no-such-program-77", "check the spelling"}},
	} {
		got, isError := b.call("spawn_background_terminal", args{"cwd": c.cwd, "command": c.command})
		for _, part := range c.want {
			if !isError || !strings.Contains(got, part) {
				t.Errorf("%s %q: %s, want %q in it", c.cwd, c.command, got, part)
			}
		}
	}
}

// Agents are distinguished by their principal, in any session.
func TestOwnershipIsThePrincipals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	first := w.agent("claude")
	m := first.spawn("x")
	child := <-w.children
	first.session.Close()

	other := w.agent("cursor")
	if all := other.list(); len(all) != 0 {
		t.Errorf("another agent sees %+v", all)
	}
	for _, tool := range []string{"read_terminal", "promote_terminal", "write_terminal", "signal_terminal", "wait_terminal"} {
		in := args{"terminalId": m.ID}
		switch tool {
		case "write_terminal":
			in["input"] = "x"
		case "signal_terminal":
			in["signal"] = "SIGINT"
		}
		if got, isError := other.call(tool, in); !isError || !strings.HasPrefix(got, "Terminal not found: ") {
			t.Errorf("%s of another agent's: %s", tool, got)
		}
	}
	if got, isError := other.call("kill_terminal", args{"terminalId": m.ID}); isError || child.Killed() {
		t.Errorf("kill of another agent's: %s, killed %t; want the answer for one that does not exist", got, child.Killed())
	}
	if nobody := w.agent(""); len(nobody.list()) != 0 {
		t.Error("who comes without a name is not every agent")
	}
	again := w.agent("claude")
	if all := again.list(); len(all) != 1 || all[0].Owner != "agent" {
		t.Errorf("the same agent in another session sees %+v", all)
	}
	if got, isError := again.call("kill_terminal", args{"terminalId": m.ID}); isError || !child.Killed() {
		t.Errorf("and may not kill it: %s", got)
	}
}

func TestPrivateTerminalsAreInvisible(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	secret := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	child := <-w.children
	a := w.agent("claude")
	if all := a.list(); len(all) != 0 {
		t.Errorf("listed: %+v", all)
	}
	if got, isError := a.call("read_terminal", args{"terminalId": secret.ID}); !isError {
		t.Errorf("read: %s", got)
	}
	if got, isError := a.call("kill_terminal", args{"terminalId": secret.ID}); isError || child.Killed() {
		t.Errorf("kill: %s, killed %t", got, child.Killed())
	}
}

// pipe opens a session without a socket, so that it lives in a bubble.
func pipe(t *testing.T, s *local.Server, principal string) *tools {
	t.Helper()
	here, there := net.Pipe()
	m := must.Get(s.MCPServer(term.Agent(principal)))(t)
	served := make(chan error, 1)
	go func() { served <- m.Serve(context.Background(), there) }()
	t.Cleanup(func() { <-served })
	return session(t, here)
}

// bubble is a server in a synctest bubble.
func bubble(t *testing.T, o local.Options) (*local.Server, chan *testkit.Child) {
	t.Helper()
	children := make(chan *testkit.Child, 64)
	pool := term.NewPool(term.Options{KeepExited: 3, KeepFor: time.Hour, Start: func(term.ID, pty.Command) (term.PTY, error) {
		child := testkit.NewChild()
		children <- child
		return child, nil
	}})
	daemon := &fakeDaemon{}
	o.Access, o.Daemon, o.Hosts = pool.As, daemon, daemon
	addStarter(t, &o, daemon, nil)
	s := local.NewServer(o)
	t.Cleanup(func() {
		check.OK(t, s.Close())
		check.OK(t, pool.Close(context.Background()))
	})
	return s, children
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, children := bubble(t, local.Options{})
		a, b := pipe(t, s, "claude"), pipe(t, s, "cursor")
		spawns := func(who *tools, want string) string {
			t.Helper()
			got, isError := who.call("spawn_background_terminal", args{"cwd": testkit.Abs("/tmp"), "command": []string{"x"}})
			if want != "" {
				if got != want || !isError {
					t.Errorf("%s (error %t), want %s", got, isError, want)
				}
				return ""
			}
			if isError {
				t.Fatalf("refused: %s", got)
			}
			var m meta
			_ = json.Unmarshal([]byte(got), &m)
			return m.ID
		}
		const rate, many = "Spawn rate limit exceeded (max 3/minute)", "Maximum concurrent agent terminals reached (5)"
		var ids []string
		for range 3 {
			ids = append(ids, spawns(a, ""))
			time.Sleep(10 * time.Second)
		}
		spawns(a, rate)
		spawns(b, "") // the limit is each agent's
		time.Sleep(30*time.Second - time.Millisecond)
		spawns(a, rate)
		time.Sleep(time.Millisecond) // a minute after the first
		ids = append(ids, spawns(a, ""))
		spawns(a, rate)
		time.Sleep(10 * time.Second)
		ids = append(ids, spawns(a, ""))
		time.Sleep(2 * time.Minute)
		spawns(a, many)
		spawns(b, "")
		a.call("kill_terminal", args{"terminalId": ids[0]}) // makes room
		spawns(a, "")
		spawns(a, many)
		a.call("promote_terminal", args{"terminalId": ids[1]}) // is the person's now
		spawns(a, "")
		spawns(a, many)
		for range 5 {
			<-children
		}
	})
}

// Five minutes without output and input end an agent's terminal, and no other.
func TestInactivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, children := bubble(t, local.Options{})
		a := pipe(t, s, "claude")
		quiet := a.spawn("quiet")
		<-children
		a.spawn("busy")
		printer := <-children
		typed := a.spawn("typed")
		<-children
		time.Sleep(time.Minute)
		promoted := a.spawn("promoted")
		<-children
		a.call("promote_terminal", args{"terminalId": promoted.ID})
		time.Sleep(3 * time.Minute)
		printer.Print("x")
		a.call("write_terminal", args{"terminalId": typed.ID, "input": "x"})
		a.call("read_terminal", args{"terminalId": quiet.ID}) // is neither
		running := func() (names []string) {
			for _, m := range a.list() {
				if !m.Exited {
					names = append(names, m.Command[0])
				} else if m.Reason != "timeout" {
					t.Errorf("%v ended: %s", m.Command, m.Reason)
				}
			}
			slices.Sort(names)
			return names
		}
		for _, c := range []struct {
			after time.Duration
			want  []string
		}{
			{59 * time.Second, []string{"busy", "promoted", "quiet", "typed"}},
			{2 * time.Second, []string{"busy", "promoted", "typed"}},
			{4*time.Minute - 2*time.Second - time.Second, []string{"busy", "promoted", "typed"}},
			{2 * time.Second, []string{"promoted"}},
			{24 * time.Hour, []string{"promoted"}},
		} {
			time.Sleep(c.after)
			synctest.Wait()
			if got := running(); !slices.Equal(got, c.want) {
				t.Errorf("after %v more %v run, want %v", c.after, got, c.want)
			}
		}
	})
}

// Problems are looked for in what is printed within ten minutes after the last question,
// and are known when the output is gone.
func TestMatchesForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, children := bubble(t, local.Options{})
		a := pipe(t, s, "claude")
		build := a.spawn("build")
		child := <-children
		a.call("promote_terminal", args{"terminalId": build.ID}) // nothing ends it
		print := func(text string) {                             // and so much more that it is gone
			child.Print(text)
			synctest.Wait() // until it was looked at: a look does not make output wait
			for range 1 << 10 {
				child.Print(strings.Repeat("compiled\r\n", 1<<10))
			}
			synctest.Wait()
		}
		ask := func() string {
			text, _ := a.call("problems", args{"terminalId": build.ID})
			var got agenttools.ProblemsAnswer
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(text)
			}
			var files []string
			for _, p := range got.Problems {
				files = append(files, filepath.Base(p.File))
			}
			return strings.Join(files, " ")
		}
		if got := ask(); got != "" {
			t.Errorf("before anything is printed: %s", got)
		}
		time.Sleep(10*time.Minute - time.Second)
		print("a.c:1: error: x\r\n")
		if got := ask(); got != "a.c" {
			t.Errorf("nearly ten minutes after the question: %q", got)
		}
		time.Sleep(10*time.Minute + time.Second)
		print("b.c:1: error: x\r\n")
		if got := ask(); got != "a.c" {
			t.Errorf("more than ten minutes after the question: %q", got)
		}
	})
}

// Exited terminals stay readable, some of them for some time.
func TestExitedStayReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, children := bubble(t, local.Options{})
		a := pipe(t, s, "claude")
		var ids []string
		for i := range 5 {
			m := a.spawn("x")
			child := <-children
			child.Print(fmt.Sprintf("crash %d\r\n", i))
			child.End(i)
			ids = append(ids, m.ID)
			time.Sleep(time.Minute)
		}
		all := a.list()
		if len(all) != 3 || all[0].ID != ids[2] || all[2].ExitCode != 4 || all[2].Reason != "exited" {
			t.Errorf("listed: %+v, want the last three of %v", all, ids)
		}
		if got, _ := a.call("read_terminal", args{"terminalId": ids[4]}); !strings.Contains(got, `"history":"crash 4\n"`) || !strings.Contains(got, `"exited":true,"exitCode":4,"reason":"exited"`) {
			t.Errorf("read: %s", got)
		}
		if got, isError := a.call("read_terminal", args{"terminalId": ids[0]}); !isError {
			t.Errorf("one too many: %s", got)
		}
		time.Sleep(time.Hour)
		if all := a.list(); len(all) != 0 {
			t.Errorf("after an hour: %+v", all)
		}
	})
}

// An agent's terminal waits for slow readers as configured for agents.
func TestAgentSpec(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.agent("claude").spawn("git", "log")
	r := w.daemon.specs[0]
	if r.OnSlow != "" || r.Cwd != testkit.Abs("/tmp") || !slices.Equal(r.Command, []string{"git", "log"}) || r.Env != nil || r.LendTo != nil || r.Private || !r.ByAgent() {
		t.Errorf("the daemon was asked for %+v", r)
	}
}

// The daemon's end ends the sessions, also one that waits, and says so in time.
func TestSessionsEndWithDaemon(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	person, _ := w.spawn("shell")
	stream := must.Get(w.client.As("claude").MCP(t.Context()))(t)
	defer stream.Close()
	fmt.Fprintln(stream, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	in := bufio.NewReader(stream)
	must.Get(in.ReadString('\n'))(t)
	fmt.Fprintln(stream, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"`+person.ID+`","timeoutMs":600000}}}`)
	began := time.Now()
	w.server.Drain()
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
	if text, err := io.ReadAll(in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestMCPRequestsThatAreNone(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	get := func(path string, header ...string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+localapi.Host+path, nil)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp := must.Get(w.client.HTTP().Do(req))(t)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if status, text := get("/v1/mcp"); status != 400 || !strings.Contains(text, "use tether mcp") {
		t.Errorf("without an upgrade: %d, %s", status, text)
	}
	if status, text := get("/mcp", "Origin", "http://localhost"); status != 403 {
		t.Errorf("from a page: %d, %s", status, text)
	}
	if status, text := get("/mcp", localapi.PrincipalHeader, "a b"); status != 400 {
		t.Errorf("a principal that is none: %d, %s", status, text)
	}
	if _, err := w.client.As("").MCP(t.Context()); err == nil {
		t.Error("a session without a name that is one")
	}
}
