package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// Another door offers the same tools as MCP, with the same descriptions and the same
// answers.
func TestCallsWithoutASession(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-aaaaaa", agenttools.OwnerUser).print("hello\r\n")
	s := toolsOver(f)
	session := connect(t, newServer(t, mcp.Options{Tools: s}), nil)
	listed := must.Get(session.ListTools(t.Context(), nil))(t)
	shown := map[string]agenttools.Tool{}
	for _, tool := range s.Tools() {
		shown[tool.Name] = tool
	}
	if len(shown) != len(listed.Tools) {
		t.Errorf("%d tools, want the %d that sessions are shown", len(shown), len(listed.Tools))
	}
	for _, want := range listed.Tools {
		schema := must.Get(json.Marshal(want.InputSchema))(t)
		got := shown[want.Name]
		var wantSchema, gotSchema any
		unmarshal(t, string(schema), &wantSchema)
		unmarshal(t, string(got.InputSchema), &gotSchema)
		if diff := gocmp.Diff([]any{want.Title, want.Description, wantSchema}, []any{got.Title, got.Description, gotSchema}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Name, diff)
		}
		if got.ReadOnly != want.Annotations.ReadOnlyHint {
			t.Errorf("%s: read only %t", want.Name, got.ReadOnly)
		}
	}
	for _, c := range []struct{ tool, args string }{
		{"list_terminals", ""},
		{"list_terminals", "{}"},
		{"read_terminal", `{"terminalId":"pty-aaaaaa"}`},
		{"read_terminal", `{"terminalId":"pty-none"}`},
		{"read_terminal", `{"terminalId":7}`},
		{"read_terminal", `{"nonsense":7}`},
		{"wait_terminal", `{"terminalId":"pty-aaaaaa","pattern":"("}`},
		{"wait_terminal", `{"terminalId":"pty-aaaaaa","port":80}`},
		{"kill_terminal", `[]`},
	} {
		want, isError := answer(t, session, c.tool, json.RawMessage(cmp.Or(c.args, "{}")))
		r, err := s.Call(t.Context(), c.tool, json.RawMessage(c.args), agenttools.Caller{})
		got, encodeErr := r.Text()
		must.Do(t, encodeErr)
		if isError != (err != nil) || err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%s %s: %s, %v, want %s (error %t)", c.tool, c.args, got, err, want, isError)
		}
	}
	if _, err := s.Call(t.Context(), "rm_rf", nil, agenttools.Caller{}); err == nil || err.Error() != `no such tool: "rm_rf"` {
		t.Errorf("an unknown tool: %v", err)
	}
}

// A call ends when its context ends, and when the set is closed.
func TestACallEnds(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-aaaaaa", agenttools.OwnerUser)
	s := toolsOver(f)
	wait := func(ctx context.Context) error {
		_, err := s.Call(ctx, "wait_terminal", json.RawMessage(`{"terminalId":"pty-aaaaaa","pattern":"never","timeoutMs":600000}`), agenttools.Caller{})
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- wait(ctx) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
	go func() { ended <- wait(t.Context()) }()
	s.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after the set: %v", err)
	}
}
