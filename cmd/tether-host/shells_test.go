package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host/shells"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/shell"
	"tether/shellint"
)

// An agent next to the host runs commands in real shells of it, and a person at an AHP
// client takes over one of them.
func TestAnAgentRunsCommandsAtTheHost(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if plan, err := shellint.Inject([]string{shell.Login()}, shellint.InjectOptions{Nonce: "examination", Dir: t.TempDir()}); err != nil || !plan.Detect {
		t.Skipf("the login shell of this user, %s, does not report its commands", shell.Login())
	}
	t.Setenv("HOME", t.TempDir()) // nobody's start-up files
	file := filepath.Join(t.TempDir(), "token")
	r := start(t, "--sessions", "--agent-shells", "--token-file", file)
	data := must.Get(os.ReadFile(file))(t)
	token := strings.TrimSpace(string(data))
	agent := must.Get(sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http" + strings.TrimPrefix(r.url, "ws") + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer(token)}}, nil))(t)
	defer agent.Close()
	call := func(tool, args string) (got struct {
		TerminalID, Reason, Line, History string
		ExitCode                          *int
		Cursor                            int64
		Terminated                        bool
	}) {
		t.Helper()
		text, err := ask(t.Context(), agent, [2]string{tool, args}, "")
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", tool, args, err)
		}
		return got
	}
	with := func(id, rest string) string { return `{"terminalId": "` + id + `"` + rest + `}` }
	const long = `, "timeoutMs": 240000`

	made := call("run_command", `{"command": "echo it is $((40+2)); sh -c 'exit 7'", "cwd": "/"`+long+`}`)
	if made.Reason != "command" || made.ExitCode == nil || *made.ExitCode != 7 || !strings.Contains(made.History, "it is 42") {
		t.Errorf("a command: %+v", made)
	}
	if again := call("run_command", with(made.TerminalID, `, "command": "pwd"`+long)); again.Reason != "command" || *again.ExitCode != 0 || !strings.Contains(again.History, "\n/") {
		t.Errorf("in the same shell: %+v", again)
	}
	server := call("run_command", `{"command": "sh -c 'echo up; exec sleep 1000'", "background": true`+long+`}`)
	wait := func(id, rest string) string {
		t.Helper()
		return call("wait_terminal", with(id, rest+long)).Reason
	}
	if why := wait(server.TerminalID, `, "pattern": "^up"`); server.Reason != "background" || why != "pattern" {
		t.Errorf("a server: %+v, %s", server, why)
	}

	person := must.Get(connect(t, r, token, client.Options{ClientID: "person"}))(t)
	var root ahp.RootState
	result, err := person.Subscribe(t.Context(), ahp.RootURI)
	if err == nil {
		err = json.Unmarshal(result.Snapshot.State, &root)
	}
	if err != nil || len(root.Terminals) != 2 {
		t.Fatalf("the person sees %+v, %v", root.Terminals, err)
	}
	taken := root.Terminals[0] // the shell that rests
	if taken.Claim.Kind != ahp.ClaimSession || taken.Claim.ToolCallID != "" {
		t.Errorf("after the command it is held by %+v", taken.Claim)
	}
	// Each door has its own form for the directory, in which a shell begins and into
	// which it goes.
	directory := func(uri, path string) {
		t.Helper()
		list, err := ask(t.Context(), agent, [2]string{"list_terminals", "{}"}, "")
		if err != nil || !strings.Contains(list, `"cwd":"`+path+`"`) {
			t.Errorf("at MCP there are %s, %v; want the directory %s", list, err, path)
		}
		snapshot, err := person.Subscribe(t.Context(), taken.Resource)
		if err != nil || !strings.Contains(string(snapshot.Snapshot.State), `"cwd":"`+uri+`"`) {
			t.Errorf("at AHP it is %s, %v; want the directory %s", snapshot.Snapshot.State, err, uri)
		}
	}
	directory("file:///", "/")
	call("run_command", with(made.TerminalID, `, "command": "cd /usr"`+long))
	directory("file:///usr", "/usr")
	before := call("read_terminal", with(made.TerminalID, "")).Cursor
	for _, a := range []ahp.Action{ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, ahp.TerminalInput{Data: "echo by ha''nd\r"}} {
		must.Get(person.Dispatch(t.Context(), taken.Resource, a))(t)
	}
	line := must.Get(json.Marshal(before))(t)
	if why := wait(made.TerminalID, `, "pattern": "^by hand", "since": `+string(line)); why != "pattern" {
		t.Errorf("what the person types: %s", why)
	}
	if text, err := ask(t.Context(), agent, [2]string{"run_command", with(made.TerminalID, `, "command": "true"`)}, ""); err == nil || !strings.Contains(err.Error(), "the user has taken over") {
		t.Errorf("while the person has it, the agent is answered %s, %v", text, err)
	}
	must.Get(person.Dispatch(t.Context(), taken.Resource, ahp.TerminalClaimed{Claim: taken.Claim}))(t)
	testkit.Eventually(t, patience, "it is the agent's again", func() bool {
		_, err := ask(t.Context(), agent, [2]string{"run_command", with(made.TerminalID, `, "command": "true"`+long)}, "")
		return err == nil
	})
	if gone := call("kill_terminal", with(server.TerminalID, "")); !gone.Terminated {
		t.Errorf("killed: %+v", gone)
	}
	must.Do(t, person.Peer().Call(t.Context(), ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: taken.Claim.Session}, nil))
	if text, err := ask(t.Context(), agent, [2]string{"list_terminals", "{}"}, ""); err != nil || text != "[]" {
		t.Errorf("after the end of the session there are %s, %v", text, err)
	}
}

// A real shell whose client has vanished is listed with its running program, ends by a
// command and, if the host is configured so, by itself once nothing runs in it.
func TestShellsWhoseClientVanished(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	t.Setenv("HOME", t.TempDir()) // nobody's start-up files
	file := filepath.Join(t.TempDir(), "own.token")
	r := start(t, "--token-file", file, "--shell-grace", "1s")
	token := must.Get(existingToken(file))(t)
	stop := filepath.Join(t.TempDir(), "stop")
	c := must.Get(connect(t, r, token, client.Options{}))(t)
	for _, uri := range []string{"ahp-terminal:/waits", "ahp-terminal:/sleeps"} {
		must.Do(t, c.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("test")}))
	}
	for uri, line := range map[string]string{"ahp-terminal:/waits": "sh -c 'while [ ! -e " + stop + " ]; do sleep 0.1; done; :'\r", "ahp-terminal:/sleeps": "sleep 1000\r"} {
		must.Get(c.Dispatch(t.Context(), uri, ahp.TerminalInput{Data: line}))(t)
	}
	list := func() (all []shells.Shell) {
		t.Helper()
		var got struct{ Shells []shells.Shell }
		must.Do(t, json.Unmarshal([]byte(command(t, exitOK, "shells", "--json", "--url", r.url, "--token-file", file)), &got))
		return got.Shells
	}
	front := func(i int) string { return list()[i].Foreground }
	testkit.Eventually(t, patience, "both run something", func() bool { return front(0) != "" && front(1) != "" })
	sleeps := front(1)
	if !strings.HasPrefix(sleeps, "process ") && (sleeps != "sleep 1000" || !strings.Contains(front(0), "while")) { // macOS shows no arguments
		t.Errorf("in the foreground: %q and %q", front(0), sleeps)
	}
	c.Close()
	testkit.Eventually(t, patience, "nobody is there for them", func() bool { s := list(); return s[0].AloneSince != nil && s[1].AloneSince != nil })
	table := command(t, exitOK, "shells", "--url", r.url, "--token-file", file)
	for _, want := range []string{"NO CLIENT SINCE", sleeps, list()[1].ID} {
		if !strings.Contains(table, want) {
			t.Errorf("the list lacks %q:\n%s", want, table)
		}
	}
	testkit.Eventually(t, patience, "the grace time is over twice", func() bool {
		all := list()
		if len(all) != 2 {
			t.Fatalf("a shell has ended although something runs in it: %+v", all)
		}
		return time.Since(*all[1].AloneSince) > 2*time.Second
	})
	command(t, exitOK, "shells", "end", list()[1].ID, "--url", r.url, "--token-file", file)
	command(t, exitFailure, "shells", "end", "pty-none", "--url", r.url, "--token-file", file)
	if all := list(); len(all) != 1 || all[0].Foreground == "" {
		t.Errorf("after one was ended: %+v", all)
	}
	must.Do(t, os.WriteFile(stop, nil, 0o600))
	testkit.Eventually(t, patience, "the shell in which nothing runs ends", func() bool { return len(list()) == 0 })
	if got := command(t, exitOK, "shells", "--url", r.url, "--token-file", file); !strings.Contains(got, "runs no shells") {
		t.Errorf("without any: %s", got)
	}
}
