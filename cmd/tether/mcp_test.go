package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/proc"
)

// devServer is a server as agents start it: it takes its time, listens on the port in its
// argument, and lives until it is killed.
func devServer() {
	fmt.Println("\x1b[1mdevserver\x1b[0m starting")
	<-time.After(100 * time.Millisecond) // as if it compiled something
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	fmt.Printf("  \x1b[32m➜\x1b[0m  Local: \x1b[36mhttp://localhost:%d/\x1b[0m\r\n", l.Addr().(*net.TCPAddr).Port)
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
}

// mcpClient starts a program that speaks MCP over its standard input and output, and
// connects the SDK's own client to it.
func mcpClient(t *testing.T, argv ...string) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	cmd := atAPrompt(argv...)
	cmd.Stderr = os.Stderr
	s := must.Get(c.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil))(t)
	if runtime.GOOS == "windows" { // see atAPrompt
		forgetAgents(t)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// forgetAgents makes a test that has started tether mcp by itself the person again.
func forgetAgents(t *testing.T) {
	t.Helper()
	must.Do(t, os.RemoveAll(filepath.Join(dirsOf(os.Getenv(dirs.HomeVar)).State, "agents")))
}

// atAPrompt is a command as a person types it: below a shell that leads its session,
// which is not an agent. Otherwise the starter of tether mcp would be an agent, and this
// test could not be the person any more. Windows has no sessions.
func atAPrompt(argv ...string) *exec.Cmd {
	if runtime.GOOS != "windows" {
		argv = append([]string{"sh", "-c", `"$@"; exit $?`, "sh"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	proc.InSession(cmd)
	return cmd
}

// prompted is atAPrompt for scripts.
func prompted() {
	cmd := atAPrompt(os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tool calls a tool and returns the text of its answer.
func tool(t *testing.T, s *sdk.ClientSession, name string, args any) (text string, isError bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// mcpWalk returns the README's part for agents: the configuration, and the calls.
func mcpWalk(t *testing.T) (argv []string, calls [][2]string) {
	t.Helper()
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, text, _ := strings.Cut(string(readme), "## Agents on this machine")
	text, _, _ = strings.Cut(text, "\n## ")
	parts := strings.Split(text, "```")
	if len(parts) < 5 {
		t.Fatal("the README's section about agents has no examples")
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	must.Do(t, json.Unmarshal([]byte(strings.TrimPrefix(parts[1], "json")), &config))
	server := config.Servers["tether"]
	for line := range strings.Lines(strings.TrimSpace(parts[3])) {
		name, args, _ := strings.Cut(line, " ")
		calls = append(calls, [2]string{name, strings.TrimSpace(args)})
	}
	return append([]string{server.Command}, server.Args...), calls
}

// TestMCPWalk follows the README: an MCP client spawns a dev server, waits for its port,
// reads it, promotes it, and may not kill it any more.
func TestMCPWalk(t *testing.T) {
	newHome(t)
	argv, calls := mcpWalk(t)
	program := must.Get(exec.LookPath("devserver"))(t)
	port := fmt.Sprint(testkit.FreePort(t))
	s := mcpClient(t, argv...)
	var id string
	answers := map[string]string{}
	for _, c := range calls {
		command, _ := json.Marshal([]string{program, port})
		args := strings.NewReplacer("/home/me/app", filepath.ToSlash(t.TempDir()), `["npm", "run", "dev"]`, string(command), "3000", port, `"ID"`, `"`+id+`"`).Replace(c[1])
		text, isError := tool(t, s, c[0], json.RawMessage(args))
		if failed := c[0] == "kill_terminal"; isError != failed {
			t.Fatalf("%s %s: %s", c[0], args, text)
		}
		answers[c[0]] = text
		if id == "" {
			var m struct{ ID string }
			must.Do(t, json.Unmarshal([]byte(text), &m))
			id = m.ID
		}
	}
	listener := `"listener":"this terminal"`
	if _, err := proc.Listens(proc.Terminal{}, 1); err != nil { // this system does not tell
		listener = ""
	}
	for name, want := range map[string][]string{
		"spawn_background_terminal": {`"owner":"agent","visible":false`},
		"wait_terminal":             {`"reason":"port"`, `"address":"127.0.0.1:` + port + `"`, listener},
		"promote_terminal":          {`"owner":"user","visible":true`},
		"kill_terminal":             {"Cannot kill visible or user-owned terminals"},
	} {
		for _, part := range want {
			if !strings.Contains(answers[name], part) {
				t.Errorf("%s answered %s, want %s in it", name, answers[name], part)
			}
		}
	}
	testkit.Eventually(t, patience, "it can be read", func() bool {
		text, _ := tool(t, s, "read_terminal", map[string]any{"terminalId": id})
		return strings.Contains(text, `"history":"devserver starting\n  ➜  Local: http://localhost:`+port+`/\n"`)
	})
	resp := must.Get(http.Get("http://127.0.0.1:" + port))(t)
	resp.Body.Close()
	if out, _ := command(t, "ls"); !strings.Contains(out, id) || !strings.Contains(out, "running") {
		t.Errorf("the person's list:\n%s", out)
	}
	if out, status := command(t, "kill", id); status != 0 {
		t.Errorf("the person may kill it: %s, status %d", out, status)
	}
}

// A terminal that an agent has started outlives the client, and still belongs to the
// agent in the next session under its name.
func TestMCPTerminalsOutliveTheClient(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	first := mcpClient(t, "tether", "mcp", "--as", "claude")
	program, _ := exec.LookPath("devserver")
	text, isError := tool(t, first, "spawn_background_terminal", map[string]any{"cwd": "/", "command": []string{program, "0"}})
	if isError {
		t.Fatal(text)
	}
	var m struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(text), &m))
	if err := first.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if text, _ := tool(t, mcpClient(t, "tether", "mcp"), "list_terminals", nil); text != "[]" {
		t.Errorf("an agent without a name sees %s", text)
	}
	again := mcpClient(t, "tether", "mcp", "--as", "claude")
	if text, isError := tool(t, again, "kill_terminal", map[string]any{"terminalId": m.ID}); isError {
		t.Errorf("kill: %s", text)
	}
	if text, _ := tool(t, again, "list_terminals", nil); !strings.Contains(text, `"exited":true`) || !strings.Contains(text, `"reason":"killed"`) {
		t.Errorf("after the kill: %s", text)
	}
}

// A real shell reports its commands, takes input and signals.
func TestMCPShell(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Setenv("HOME", t.TempDir()) // a person's start-up files may take a minute
	home := newHome(t)
	allowAll(t, home)
	s := mcpClient(t, "tether", "mcp", "--as", "claude")
	text, isError := tool(t, s, "spawn_background_terminal", map[string]any{"cwd": "/tmp", "command": []string{"bash"}})
	if isError {
		t.Fatal(text)
	}
	var m struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(text), &m))
	type seen struct {
		Reason, Line, History string
		Cursor                int64
		Command               *struct {
			Line     string
			ExitCode *int
		}
	}
	call := func(name string, args map[string]any) (r seen) {
		t.Helper()
		args["terminalId"] = m.ID
		text, isError := tool(t, s, name, args)
		if isError {
			t.Fatalf("%s %v: %s", name, args, text)
		}
		must.Do(t, json.Unmarshal([]byte(text), &r))
		return r
	}
	call("wait_terminal", map[string]any{"pattern": `[$#] $`})
	before := call("write_terminal", map[string]any{"input": "echo $((6*7)); false", "enter": true}).Cursor
	r := call("wait_terminal", map[string]any{"command": true, "since": before})
	if r.Reason != "command" || r.Command == nil || r.Command.Line != "echo $((6*7)); false" || r.Command.ExitCode == nil || *r.Command.ExitCode != 1 {
		t.Errorf("a command: %+v, %+v", r, r.Command)
	}
	if got := call("read_terminal", map[string]any{"since": before, "grep": "^42$"}); got.History != "42\n" {
		t.Errorf("its output: %q", got.History)
	}
	before = call("write_terminal", map[string]any{"input": "sh -c 'echo it runs; exec sleep 100'", "enter": true}).Cursor
	call("wait_terminal", map[string]any{"pattern": "^it runs$", "since": before})
	call("signal_terminal", map[string]any{"signal": "SIGINT"})
	if r := call("wait_terminal", map[string]any{"command": true, "since": before}); r.Command == nil || r.Command.ExitCode == nil || *r.Command.ExitCode != 130 {
		t.Errorf("what was interrupted: %+v, %+v", r, r.Command)
	}
}

// allowAll lets agents run commands that would need a question.
func allowAll(t *testing.T, home string) {
	t.Helper()
	const text = "[policy]\n[[policy.rules]]\nname = \"all\"\neffect = \"allow\"\nargv = [\"bash\"]\nreason = \"a test\"\n"
	path := filepath.Join(home, "config", "config.toml")
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// The daemon is replaced under a session: the call under way fails, everything else goes
// on.
func TestMCPOutlivesDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	t.Setenv(awayVar, patience.String())
	told := make(chan string, 100)
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	var lines testkit.Output // that went to the program
	wire := &sdk.LoggingTransport{Transport: &sdk.CommandTransport{Command: atAPrompt("tether", "mcp", "--as", "claude")}, Writer: &lines}
	s := must.Get(c.Connect(t.Context(), wire, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"}))(t)
	defer s.Close()
	program, _ := exec.LookPath("devserver")
	text, isError := tool(t, s, "spawn_background_terminal", map[string]any{"cwd": "/", "command": []string{program, "0"}})
	if isError {
		t.Fatal(text)
	}
	var m struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(text), &m))
	id, _ := command(t, "run", "--detach", "--", "sh", "-c", "read x; echo $x; exec sleep 600")
	must.Do(t, s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "terminal:///" + id}))
	failed := make(chan error, 1)
	go func() {
		_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_terminal", Arguments: map[string]any{"terminalId": m.ID, "timeoutMs": 600000}})
		failed <- err
	}()
	testkit.Eventually(t, patience, "the wait is sent", func() bool { return strings.Contains(lines.String(), "wait_terminal") })
	tool(t, s, "list_terminals", nil) // after which the daemon has it
	next := exec.Command("tether", "daemon", "--replace")
	must.Do(t, next.Start())
	t.Cleanup(func() { endDaemon(t, home); next.Wait() })
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the daemon restarted during this call") {
		t.Errorf("the call under way: %v", err)
	}
	testkit.Eventually(t, patience, "the next daemon has the terminal as it was", func() bool {
		text, isError := tool(t, s, "list_terminals", nil)
		return !isError && strings.Contains(text, `"id":"`+m.ID+`","cwd":"/","owner":"agent","visible":false`)
	})
	for len(told) > 0 {
		<-told
	}
	me := sit(t, "attach", id)
	me.types("hello\r")
	me.sees("hello")
	select {
	case uri := <-told:
		if uri != "terminal:///"+id {
			t.Errorf("told of %s", uri)
		}
	case <-time.After(patience):
		t.Error("the subscription is forgotten")
	}
	if text, isError := tool(t, s, "kill_terminal", map[string]any{"terminalId": m.ID}); isError {
		t.Errorf("kill: %s", text)
	}
}

// When the daemon ends for good, tether mcp says so, and does not hang.
func TestMCPWithoutDaemon(t *testing.T) {
	newHome(t)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	if _, status := command(t, "daemon", "--background"); status != 0 {
		t.Fatalf("daemon: status %d", status)
	}
	client, _, err := a.client()
	must.Do(t, err)
	defer client.Close()
	in, say := io.Pipe()
	heard, out := io.Pipe()
	p := &mcpPipe{open: client.As("claude").MCP, in: in, out: out, timeout: 50 * time.Millisecond, notice: func(string, ...any) {}}
	ended := make(chan error, 1)
	go func() { ended <- p.run(t.Context()) }()
	lines := bufio.NewScanner(heard)
	fmt.Fprintln(say, `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	lines.Scan()
	forgetAgents(t)
	id, _ := command(t, append([]string{"run", "--detach", "--"}, testkit.Sleep()...)...)
	fmt.Fprintln(say, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(say, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"`+id+`"}}}`)
	fmt.Fprintln(say, `{"jsonrpc":"2.0","id":"b","method":"ping"}`)
	if lines.Scan(); !strings.Contains(lines.Text(), `"id":"b"`) {
		t.Fatalf("heard %s", lines.Text())
	}
	if _, status := command(t, "stop"); status != 0 {
		t.Fatalf("stop: status %d", status)
	}
	if lines.Scan(); !strings.HasPrefix(lines.Text(), `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"the daemon restarted`) {
		t.Errorf("the call under way: %s", lines.Text())
	}
	if err := <-ended; !errors.Is(err, localclient.ErrDropped) || hintFor(err) != "restart the MCP client" {
		t.Errorf("it ended with %v", err)
	}
	say.Close()
}

// A client that says all it has to say and closes its end at once still gets every
// answer.
func TestMCPAnswersAClientThatIsDone(t *testing.T) {
	newHome(t)
	if _, status := command(t, "daemon", "--background"); status != 0 {
		t.Fatalf("daemon: status %d", status)
	}
	id, _ := command(t, "run", "--detach", "--", "does", "after:1s", "exit:7")
	cmd := atAPrompt("tether", "mcp")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"` + id + `"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"` + id + `","pattern":"never"}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
`)
	out, err := cmd.CombinedOutput()
	if runtime.GOOS == "windows" { // see atAPrompt
		forgetAgents(t)
	}
	if err != nil || !strings.Contains(string(out), `"id":2`) || !strings.Contains(string(out), `\"exitCode\":7`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMCPBadName(t *testing.T) {
	newHome(t)
	cmd := exec.Command("tether", "mcp", "--as", "a b")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "must be 1 to 64 of the characters") {
		t.Errorf("status %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
