package local_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// hushed are two secrets: text that looks like a token, and the value of a variable of
// the terminal's.
const hushedValue = "hunter2-value"

var hushedToken = "ghp_" + strings.Repeat("a1B2", 9)

// hushed is a world in which hosts see neither, and cursor is shown all.
func hushed(t *testing.T) *world {
	t.Helper()
	rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
	return serve(t, local.Options{}, term.Options{
		Outward: rules, Secrets: func(env []string) []string { return redact.Values(env, []string{"MY_*"}) },
		Unredacted: func(a term.Actor) bool { return a == term.Agent("cursor") },
	})
}

// secretly has an agent's or the person's terminal print both wherever it can: output,
// title, name, command line and argv.
func (w *world) secretly(c *localclient.Client, name string) (localapi.Terminal, *testkit.Child) {
	w.t.Helper()
	r := localapi.SpawnRequest{Command: []string{"run", hushedToken}, Cwd: testkit.Abs("/"), Env: []string{"MY_TOKEN=" + hushedValue}, Name: name}
	tm := must.Get(c.Spawn(w.t.Context(), r))(w.t)
	child := <-w.children
	out := "\x1b]0;title " + hushedToken + "\a\x1b]633;A\a$ \x1b]633;B\a\x1b]633;E;login " + hushedToken + "\a\x1b]633;C\a" +
		"main.c:1:2: error: no " + hushedToken + "\r\nvalue " + hushedValue + "\r\n\x1b]633;D;0\a\x1b]633;A\a$ "
	child.Print(out)
	testkit.Eventually(w.t, patience, "it is printed", func() bool { return w.info(tm.ID).Bytes == int64(len(out)) })
	return tm, child
}

// tellsNone fails if a secret, or its form in JSON, is in the text for an agent.
func tellsNone(t *testing.T, who, what string) {
	t.Helper()
	for _, secret := range []string{hushedToken, hushedValue} {
		if strings.Contains(what, secret) {
			t.Errorf("%s is told a secret: %.400q", who, what)
		}
	}
}

// agentRoutes has, for each route that an agent may use, the requests of this test; ID is
// the person's terminal, OWN the agent's. "" is a WebSocket or a session, which has a
// separate test.
var agentRoutes = map[string][]string{
	"GET /v1/status":                   {"/v1/status"},
	"GET /v1/whoami":                   {"/v1/whoami"},
	"GET /v1/ports":                    {"/v1/ports"},
	"GET /v1/terminals":                {"/v1/terminals", "/v1/terminals?ports=1"},
	"POST /v1/terminals":               {""},
	"GET /v1/terminals/{ref}":          {"/v1/terminals/ID", "/v1/terminals/OWN"},
	"POST /v1/terminals/{ref}/kill":    {""},
	"GET /v1/terminals/{ref}/output":   outputs("/v1/terminals/ID/output", "/v1/terminals/OWN/output"),
	"GET /v1/terminals/{ref}/commands": {"/v1/terminals/ID/commands", "/v1/terminals/OWN/commands"},
	"GET /v1/terminals/{ref}/problems": {"/v1/terminals/ID/problems", "/v1/terminals/ID/problems?raw=1", "/v1/terminals/OWN/problems?raw=1"},
	"GET /v1/terminals/{ref}/digest":   {"/v1/terminals/ID/digest", "/v1/terminals/ID/digest?raw=1", "/v1/terminals/OWN/digest?raw=1"},
	"POST /v1/terminals/{ref}/fetch":   {""}, // TestFetch
	"GET /v1/terminals/{ref}/screen":   {"/v1/terminals/ID/screen", "/v1/terminals/ID/screen?colours=1", "/v1/terminals/OWN/screen?colours=1"},
	"GET /v1/terminals/{ref}/wait":     {"/v1/terminals/ID/wait?pattern=error&timeout_ms=5000", "/v1/terminals/ID/wait?command=1&timeout_ms=5000"},
	"POST /v1/events":                  {""},
	"POST /v1/events/command":          {""},
	"GET /v1/mcp":                      {""},
	"GET /v1/runs":                     {""}, // runs are masked when they are kept: package runs
	"GET /v1/runs/search":              {""},
	"GET /v1/runs/compare":             {""},
	"GET /v1/runs/verdict":             {""},
	"GET /v1/runs/{run}/output":        {""},
	"GET /v1/runs/{run}/problems":      {""},
	"GET /v1/runs/{run}/digest":        {""},
	"/mcp":                             {""},
	"POST /v1/sandbox":                 {""},
	"GET /pty":                         {""},
	"/":                                {"/v1/nothing"},
}

// outputs are requests for all forms of output.
func outputs(paths ...string) (all []string) {
	for _, path := range paths {
		for _, query := range []string{"", "?view=text", "?view=screen", "?view=raw", "?view=raw&lines=3", "?view=raw&command=1", "?lines=2"} {
			all = append(all, path+query)
		}
	}
	return all
}

// fetch asks as an agent, and returns all of the answer.
func (w *world) fetch(as, method, path string) (status int, body string, trailer http.Header) {
	w.t.Helper()
	c := w.client
	if as != "" {
		c = c.As(as)
	}
	req := must.Get(http.NewRequestWithContext(w.t.Context(), method, "http://"+localapi.Host+path, nil))(w.t)
	resp := must.Get(c.HTTP().Do(req))(w.t)
	defer resp.Body.Close()
	all := must.Get(io.ReadAll(resp.Body))(w.t)
	return resp.StatusCode, fmt.Sprint(resp.Header, string(all)), resp.Trailer
}

// No route tells an agent a secret. One that is new must be entered above, or be the
// person's alone.
func TestNoRouteTellsAgentsSecrets(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := hushed(t)
	shown, _ := w.secretly(w.client, "build "+hushedToken)
	own, _ := w.secretly(w.client.As("claude"), "")
	for _, route := range w.server.Routes() {
		paths, ok := agentRoutes[route]
		if !ok {
			method, path, _ := strings.Cut(route, " ")
			for _, arg := range []string{"{ref}", "{name}", "{id}", "{principal}"} {
				path = strings.ReplaceAll(path, arg, shown.ID)
			}
			if status, _, _ := w.fetch("claude", method, path); status != http.StatusForbidden {
				t.Errorf("an agent is answered %d to %s: enter it in agentRoutes", status, route)
			}
			continue
		}
		for _, path := range paths {
			path = strings.NewReplacer("ID", shown.ID, "OWN", own.ID).Replace(path)
			if path == "" {
				continue
			}
			status, body, trailer := w.fetch("claude", http.MethodGet, path)
			if status != http.StatusOK && route != "/" {
				t.Errorf("%s: status %d: %s", path, status, body)
			}
			tellsNone(t, path, body)
			if strings.Contains(path, "/output") && !strings.Contains(path, "lines=") && trailer.Get("Tether-Masked") == "" {
				t.Errorf("%s: nothing says how much is masked", path)
			}
		}
	}
	// The same as an agent that is shown all, and as the person: the words above would be
	// found.
	for _, as := range []string{"cursor", ""} {
		for _, path := range []string{"/v1/terminals", "/v1/terminals/" + shown.ID + "/output?view=raw", "/v1/terminals/" + shown.ID + "/commands", "/v1/terminals/" + shown.ID + "/screen?colours=1"} {
			_, all, _ := w.fetch(as, http.MethodGet, path)
			if !strings.Contains(all, hushedToken) {
				t.Errorf("%q: %s tells no secret: %s", as, path, all)
			}
		}
	}
}

// Nor do the streams that an agent follows, attaches to or shows in an interface.
func TestNoStreamTellsAgentsSecrets(t *testing.T) {
	w := hushed(t)
	shown, child := w.secretly(w.client, "build")
	own, _ := w.secretly(w.client.As("claude"), "")

	f := w.follow(w.client.As("claude"), shown.ID, 0)
	u := w.uiOf(w.client.As("claude"))
	u.ask("pty:attach", shown.ID)
	heard := ""
	for !strings.Contains(heard, "value") {
		data, _ := json.Marshal(u.next())
		heard += string(data)
	}
	child.Print("again " + hushedValue + "\x1b]0;other " + hushedToken + "\a and more\r\n")
	for !strings.Contains(heard, "and more") {
		data, _ := json.Marshal(u.next())
		heard += string(data)
	}
	tellsNone(t, "/pty", heard)

	heard, places := "", 0
	for !strings.Contains(heard, "and more") {
		e := must.Get(f.Next())(t)
		heard += string(e.Data)
		places += e.Masked
	}
	tellsNone(t, "the stream", heard)
	if places != 5 { // two titles, a token, a value twice
		t.Errorf("the stream tells of %d masked places, want 5 in %q", places, heard)
	}

	c := w.client.As("claude")
	conn, _, err := websocket.Dial(t.Context(), "ws://"+localapi.Host+"/v1/terminals/"+own.ID+"/attach?from=0", &websocket.DialOptions{HTTPClient: c.HTTP()})
	must.Do(t, err)
	defer conn.CloseNow()
	for heard = ""; !strings.Contains(heard, "value"); {
		_, data, err := conn.Read(t.Context())
		must.Do(t, err)
		heard += string(data)
	}
	tellsNone(t, "attach", heard)
}

// Nor does the screen before a history, which the log has not kept.
func TestNoHistoryTellsAgentsSecrets(t *testing.T) {
	rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
	w := serve(t, local.Options{}, term.Options{Outward: rules, LogBytes: 64 << 10})
	tm, child := w.spawn("build")
	agent, person := w.uiOf(w.client.As("claude")), w.ui()
	agent.ask("pty:attach", tm.ID) // from now on output is searched for secrets
	agent.nextOf("pty:attached")
	out := "\x1b[2J\x1b[Hlogin " + hushedToken
	child.Print(out)
	counted := strings.Repeat("\x1b[4;1H\x1b[Kcounter", 10_000)
	child.Print(counted)
	testkit.Eventually(t, patience, "it is printed", func() bool { return w.info(tm.ID).Bytes == int64(len(out)+len(counted)) })
	for _, u := range []*ui{agent, person} {
		u.settled()
		u.ask("pty:attach", tm.ID)
		m := u.nextOf("pty:attached")
		before, _ := m.drawn()
		if told := strings.Contains(before, hushedToken); told != (u == person) || !strings.Contains(before, "login ") || m["screenTruncated"] != nil {
			t.Errorf("the screen before the history is %q, truncated %v", before, m["screenTruncated"])
		}
	}
}

// No tool, no resource and no notification tells an agent a secret, and answers say how
// many places are masked.
func TestNoToolTellsAgentsSecrets(t *testing.T) {
	w := hushed(t)
	shown, child := w.secretly(w.client, "build "+hushedToken)
	a := w.agent("claude")
	id := shown.ID
	calls := map[string][]args{
		"list_terminals": {{}},
		"read_terminal": {{"terminalId": id}, {"terminalId": id, "format": "raw"}, {"terminalId": id, "format": "screen"}, {"terminalId": id, "format": "digest"},
			{"terminalId": id, "since": 0}, {"terminalId": id, "tail": 2}, {"terminalId": id, "grep": "value"}},
		"wait_terminal":             {{"terminalId": id, "pattern": "value"}, {"terminalId": id, "command": true}, {"terminalId": id, "idleMs": 10}},
		"problems":                  {{"terminalId": id}},
		"fetch_page":                {{"terminalId": id}}, // a page: TestFetchTool
		"spawn_background_terminal": {{"cwd": testkit.Abs("/"), "command": []string{"x", hushedToken}}},
		"write_terminal":            {{"terminalId": id, "input": "x"}},
		"signal_terminal":           {{"terminalId": id, "signal": "SIGINT"}},
		"promote_terminal":          {{"terminalId": id}},
		"kill_terminal":             {{"terminalId": id}},
	}
	list := must.Get(a.session.ListTools(t.Context(), nil))(t)
	for _, tool := range list.Tools {
		for _, in := range calls[tool.Name] {
			r := must.Get(a.session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: in}))(t)
			all, _ := json.Marshal(r)
			tellsNone(t, tool.Name, string(all))
			says := strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"masked":`)
			if reads := slices.Contains([]string{"read_terminal", "wait_terminal", "problems"}, tool.Name); reads && !says && in["command"] == nil {
				t.Errorf("%s %v does not say how much is masked: %s", tool.Name, in, all)
			}
		}
		if calls[tool.Name] == nil {
			t.Errorf("the tool %s is new: what does it tell?", tool.Name)
		}
	}
	resources := must.Get(a.session.ListResources(t.Context(), nil))(t)
	all, _ := json.Marshal(resources)
	tellsNone(t, "resources/list", string(all))
	for _, resource := range resources.Resources {
		r := must.Get(a.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: resource.URI}))(t)
		all, _ := json.Marshal(r)
		tellsNone(t, resource.URI, string(all))
		if resource.Name == id && r.Contents[0].Meta["tether/masked"] != 2.0 && r.Contents[0].Meta["tether/masked"] != 3.0 {
			t.Errorf("%s: %v places are masked", resource.URI, r.Contents[0].Meta["tether/masked"])
		}
	}
	child.End(0)
	if text, _ := w.agent("cursor").call("read_terminal", args{"terminalId": id}); !strings.Contains(text, hushedToken) || strings.Contains(text, `"masked"`) {
		t.Errorf("an agent that is shown all is shown %s", text)
	}
}
