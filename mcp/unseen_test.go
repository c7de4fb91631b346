package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// clientViews is what clients show of an answer, as docs/MCP.md has it.
var clientViews = map[string]func(r *sdk.CallToolResult) string{
	"claude-code":                        func(r *sdk.CallToolResult) string { return headTail(structured(r), 500_000, 2000, 0) },
	"codex-mcp-client":                   func(r *sdk.CallToolResult) string { return headTail(structured(r), 12_000, 6000, 6000) },
	"gemini-cli-mcp-client":              func(r *sdk.CallToolResult) string { return headTail(texts(r), 40_000, 8000, 32_000) },
	"opencode":                           func(r *sdk.CallToolResult) string { return headTail(texts(r), 50<<10, 2000, 0) },
	"qwen-cli-mcp-client-t":              func(r *sdk.CallToolResult) string { return headTail(texts(r)+structured(r), 26_000, 2000, 0) },
	"copilot-cli":                        func(r *sdk.CallToolResult) string { return headTail(texts(r)+structured(r), 18_000, 500, 0) },
	"@cline/core":                        func(r *sdk.CallToolResult) string { return headTail(whole(r), 8000, 4000, 4000) },
	"kimi-code":                          func(r *sdk.CallToolResult) string { return headTail(texts(r)+structured(r), 48_000, 2000, 0) },
	"continue-cli-client":                func(r *sdk.CallToolResult) string { return headTail(texts(r), 100_000, 500, 0) },
	"a client of which nothing is known": func(r *sdk.CallToolResult) string { return headTail(texts(r), 16_000, 500, 0) },
}

func texts(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.(*sdk.TextContent).Text)
	}
	return strings.Join(all, "\n")
}

func structured(r *sdk.CallToolResult) string {
	if r.StructuredContent == nil {
		return texts(r)
	}
	return string(r.StructuredContent.(json.RawMessage))
}

func whole(r *sdk.CallToolResult) string {
	all, _ := json.Marshal(r)
	return strings.ReplaceAll(string(all), `\"`, `\\\"`)
}

// headTail returns a text if it has at most so many characters, else its first and last
// ones.
func headTail(text string, most, head, tail int) string {
	u := utf16.Encode([]rune(text))
	if len(u) <= most {
		return text
	}
	return string(utf16.Decode(u[:head])) + "…" + string(utf16.Decode(u[len(u)-tail:]))
}

// toolsHere are tools of this machine.
func toolsHere(f *fakeTerminals) *agenttools.Set {
	return agenttools.New(agenttools.Options{Terminals: f, Loopback: true})
}

func here(t *testing.T, f *fakeTerminals) *sdk.ClientSession {
	return connect(t, newServer(t, mcp.Options{Tools: toolsHere(f)}), nil)
}

// Whatever a client shows of the list of terminals, of a search or of a list of runs
// without a result, ports of programs that tether has not started are in it.
func TestUnseenPortsAreShown(t *testing.T) {
	for client, shown := range clientViews {
		for _, terminals := range []int{0, 3, 40, 2000} {
			t.Run(fmt.Sprintf("%s, %d terminals", client, terminals), func(t *testing.T) {
				f := &fakeTerminals{unseen: []agenttools.UnseenPort{{Port: 9229, Program: "code"}, {Port: 5173, Program: "node vite", Cwd: "/project/app", Since: 1706234567890,
					Branch: "main", Adopt: "tether adopt tmux:%3"}}}
				for n := range terminals {
					f.add(fmt.Sprintf("pty-%06d", n), agenttools.OwnerUser)
				}
				session, _ := connectAs(t, newServer(t, mcp.Options{Tools: toolsHere(f)}), sdk.NewClient(&sdk.Implementation{Name: client, Version: "1"}, nil))
				r := must.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}))(t)
				direct := toolsHere(f) // the SDK's client keeps no order of fields
				r.StructuredContent = json.RawMessage(must.Get(json.Marshal(must.Get(direct.Call(t.Context(), "list_terminals", nil, agenttools.Caller{}))(t).Structured))(t))
				direct.Close()
				text := shown(r)
				for _, part := range []string{"5173", "node vite", "/project/app", agenttools.UnseenNotice} {
					if !strings.Contains(text, part) {
						t.Errorf("the model is not shown %q: %.600s", part, text)
					}
				}
				if list := r.Content[0].(*sdk.TextContent).Text; terminals < 4 && !strings.HasPrefix(list, "[") {
					t.Errorf("the first text is no list of terminals: %.300s", list)
				}
			})
		}
	}
}

// There are never more bytes of them than every client shows.
func TestUnseenPortsAreBounded(t *testing.T) {
	f := &fakeTerminals{}
	for port := range 3000 {
		f.unseen = append(f.unseen, agenttools.UnseenPort{Port: 30_000 + port, Program: "a\n\x1b[31m" + strings.Repeat("é", 500)})
	}
	f.unseen = append(f.unseen, agenttools.UnseenPort{Port: 65_000, Program: "node", Cwd: "/" + strings.Repeat("x", 4000), Branch: strings.Repeat("y", 4000)})
	r := must.Get(here(t, f).CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}))(t)
	text := r.Content[1].(*sdk.TextContent).Text
	var u struct{ Unseen agenttools.Unseen }
	unmarshal(t, text, &u)
	if len(text) > 1600 || len(u.Unseen.Ports)+u.Unseen.More != 3001 || u.Unseen.Ports[0].Port != 65_000 || u.Unseen.Ports[1].Port != 30_000 || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// A list without them is as it was, and a principal of another machine is never asked.
func TestNoUnseenPorts(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerUser)
	if r := must.Get(here(t, f).CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}))(t); len(r.Content) != 1 || strings.Contains(whole(r), "unseen") {
		t.Errorf("%s", whole(r))
	}
	f.unseen = []agenttools.UnseenPort{{Port: 5173}}
	far := agenttools.New(agenttools.Options{Terminals: f})
	defer far.Close()
	got := must.Get(far.Call(t.Context(), "list_terminals", nil, agenttools.Caller{}))(t)
	if got.Aside != nil || strings.Contains(far.Tools()[0].Description, "unseen") {
		t.Errorf("%+v", got)
	}
}
