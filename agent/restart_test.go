package agent_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// asAgent opens an MCP session of an agent.
func (d *daemon) asAgent(name string) *sdk.ClientSession {
	d.t.Helper()
	stream := must.Get(d.client.As(name).MCP(d.t.Context()))(d.t)
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s := must.Get(c.Connect(d.t.Context(), &sdk.IOTransport{Reader: stream, Writer: stream}, nil))(d.t)
	d.t.Cleanup(func() { stream.Close(); s.Close() })
	return s
}

// An agent restarts the one terminal whose declaration lets agents do that, within its
// limits and on record. Others are refused: a terminal that it must not know of looks
// unknown, and one that the person has ended stays down.
func TestAgentsRestart(t *testing.T) {
	home := home(t)
	settings := config.Default()
	settings.Policy.Limits.SpawnsPerMinute = 3
	settings.Terminal = []config.Declared{
		{Name: "web", Command: testkit.Sleep(), Agents: []string{config.AgentsRestart}, Ready: config.Ready{Pattern: "never"}},
		{Name: "plain", Command: testkit.Sleep()},
		{Name: "hidden", Command: testkit.Sleep(), Private: true},
	}
	d := start(t, agent.Config{Dirs: home, Settings: &settings})
	for _, name := range []string{"web", "plain", "hidden"} {
		testkit.Eventually(t, patience, name+" runs", func() bool { return d.declared(name).State == "running" })
	}
	bob := d.asAgent("bob")
	tools, err := bob.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(tools.Tools, func(tool *sdk.Tool) bool { return tool.Name == "restart_terminal" }) {
		t.Fatalf("the tool is not there: %v", err)
	}
	restart := func(ref string) (text string, failed bool) {
		t.Helper()
		r := must.Get(bob.CallTool(t.Context(), &sdk.CallToolParams{Name: "restart_terminal", Arguments: map[string]any{"terminalId": ref}}))(t)
		return r.Content[0].(*sdk.TextContent).Text, r.IsError
	}
	before := d.declared("web").ID
	for _, ref := range []string{"web", "", "web"} {
		if ref == "" {
			ref = d.declared("web").ID
		}
		text, failed := restart(ref)
		now := d.declared("web")
		if failed || !strings.Contains(text, `"id":"`+now.ID+`"`) || !strings.Contains(text, `"state":"running"`) || !strings.Contains(text, `"ready":"starting"`) || now.ID == before {
			t.Fatalf("restarting %s: %s; it is %+v", ref, text, now)
		}
		before = now.ID
	}
	if text, failed := restart("web"); !failed || !strings.Contains(text, "rate limit") {
		t.Errorf("the fourth within a minute: %s", text)
	}
	if text, failed := restart("plain"); !failed || !strings.Contains(text, "does not let agents do that") {
		t.Errorf("one that is seen: %s", text)
	}
	for _, ref := range []string{"hidden", d.declared("hidden").ID} {
		text, failed := restart(ref)
		unknown, _ := restart("nowhere")
		if !failed || strings.ReplaceAll(text, ref, "X") != strings.ReplaceAll(unknown, "nowhere", "X") {
			t.Errorf("a private one: %s, an unknown one: %s", text, unknown)
		}
	}
	must.Get(d.client.Declare(t.Context(), localapi.DeclareRequest{Do: localapi.DeclareDown, Names: []string{"web"}}))(t)
	if text, failed := restart("web"); !failed || !strings.Contains(text, "only the user starts it again") {
		t.Errorf("what the user has ended: %s", text)
	}
	record, err := os.ReadFile(agent.AuditPath(home))
	if n := strings.Count(string(record), `"event":"restart"`); err != nil || n != 3 || !strings.Contains(string(record), `"rule":"terminal.agents"`) || !strings.Contains(string(record), `"actor":"agent:bob"`) {
		t.Errorf("%d restarts are on record, %v", n, err)
	}
	if !strings.Contains(string(record), "its declaration does not let agents do that") {
		t.Error("a refusal is not on record")
	}
}

// Without such a declaration there is no such tool.
func TestNothingToRestart(t *testing.T) {
	settings := config.Default()
	settings.Terminal = []config.Declared{{Name: "plain", Command: testkit.Sleep()}}
	d := start(t, agent.Config{Dirs: home(t), Settings: &settings})
	tools, err := d.asAgent("bob").ListTools(t.Context(), nil)
	if err != nil || slices.ContainsFunc(tools.Tools, func(tool *sdk.Tool) bool { return tool.Name == "restart_terminal" }) {
		t.Errorf("the tool is there, or %v", err)
	}
}
