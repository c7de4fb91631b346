package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
)

// FuzzRead reads any output in any pieces. The text must be safe and within its bound,
// and the cursor must reach the end.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a\r\nb\r\n", "\x1b[31mred\x1b[0m\r\n", "10%\r20%\r\n", "\x1b]0;x", "世界\xe4\xb8", "\x1b[?1049hx\x1b[2J", strings.Repeat("x", 300)} {
		f.Add([]byte(s), uint16(64), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, bound uint16, piece uint8) {
		terminals := &fakeTerminals{}
		x := terminals.add("pty-a", agenttools.OwnerUser)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			x.print(string(rest[:n]))
			rest = rest[n:]
		}
		session := one(t, terminals)
		limit := int(bound) + 1
		safe := func(text string) {
			t.Helper()
			if len(text) > limit {
				t.Fatalf("%d bytes, at most %d were asked for", len(text), limit)
			}
			for _, r := range text {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
					t.Fatalf("%q holds %U", text, r)
				}
			}
		}
		safe(read(t, session, m{"terminalId": "pty-a", "maxBytes": limit}).History)
		safe(read(t, session, m{"terminalId": "pty-a", "maxBytes": limit, "format": "screen"}).History)
		safe(read(t, session, m{"terminalId": "pty-a", "maxBytes": limit, "grep": ".", "tail": 3}).History)
		cursor := int64(0)
		for pages := 0; ; pages++ {
			r := read(t, session, m{"terminalId": "pty-a", "maxBytes": limit, "since": cursor})
			safe(r.History)
			if r.Cursor < cursor || r.Cursor > int64(len(data)) || r.More && r.Cursor == cursor || pages > len(data)+1 {
				t.Fatalf("page %d: cursor %d after %d of %d, more %t", pages, r.Cursor, cursor, len(data), r.More)
			}
			cursor = r.Cursor
			if !r.More {
				return
			}
		}
	})
}

// FuzzArguments calls any tool with any arguments. The tool must answer, and an answer
// that is not an error must be JSON.
func FuzzArguments(f *testing.F) {
	tools := []string{"list_terminals", "read_terminal", "wait_terminal", "spawn_background_terminal", "promote_terminal", "kill_terminal", "write_terminal", "signal_terminal"}
	for _, s := range []string{
		`{}`, `[]`, `null`, `7`, `{"terminalId":"pty-a"}`, `{"terminalId":["pty-a"]}`, `{"terminalId":"pty-a","since":-1}`, `{"cwd":"/","command":["x"]}`,
		`{"terminalId":"pty-a","grep":"(a*)*","maxBytes":1e9}`, `{"terminalId":"pty-a","timeoutMs":0,"idleMs":1}`, `{"terminalId":"pty-a","input":"\u0000"}`,
	} {
		f.Add(uint8(1), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, args []byte) {
		name := tools[int(which)%len(tools)]
		if !json.Valid(args) || name == "wait_terminal" && !strings.Contains(string(args), `"timeoutMs":0`) {
			t.Skip("nothing that can be sent, or that may take long")
		}
		terminals := &fakeTerminals{}
		terminals.add("pty-a", agenttools.OwnerAgent).print("out\r\n")
		r, err := one(t, terminals).CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if !r.IsError && !json.Valid([]byte(text)) || text == "" {
			t.Errorf("%s %s: %q", name, args, text)
		}
	})
}
