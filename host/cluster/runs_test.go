package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// An agent at one node asks about the earlier runs of a machine at another one. When the
// machine has left, its runs are not found, and nothing is answered in its place.
func TestRunsOfMachinesAtOtherNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	asked := make(chan string, 10)
	conn := must.Get(client.Connect(t.Context(), client.Endpoint{URL: a.url, Token: own}, client.Options{ClientID: "workshop", Meta: ahp.ClientMarker{Runs: true}.Meta(), OnRequest: func(r *jsonrpc.Request) {
		var p ahp.RunsParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			t.Error(err)
		}
		asked <- p.Tool + " " + string(p.Arguments)
		_ = r.Reply(ahp.RunsResult{Answer: []byte(`{"runs":[{"id":"pty-a","command":"make","started":"2026-01-02T03:04:05Z","outcome":"good","exitCode":0,"bytes":7}]}`)})
	}}))(t)
	defer conn.Close()
	there := newAgent(t, b)
	list := func() string {
		r := must.Get(there.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_runs", Arguments: json.RawMessage(`{"max":3}`)}))(t)
		return r.Content[0].(*sdk.TextContent).Text
	}
	if got := list(); !strings.Contains(got, `"id":"workshop/pty-a"`) {
		t.Errorf("the runs: %s", got)
	}
	if got, want := <-asked, `list_runs {"max":3}`; got != want {
		t.Errorf("the machine was asked %s, want %s", got, want)
	}
	conn.Close()
	testkit.Eventually(t, patience, "the machine is gone", func() bool { return !strings.Contains(list(), "pty-a") })
}
