package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// offers holds extra tools that a test adds and removes.
type offers struct {
	mu  sync.Mutex
	all []mcp.Extra
}

func (o *offers) set(all ...mcp.Extra) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = all
}

func (o *offers) list() []mcp.Extra {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all
}

// repeats returns a tool that answers with its arguments, and fails if there are none.
func repeats(name, schema string) mcp.Extra {
	return mcp.Extra{Tool: agenttools.Tool{Name: name, Title: "Title", Description: "repeats", InputSchema: json.RawMessage(schema), ReadOnly: true},
		Call: func(_ context.Context, args json.RawMessage) (string, error) {
			if string(args) == "{}" || len(args) == 0 {
				return "", errors.New("nothing to repeat")
			}
			return name + " " + string(args), nil
		}}
}

func TestExtraTools(t *testing.T) {
	var o offers
	o.set(repeats("a", `{"type":"object","properties":{"x":{"type":"integer"}}}`))
	changed := make(chan struct{}, 100)
	s := newServer(t, mcp.Options{Tools: toolsOver(readOnly{&fakeTerminals{}}), Extra: o.list, Guide: "Extra words."})
	session := connect(t, s, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }})
	names := func() (all []string) {
		listed := must.Get(session.ListTools(t.Context(), nil))(t)
		for _, tool := range listed.Tools {
			all = append(all, tool.Name)
		}
		slices.Sort(all)
		return all
	}
	own := []string{"list_terminals", "problems", "read_terminal", "wait_terminal"}
	check.Equal(t, "tools", append([]string{"a"}, own...), names())
	if text, failed := answer(t, session, "a", map[string]any{"x": 1}); failed || text != `a {"x":1}` {
		t.Errorf("answer %q, %t", text, failed)
	}
	if text, failed := answer(t, session, "a", map[string]any{}); !failed || text != "nothing to repeat" {
		t.Errorf("answer %q, %t", text, failed)
	}
	// Extra tools do not replace the server's own, and no schema of an extra tool makes
	// the server panic.
	o.set(repeats("b", ""), repeats("list_terminals", ""), repeats("c", `{"type":"string"}`), repeats("d", `[`),
		repeats("e", `{"type":"object","properties":{"y":{"type":"object","x-mcp-header":"é é"}}}`))
	for len(changed) > 0 {
		<-changed
	}
	s.Sync()
	<-changed // at once, without a request
	check.Equal(t, "tools", append([]string{"b", "c", "d", "e"}, own...), names())
	for _, tool := range []string{"b", "c", "d", "e"} {
		if text, failed := answer(t, session, tool, map[string]any{"x": "y"}); failed || text != tool+` {"x":"y"}` {
			t.Errorf("answer %q, %t", text, failed)
		}
	}
	if text, failed := answer(t, session, "list_terminals", map[string]any{}); failed || text != "[]" {
		t.Errorf("list_terminals: %q, %t", text, failed)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "a"}); err == nil {
		t.Error("a tool that is not offered any more is called")
	}
	if got := session.InitializeResult(); !got.Capabilities.Tools.ListChanged || got.Instructions[len(got.Instructions)-len("Extra words."):] != "Extra words." {
		t.Errorf("shown to the model: %+v %q", got.Capabilities.Tools, got.Instructions)
	}
}
