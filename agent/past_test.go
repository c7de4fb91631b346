package agent_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// toolText calls a tool and returns the text of its answer, or of its error.
func toolText(t *testing.T, s *sdk.ClientSession, tool, args string) string {
	t.Helper()
	r := must.Get(s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}))(t)
	return r.Content[0].(*sdk.TextContent).Text
}

// Agents here ask for earlier runs of the person's and of their own. Agents at a host ask
// the machine through the host: for what was lent there, while it still is; of private
// terminals, and of those that were never lent, they learn nothing. While the machine is
// away, the answer says so.
func TestEarlierRunsForAgents(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	h := host.New(host.Options{Token: "right", Grace: time.Minute})
	url := serveHTTP(t, h)
	t.Cleanup(h.Close)
	settings := config.Default()
	settings.Lend.Default = "no"
	where := home(t)
	d := start(t, agent.Config{Dirs: where, Settings: &settings})
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "right", Name: "lab"}))(t)
	run := func(name string, r localapi.SpawnRequest) string {
		t.Helper()
		r.Name, r.Env, r.Cwd = name, os.Environ(), testkit.Abs("/")
		r.Command = []string{"sh", "-c", "echo marker-" + name + "; sleep 600"}
		return must.Get(d.client.Spawn(t.Context(), r))(t).ID
	}
	lent, own := run("lent", localapi.SpawnRequest{LendTo: []string{"lab"}}), run("own", localapi.SpawnRequest{})
	hidden := run("hidden", localapi.SpawnRequest{Private: true})
	bob, eve := d.asAgent("bob"), d.asAgent("eve")
	var spawned struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(toolText(t, bob, "spawn_background_terminal", `{"cwd":"/","command":["echo","marker-bob"]}`)), &spawned))
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	far := must.Get(c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: "http" + strings.TrimPrefix(url, "ws") + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer("right")}, MaxRetries: -1}, nil))(t)
	t.Cleanup(func() { far.Close() })

	sees := func(who string, s *sdk.ClientSession, want ...string) {
		t.Helper()
		got := ""
		testkit.Eventually(t, patience, who+" finds what it may", func() bool {
			got = toolText(t, s, "search_runs", `{"pattern":"^marker-"}`)
			for _, name := range want {
				if !strings.Contains(got, "marker-"+name) {
					return false
				}
			}
			return true
		})
		for _, name := range []string{"lent", "own", "hidden", "bob"} {
			if is := strings.Contains(strings.Join(want, " "), name); strings.Contains(got, "marker-"+name) != is {
				t.Errorf("%s finds marker-%s %v: %s", who, name, !is, got)
			}
		}
	}
	sees("bob", bob, "lent", "own", "bob")
	sees("eve", eve, "lent", "own")
	sees("an agent at the host", far, "lent")

	list := toolText(t, far, "list_runs", `{}`)
	machine, _, _ := strings.Cut(strings.Split(list, `"id":"`)[1], "/")
	if !strings.Contains(list, "/"+lent) || strings.Contains(list, own) || strings.Contains(list, hidden) || strings.Contains(list, spawned.ID) {
		t.Errorf("the host's list: %s", list)
	}
	if text := toolText(t, far, "read_terminal", `{"run":"`+machine+"/"+lent+`"}`); !strings.Contains(text, "marker-lent") || !strings.Contains(text, machine+"/"+lent) {
		t.Errorf("read at the host: %s", text)
	}
	for _, id := range []string{own, hidden, spawned.ID, "pty-nothing"} {
		if text := toolText(t, far, "read_terminal", `{"run":"`+machine+"/"+id+`"}`); text != "No such run; list_runs lists them" {
			t.Errorf("one that was not lent: %s", text)
		}
	}
	if text := toolText(t, eve, "read_terminal", `{"run":"`+spawned.ID+`"}`); !strings.HasPrefix(text, "Run not found") {
		t.Errorf("another agent's: %s", text)
	}
	if text := toolText(t, far, "verdict", `{"names":["lent"]}`); !strings.Contains(text, machine+"/"+lent) || !strings.Contains(text, "unknown") {
		t.Errorf("the verdict at the host: %s", text)
	}

	if text := string(must.Get(os.ReadFile(agent.AuditPath(where)))(t)); strings.Count(text, " asks about earlier runs, as the host says") != 1 {
		t.Errorf("the audit log does not have once that somebody at the host asks:\n%s", text)
	}
	must.Do(t, func() error { _, err := d.client.Unlend(t.Context(), lent, "lab"); return err }())
	if text := toolText(t, far, "read_terminal", `{"run":"`+machine+"/"+lent+`"}`); text != "No such run; list_runs lists them" {
		t.Errorf("it is not lent any more: %s", text)
	}
	must.Get(d.client.Lend(t.Context(), lent, localapi.LendRequest{Host: "lab"}))(t)
	testkit.Eventually(t, patience, "the host has it again", func() bool { return strings.Contains(toolText(t, far, "list_terminals", `{}`), "lent") })
	d.end()
	testkit.Eventually(t, patience, "the machine is away", func() bool {
		return toolText(t, far, "list_runs", `{}`) == "the machine is away: "+machine+" can be asked about earlier runs when it is back"
	})
}
