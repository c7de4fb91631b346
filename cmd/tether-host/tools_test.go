package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// token writes a new token into a file and returns its name.
func (s *stage) token(name, role string) string {
	s.t.Helper()
	token := must.Get(s.command("tether-host", "token", "create", name, "--role", role, "--tokens", filepath.Join(s.dir, "state", "tokens.json")).Output())(s.t)
	path := filepath.Join(s.dir, name+".token")
	must.Do(s.t, os.WriteFile(path, token, 0o600))
	return path
}

// An agent at the host's door starts a program on a machine whose person says yes, waits
// for it, and sees it as the host's other agents do. An agent of the ordinary role is
// offered nothing of the machine's.
func TestAnAgentRunsSomethingOnAMachine(t *testing.T) {
	s := newStage(t)
	s.do(t, "tether", "daemon", "--background", "--set", "policy.ask_timeout=1h")
	s.signed()
	machine, operator, ordinary := s.token("laptop", "machine"), s.token("helper", "operator"), s.token("bot", "agent")
	_, address := s.host(t, "127.0.0.1:0", "--sessions")
	url := "ws://" + address
	s.do(t, "tether", "pair", "--token-file", machine, "--name", "work", url)
	connect := func(token string) *sdk.ClientSession {
		client := sdk.NewClient(&sdk.Implementation{Name: "helper", Version: "1"}, nil)
		session := must.Get(client.Connect(t.Context(), &sdk.CommandTransport{Command: s.command("tether-host", "mcp", "--url", url, "--token-file", token)}, nil))(t)
		t.Cleanup(func() { session.Close() })
		return session
	}
	session, bot := connect(operator), connect(ordinary)
	offered := func(session *sdk.ClientSession) (names []string) {
		r := must.Get(session.ListTools(t.Context(), nil))(t)
		for _, tool := range r.Tools {
			if strings.Contains(tool.Name, "__") {
				names = append(names, tool.Name)
			}
		}
		return names
	}
	if got := offered(session); len(got) != 0 {
		t.Errorf("before anybody has switched them on, there are the tools %v", got)
	}
	s.do(t, "tether", "host", "tools", "work", "on")
	testkit.Eventually(t, testkit.Patience, "the machine's tools", func() bool { return len(offered(session)) == 5 })
	if got := offered(bot); len(got) != 0 {
		t.Errorf("an agent that only watches is offered %v", got)
	}
	call := func(session *sdk.ClientSession, tool string, args map[string]any) string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
		defer cancel()
		r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil || r.IsError {
			t.Errorf("%s %v: %v, %+v", tool, args, err, r)
			return ""
		}
		return r.Content[0].(*sdk.TextContent).Text
	}
	answer := make(chan string, 1)
	go func() {
		answer <- call(session, "laptop__spawn_background_terminal", map[string]any{"cwd": s.dir, "command": []string{filepath.Join(s.dir, "npm"), "run", "dev"}})
	}()
	s.approve()
	text, rest, _ := strings.Cut(<-answer, "\n")
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if got := call(session, "laptop__wait_terminal", map[string]any{"terminalId": made.ID, "pattern": "ready at", "timeoutMs": 600_000}); !strings.Contains(got, "http://localhost:3000/") {
		t.Errorf("it waited: %s", got)
	}
	_, rest, _ = strings.Cut(rest, "[terminal ")
	there, _, _ := strings.Cut(rest, " at this host")
	if got := call(bot, "wait_terminal", map[string]any{"terminalId": there, "pattern": "ready at http", "since": 0, "timeoutMs": 600_000}); !strings.Contains(got, "localhost:3000") {
		t.Errorf("the program's output at the host: %s", got)
	}
	name := `"name":"laptop/` + filepath.Base(s.dir) + `-dev"` // of npm run dev there
	if got := call(session, "list_terminals", nil); !strings.Contains(got, name) {
		t.Errorf("at the host's door there are %s", got)
	}
	call(session, "laptop__kill_terminal", map[string]any{"terminalId": made.ID})
	s.do(t, "tether", "host", "tools", "work", "off")
	testkit.Eventually(t, testkit.Patience, "their end", func() bool { return len(offered(session)) == 0 })
}

// approve says yes to the one question that waits.
func (s *stage) approve() {
	s.t.Helper()
	testkit.Eventually(s.t, testkit.Patience, "a question", func() bool {
		var all struct{ Approvals []struct{ ID string } }
		out, err := s.command("tether", "approvals", "--json").Output()
		if err != nil || json.Unmarshal(out, &all) != nil || len(all.Approvals) != 1 {
			return false
		}
		s.do(s.t, "tether", "approve", all.Approvals[0].ID)
		return true
	})
}
