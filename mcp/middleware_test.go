package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// modern is the metadata of a request in the protocol without sessions.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// bare calls a method in each version of the protocol, over lines and over HTTP. It calls
// check with each answer, as it was sent.
func bare(t *testing.T, s *mcp.Server, method, params string, check func(t *testing.T, answer string)) {
	t.Helper()
	request := func(params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s}}`, method, params)
	}
	t.Run("lines", func(t *testing.T) {
		c := raw(t, s)
		c.send(request(params))
		line := must.Get(c.in.ReadString('\n'))(t)
		check(t, line)
	})
	url := listen(t, s).URL
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			_, header, _ := post(t, url, strings.Replace(initialize, "2025-11-25", version, 1))
			_, _, text := post(t, url, request(params), "Mcp-Session-Id", header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", version)
			check(t, text)
		})
	}
	t.Run("2026-07-28", func(t *testing.T) {
		with := modern
		if params != "" {
			with += "," + params
		}
		var name struct{ URI, Name string }
		must.Do(t, json.Unmarshal([]byte("{"+params+"}"), &name))
		_, _, text := post(t, url, request(with), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name.URI+name.Name)
		check(t, text)
	})
}

// Methods of undeclared capabilities do not exist, in any version of the protocol.
func TestUndeclaredMethods(t *testing.T) {
	for method, params := range map[string]string{"prompts/list": "", "prompts/get": `"name":"x"`, "logging/setLevel": `"level":"info"`} {
		t.Run(method, func(t *testing.T) {
			bare(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}), method, params, func(t *testing.T, answer string) {
				if !strings.Contains(answer, `"code":-32601`) {
					t.Errorf("answered %s", answer)
				}
			})
		})
	}
}

// The resource of a terminal that has printed nothing has an empty text, and does not
// lack the text.
func TestEmptyResource(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerUser)
	bare(t, newServer(t, mcp.Options{Tools: toolsOver(f)}), "resources/read", `"uri":"terminal:///pty-a"`, func(t *testing.T, answer string) {
		for _, want := range []string{`"text":""`, `"uri":"terminal:///pty-a"`, `"mimeType":"text/plain"`, `"tether/cursor":0`, `"tether/untrusted":true`} {
			if !strings.Contains(answer, want) {
				t.Errorf("%s is missing in %s", want, answer)
			}
		}
	})
}

// The output is in an answer once: clients that show their model structured content show
// the text where there is none. Tools with long answers tell Claude Code so, because it
// would cut the answers.
func TestLongAnswers(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerUser).print(strings.Repeat("a line of a log\r\n", 10_000))
	session := one(t, f)
	for tool, args := range map[string]m{"read_terminal": {}, "wait_terminal": {"pattern": "log"}} {
		args["terminalId"] = "pty-a"
		r := must.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args}))(t)
		if text := r.Content[0].(*sdk.TextContent).Text; len(text) < 6000 || r.StructuredContent != nil {
			t.Errorf("%s: a text of %d bytes, and structured content: %.100v", tool, len(text), r.StructuredContent)
		}
	}
	tools := must.Get(session.ListTools(t.Context(), nil))(t)
	for _, tool := range tools.Tools {
		want := tool.Name == "read_terminal" || tool.Name == "list_terminals"
		if size, ok := tool.Meta["anthropic/maxResultSizeChars"]; ok != want || ok && size != 500_000.0 {
			t.Errorf("%s has the metadata %v", tool.Name, tool.Meta)
		}
	}
}
