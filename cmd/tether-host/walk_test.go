package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
)

// walk is what the README tells about remote agents: commands, the agent's server, and its calls.
type walk struct {
	commands []string
	server   []string
	calls    [][2]string // tool and arguments
}

func readWalk(t *testing.T) (w walk) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal([]byte(strings.TrimPrefix(parts[3], "json")), &settings); err != nil {
		t.Fatal(err)
	}
	for _, s := range settings.Servers {
		w.server = append([]string{s.Command}, s.Args...)
	}
	for line := range strings.Lines(strings.TrimSpace(parts[5])) {
		tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		w.calls = append(w.calls, [2]string{tool, strings.TrimSpace(args)})
	}
	return w
}

// stage is a directory with both programs, an npm that plays a dev server, and a home for the daemon.
type stage struct {
	t   *testing.T
	dir string
	env []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the programs with")
	}
	home := testkit.Home(t)
	s := &stage{t: t, dir: t.TempDir()}
	build := exec.Command("go", "build", "-o", s.dir, "tether/cmd/tether", "tether/cmd/tether-host")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	const npm = "#!/bin/sh\necho \"> vite\"\necho \"ready at http://localhost:3000/\"\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(s.dir, "npm"), []byte(npm), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "TETHER_HOME="+home, "TETHER_ALLOW_ROOT=1", "TETHER_LEND_AS_ROOT=true", "NO_COLOR=1", "PATH="+s.dir+":"+os.Getenv("PATH"))
	t.Cleanup(func() { _ = s.command("tether", "stop").Run() })
	return s
}

func (s *stage) command(name string, args ...string) *exec.Cmd {
	if !strings.Contains(name, "/") && strings.HasPrefix(name, "tether") {
		name = filepath.Join(s.dir, name)
	}
	c := exec.Command(name, args...)
	c.Env, c.Dir = s.env, s.dir
	return c
}

// TestRemoteAgentWalk does what the README shows, with a real MCP client.
func TestRemoteAgentWalk(t *testing.T) {
	w := readWalk(t)
	s := newStage(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	here := func(text string) string { return strings.ReplaceAll(text, "127.0.0.1:9187", address) }
	script := "set -e\n"
	for _, line := range w.commands {
		if line == "tether-host &" {
			line = "tether-host --listen " + address + " >host.out 2>host.log & echo $! >host.pid\nuntil grep -q READY host.out; do sleep 0.1; done"
		}
		script += here(line) + "\n"
	}
	shell := s.command("/bin/sh", "-c", script)
	t.Cleanup(func() {
		_ = s.command("/bin/sh", "-c", "kill $(cat host.pid)").Run()
	})
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	args := make([]string, len(w.server)-1)
	for i, arg := range w.server[1:] {
		args[i] = here(arg)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "helper", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: s.command(w.server[0], args...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	id := ""
	var killed sync.WaitGroup
	defer killed.Wait()
	for i, call := range w.calls {
		if i == len(w.calls)-1 { // the server ends while the agent waits
			killed.Go(func() {
				if out, err := s.command("tether", "kill", "dev-server").CombinedOutput(); err != nil {
					t.Errorf("kill: %v\n%s", err, out)
				}
			})
		}
		answer := s.call(session, call, &id)
		want := []string{`"name":"laptop/dev-server"`, `"line":"ready at http://localhost:3000/"`, "vite", `"reason":"exit"`}[i]
		if !strings.Contains(answer, want) {
			t.Fatalf("%v answers %s, want %s in it", call, answer, want)
		}
	}
}

// call makes one of the README's calls. The first finds out which terminal the others are about, which may take the daemon a moment
// to lend.
func (s *stage) call(session *sdk.ClientSession, call [2]string, id *string) (text string) {
	s.t.Helper()
	args := map[string]any{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(call[1], `"ID"`, fmt.Sprintf("%q", *id))), &args); err != nil {
		s.t.Fatalf("%v: %v", call, err)
	}
	testkit.Eventually(s.t, patience, call[0], func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
		defer cancel()
		r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: call[0], Arguments: args})
		if err != nil || r.IsError {
			s.t.Fatalf("%v: %v %+v", call, err, r)
		}
		text = r.Content[0].(*sdk.TextContent).Text
		var all []struct{ ID string }
		if call[0] == "list_terminals" && json.Unmarshal([]byte(text), &all) == nil && len(all) > 0 {
			*id = all[0].ID
		}
		return *id != ""
	})
	return text
}
