package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// Problems that tools report on a machine are known to agents and shown on the page of
// its host, with all their text, and with the amount of unexamined output.
func TestProblemsAtTheHost(t *testing.T) {
	const secret = testkit.Bearer("host-secret")
	h := host.New(host.Options{Token: string(secret), Scrollback: 64 << 10})
	t.Cleanup(h.Close)
	wsURL := serveHTTP(t, h)
	url := "http" + strings.TrimPrefix(wsURL, "ws")

	children := make(chan *testkit.Child, 1)
	settings := config.Default()
	d := start(t, agent.Config{Dirs: home(t), Settings: &settings, Terminals: term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) {
		c := testkit.NewChild()
		children <- c
		return c, nil
	}}})
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: wsURL, Name: "lab", Token: string(secret)}))(t)
	d.status("the link", func(s localapi.Status) bool { return s.Hosts[0].State == "online" })
	must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"npm", "run", "watch"}, Name: "build", Cwd: testkit.Abs("/src")}))(t)
	child := <-children
	before := strings.Repeat("compiled one more module\r\n", 10_000)
	child.Print(before)
	const typescript = "\x1b[96msrc/cart.ts\x1b[0m(17,9): \x1b[91merror\x1b[0m TS2322: Type 'string' is not assignable to type 'number'.\r\n"
	child.Print(typescript)

	agentSession := must.Get(sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: secret}, MaxRetries: -1}, nil))(t)
	defer agentSession.Close()
	call := func(tool string, args map[string]any, into any) {
		t.Helper()
		r, err := agentSession.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil || r.IsError {
			t.Fatalf("%s %v: %v %+v", tool, args, err, r)
		}
		must.Do(t, json.Unmarshal([]byte(r.Content[0].(*sdk.TextContent).Text), into))
	}
	type problem struct {
		Tool, File, Severity, Code, Message string
		Line, Column, Count                 int
		First, Last                         int64
	}
	type answer struct {
		TerminalID       string
		Problems         []problem
		Errors, Warnings int
		Cursor           int64
		UnseenBytes      int64
		Cleared, Exited  bool
	}
	ask := func(args map[string]any, ok func(answer) bool) (a answer) {
		t.Helper()
		testkit.Eventually(t, patience, "the problems are known", func() bool {
			a = answer{}
			call("problems", args, &a)
			return ok(a)
		})
		return a
	}
	var all []struct{ ID, Name string }
	testkit.Eventually(t, patience, "the host has the terminal", func() bool {
		call("list_terminals", nil, &all)
		return len(all) == 1
	})
	id := all[0].ID
	var read struct{ History string }
	testkit.Eventually(t, patience, "the host has the output", func() bool {
		call("read_terminal", map[string]any{"terminalId": id}, &read)
		return strings.Contains(read.History, "TS2322")
	})
	first := ask(map[string]any{"terminalId": all[0].Name}, func(a answer) bool { return len(a.Problems) == 1 })
	want := problem{Tool: "tsc", File: first.Problems[0].File, Severity: "error", Code: "TS2322", Message: "Type 'string' is not assignable to type 'number'.",
		Line: 17, Column: 9, Count: 1, First: int64(len(before)), Last: int64(len(before) + len(typescript))}
	if first.Problems[0] != want || !strings.HasSuffix(filepath.ToSlash(want.File), "/src/src/cart.ts") || first.TerminalID != id || first.Errors != 1 || first.Warnings != 0 || first.Cursor != want.Last || first.Exited {
		t.Errorf("the problem is %+v\nof %+v\nwant %+v", first.Problems[0], first, want)
	}
	if kept := want.Last - first.UnseenBytes; kept <= 0 || kept > 64<<10 {
		t.Errorf("of %d bytes nobody looked at %d, but the host keeps 64 KiB", want.Last, first.UnseenBytes)
	}

	const lint = "src/list.go:3:1: warning: unused [W1]\r\n"
	child.Print(lint)
	second := ask(map[string]any{"terminalId": id, "since": first.Cursor}, func(a answer) bool { return a.Warnings == 1 })
	if len(second.Problems) != 1 || second.Errors != 1 || second.Problems[0].First != first.Cursor || second.Problems[0].Last != first.Cursor+int64(len(lint)) || second.Cursor != second.Problems[0].Last {
		t.Errorf("since then %+v", second)
	}
	if third := ask(map[string]any{"terminalId": id, "since": second.Cursor}, func(answer) bool { return true }); len(third.Problems) != 0 || third.Errors != 1 || third.Warnings != 1 {
		t.Errorf("since that %+v", third)
	}

	got := must.Get((&http.Client{Transport: secret}).Get(url + "/terminals/" + id + "/problems"))(t)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	var page answer
	if err != nil || json.Unmarshal(body, &page) != nil || len(page.Problems) != 2 || page.Problems[0] != want || page.UnseenBytes != first.UnseenBytes {
		t.Errorf("the page gets %s %s, %v", got.Status, body, err)
	}
}
