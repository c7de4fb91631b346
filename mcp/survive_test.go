package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/mcp"
)

// broken panics when a terminal is opened.
type broken struct{ *fakeTerminals }

func (broken) Open(string) (agenttools.Terminal, error) { panic("canary: what a program printed") }

// If a call panics, only that call fails: its session continues, and the model gets no
// details.
func TestABugIsSurvived(t *testing.T) {
	var tool, stack string
	f := &fakeTerminals{}
	f.add("pty-1", agenttools.OwnerAgent)
	extra := func() []mcp.Extra {
		return []mcp.Extra{{Tool: agenttools.Tool{Name: "extra"}, Call: func(context.Context, json.RawMessage) (string, error) { panic("canary") }}}
	}
	tools := agenttools.New(agenttools.Options{Terminals: broken{f}, Bug: func(name string, at []byte) { tool, stack = name, string(at) }})
	s := newServer(t, mcp.Options{Tools: tools, Extra: extra})
	session := connect(t, s, nil)
	args := map[string]any{"terminalId": "pty-1"}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "read_terminal", Arguments: args})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "a bug in tether") || strings.Contains(r.Content[0].(*sdk.TextContent).Text, "canary") {
		t.Errorf("%+v, %v; want a failure of the tool", r, err)
	}
	if tool != "read_terminal" || !strings.Contains(stack, "broken.Open") {
		t.Errorf("told of %q at %s", tool, stack)
	}
	if r, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}); err != nil || r.IsError {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
	if _, err := tools.Call(t.Context(), "read_terminal", []byte(`{"terminalId": "pty-1"}`), agenttools.Caller{}); err == nil || !strings.Contains(err.Error(), "a bug in tether") {
		t.Errorf("called without a session: %v", err)
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "terminal:///pty-1"}); err == nil || !strings.Contains(err.Error(), "a bug in tether") || tool != "resources/read" {
		t.Errorf("read as a resource: %v, told of %q", err, tool)
	}
	if text, failed := answer(t, session, "extra", map[string]any{}); !failed || !strings.Contains(text, "a bug in tether") || tool != "extra" {
		t.Errorf("another's tool: %q, %t, told of %q", text, failed, tool)
	}
}
