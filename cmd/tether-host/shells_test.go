package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/platform/shell"
	"tether/shellint"
)

// An agent beside the host runs commands in real shells of it, and a person at an AHP client takes one in hand.
func TestAnAgentRunsCommandsAtTheHost(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if plan, err := shellint.Inject([]string{shell.Login()}, shellint.InjectOptions{Nonce: "examination", Dir: t.TempDir()}); err != nil || !plan.Detect {
		t.Skipf("the login shell of this user, %s, does not report its commands", shell.Login())
	}
	t.Setenv("HOME", t.TempDir()) // nobody's start-up files
	file := filepath.Join(t.TempDir(), "token")
	r := start(t, "--sessions", "--agent-shells", "--token-file", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(data))
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http" + strings.TrimPrefix(r.url, "ws") + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
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

	person, err := connect(t, r, token, client.Options{ClientID: "person"})
	if err != nil {
		t.Fatal(err)
	}
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
	before := call("read_terminal", with(made.TerminalID, "")).Cursor
	for _, a := range []ahp.Action{ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, ahp.TerminalInput{Data: "echo by ha''nd\r"}} {
		if _, err := person.Dispatch(t.Context(), taken.Resource, a); err != nil {
			t.Fatal(err)
		}
	}
	line, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if why := wait(made.TerminalID, `, "pattern": "^by hand", "since": `+string(line)); why != "pattern" {
		t.Errorf("what the person types: %s", why)
	}
	if text, err := ask(t.Context(), agent, [2]string{"run_command", with(made.TerminalID, `, "command": "true"`)}, ""); err == nil || !strings.Contains(err.Error(), "a person has taken") {
		t.Errorf("while the person has it, the agent is answered %s, %v", text, err)
	}
	if _, err := person.Dispatch(t.Context(), taken.Resource, ahp.TerminalClaimed{Claim: taken.Claim}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "it is the agent's again", func() bool {
		_, err := ask(t.Context(), agent, [2]string{"run_command", with(made.TerminalID, `, "command": "true"`+long)}, "")
		return err == nil
	})
	if gone := call("kill_terminal", with(server.TerminalID, "")); !gone.Terminated {
		t.Errorf("killed: %+v", gone)
	}
	if err := person.Peer().Call(t.Context(), ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: taken.Claim.Session}, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := ask(t.Context(), agent, [2]string{"list_terminals", "{}"}, ""); err != nil || text != "[]" {
		t.Errorf("after the end of the session there are %s, %v", text, err)
	}
}
