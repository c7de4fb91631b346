package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// TestOperatorWalk: an agent with a token for it starts a program on a machine that has
// switched that on, after the person there has approved, and reads its terminal at the
// host. An agent of the ordinary role is offered nothing.
func TestOperatorWalk(t *testing.T) {
	s := newStage(t)
	s.signed()
	script := `set -e
mkdir -m 700 keys
tether-host --listen 127.0.0.1:0 --sessions --tokens keys/tokens.json --token-file own.token >host.out 2>host.log & echo $! >host.pid
until grep -q READY host.out; do sleep 0.1; done
url=$(sed -n 's/^READY //p' host.out)
umask 077
tether-host token create laptop --role machine --tokens keys/tokens.json >laptop.token
tether-host token create op --role operator --tokens keys/tokens.json >op.token
tether-host token create bot --role agent --tokens keys/tokens.json >bot.token
tether pair --name lab --token-file laptop.token $url
tether host tools lab on
`
	t.Cleanup(func() { _ = s.command("/bin/sh", "-c", "kill $(cat host.pid)").Run() })
	if out, err := s.command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ready := must.Get(os.ReadFile(filepath.Join(s.dir, "host.out")))(t)
	url := strings.Fields(string(ready))[1]
	connect := func(token string) *sdk.ClientSession {
		client := sdk.NewClient(&sdk.Implementation{Name: "helper", Version: "1"}, nil)
		session := must.Get(client.Connect(t.Context(), &sdk.CommandTransport{Command: s.command("tether-host", "mcp", "--url", url, "--token-file", token)}, nil))(t)
		t.Cleanup(func() { session.Close() })
		return session
	}
	offered := func(session *sdk.ClientSession) (names []string) {
		tools := must.Get(session.ListTools(t.Context(), nil))(t)
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	op, bot := connect("op.token"), connect("bot.token")
	const spawn = "laptop__spawn_background_terminal"
	testkit.Eventually(t, testkit.Patience, "the machine offers its tools", func() bool { return slices.Contains(offered(op), spawn) })
	if names := offered(bot); len(names) != 4 {
		t.Errorf("an agent that only watches is offered %v", names)
	}
	answered := make(chan string, 1)
	go func() {
		r, err := op.CallTool(t.Context(), &sdk.CallToolParams{Name: spawn, Arguments: map[string]any{"cwd": s.dir, "command": []string{filepath.Join(s.dir, "npm"), "run", "dev"}}})
		if err != nil {
			t.Error(err)
			answered <- ""
			return
		}
		answered <- r.Content[0].(*sdk.TextContent).Text
	}()
	question := regexp.MustCompile(`"id":\s*"(q-[a-z0-9]+)"`)
	id := ""
	testkit.Eventually(t, testkit.Patience, "the person is asked", func() bool {
		out, err := s.command("tether", "approvals", "--json").Output()
		if m := question.FindSubmatch(out); err == nil && m != nil {
			id = string(m[1])
		}
		return id != ""
	})
	if out, err := s.command("tether", "approve", id).CombinedOutput(); err != nil {
		t.Fatalf("approve: %v\n%s", err, out)
	}
	terminal := regexp.MustCompile(`\[terminal (pty-\w+) at this host`).FindStringSubmatch(<-answered)
	if terminal == nil {
		t.Fatal("no terminal is named in the answer")
	}
	r := must.Get(bot.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_terminal",
		Arguments: map[string]any{"terminalId": terminal[1], "pattern": "ready at http", "since": 0, "timeoutMs": 600_000}}))(t)
	if text := r.Content[0].(*sdk.TextContent).Text; r.IsError || !strings.Contains(text, "localhost:3000") {
		t.Errorf("the program's output at the host: %s", text)
	}
}
