package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// walk is the README's tour of remote agents: commands, the agent's server, and its
// calls.
type walk struct {
	commands []string
	server   []string
	calls    [][2]string // tool and arguments
}

func readWalk(t *testing.T) (w walk) {
	t.Helper()
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, text, _ := strings.Cut(string(readme), "## Watch a dev server from a remote agent")
	text, _, _ = strings.Cut(text, "\n## ")
	parts := strings.Split(text, "```")
	if len(parts) != 7 {
		t.Fatalf("the README's section about remote agents has %d parts, want 7", len(parts))
	}
	for line := range strings.Lines(strings.TrimSpace(strings.TrimPrefix(parts[1], "sh"))) {
		code, _, _ := strings.Cut(line, "  #")
		w.commands = append(w.commands, strings.TrimSpace(code))
	}
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	must.Do(t, json.Unmarshal([]byte(strings.TrimPrefix(parts[3], "json")), &settings))
	for _, s := range settings.Servers {
		w.server = append([]string{s.Command}, s.Args...)
	}
	for line := range strings.Lines(strings.TrimSpace(parts[5])) {
		tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		w.calls = append(w.calls, [2]string{tool, strings.TrimSpace(args)})
	}
	return w
}

// TestRemoteAgentWalk follows the README, with a real MCP client.
func TestRemoteAgentWalk(t *testing.T) {
	w := readWalk(t)
	s := newStage(t)
	const shown = "127.0.0.1:9187" // in the README; here it is one that is free
	script := "set -e\n"
	for _, line := range w.commands {
		if line == "tether-host &" {
			line = "tether-host --listen 127.0.0.1:0 >host.out 2>host.log & echo $! >host.pid\nuntil grep -q READY host.out; do sleep 0.1; done\n" +
				"address=$(sed -n 's/^READY ws:..//p' host.out)"
		}
		line = strings.ReplaceAll(line, "~/", "") // the directory is a temporary one
		script += strings.ReplaceAll(line, shown, "$address") + "\n"
	}
	shell := s.command("/bin/sh", "-c", script)
	t.Cleanup(func() {
		_ = s.command("/bin/sh", "-c", "kill $(cat host.pid)").Run()
	})
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	ready := must.Get(os.ReadFile(filepath.Join(s.dir, "host.out")))(t)
	address := strings.TrimPrefix(strings.Fields(string(ready))[1], "ws://")
	args := make([]string, len(w.server)-1)
	for i, arg := range w.server[1:] {
		args[i] = strings.ReplaceAll(strings.ReplaceAll(arg, "/home/me/", ""), shown, address)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "helper", Version: "1"}, nil)
	token := must.Get(os.ReadFile(filepath.Join(s.dir, "helper.token")))(t)
	var sessions []*sdk.ClientSession
	for _, transport := range []sdk.Transport{
		&sdk.CommandTransport{Command: s.command(w.server[0], args...)},
		&sdk.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer(strings.TrimSpace(string(token)))}},
	} {
		session, err := client.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatalf("%T: %v", transport, err)
		}
		defer session.Close()
		sessions = append(sessions, session)
	}
	id := ""
	wants := []string{`"name":"laptop/dev-server"`, `"line":"ready at http://localhost:3000/"`, "vite", `"reason":"exit"`}
	last := len(w.calls) - 1
	for i, call := range w.calls[:last] {
		for n, session := range sessions {
			if answer := s.call(session, call, &id); !strings.Contains(answer, wants[i]) {
				t.Fatalf("%v answers session %d: %s, want %s in it", call, n, answer, wants[i])
			}
		}
	}
	var waits sync.WaitGroup
	for n, session := range sessions { // the server ends while the agents wait
		waits.Go(func() {
			if answer, err := ask(t.Context(), session, w.calls[last], id); err != nil || !strings.Contains(answer, wants[last]) {
				t.Errorf("%v answers session %d: %s, %v; want %s in it", w.calls[last], n, answer, err, wants[last])
			}
		})
	}
	if out, err := s.command("tether", "kill", "dev-server").CombinedOutput(); err != nil {
		t.Errorf("kill: %v\n%s", err, out)
	}
	waits.Wait()
}

// ask makes one of the README's calls, about the terminal with that id.
func ask(ctx context.Context, session *sdk.ClientSession, call [2]string, id string) (text string, err error) {
	args := map[string]any{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(call[1], `"ID"`, fmt.Sprintf("%q", id))), &args); err != nil {
		return "", fmt.Errorf("%v: %w", call, err)
	}
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: call[0], Arguments: args})
	if err != nil {
		return "", fmt.Errorf("%v: %w", call, err)
	}
	text = r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		return "", fmt.Errorf("%v: %s", call, text)
	}
	return text, nil
}

// call makes one of the README's calls. The first finds out the terminal of the others,
// which may take the daemon a moment to lend. A wait that timed out is repeated: those of
// the README end after 30 s.
func (s *stage) call(session *sdk.ClientSession, call [2]string, id *string) (text string) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, call[0], func() bool {
		var err error
		if text, err = ask(s.t.Context(), session, call, *id); err != nil {
			s.t.Fatal(err)
		}
		var all []struct{ ID string }
		if call[0] == "list_terminals" && json.Unmarshal([]byte(text), &all) == nil && len(all) > 0 {
			*id = all[0].ID
		}
		return *id != "" && !strings.Contains(text, `"reason":"timeout"`)
	})
	return text
}
