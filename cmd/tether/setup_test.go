package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// agentHome is a home directory in which agents have the given files; names are below it.
func agentHome(t *testing.T, files map[string]string) string {
	t.Helper()
	newHome(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "KIMI_CODE_HOME", "QWEN_HOME", "COPILOT_HOME",
		"CLINE_DIR", "CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH", "KILO_CONFIG_DIR", "AMP_SETTINGS_FILE", "QODER_CONFIG_DIR", "FACTORY_HOME_OVERRIDE"} {
		t.Setenv(name, "")
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o640))
	}
	return home
}

// All agents get tether into their files, which keep the rest; asked for nothing, they
// get nothing; and one command takes it out again.
func TestSetupAgents(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	files := map[string]string{
		".claude.json":                                 "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}",
		".codex/config.toml":                           "# mine\nmodel = \"x\" # fast\n",
		".gemini/settings.json":                        "{\n  // a comment\n  \"theme\": \"x\",\n}\n",
		".config/opencode/opencode.json":               "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
		".qwen/settings.json":                          "{\n  \"$version\": 4\n}",
		".copilot/mcp-config.json":                     "{\n  \"mcpServers\": {\n    \"x\": {\n      \"tools\": [\"*\"],\n      \"type\": \"local\",\n      \"command\": \"x\"\n    }\n  }\n}",
		".config/kilo/kilo.json":                       "{\n  \"model\": \"m\"\n}\n",
		".cline/data/settings/cline_mcp_settings.json": "{\n  \"mcpServers\": {\n    \"x\": {\n      \"transport\": {\n        \"type\": \"stdio\",\n        \"command\": \"x\"\n      }\n    }\n  }\n}",
		".augment/settings.json":                       "{\n  \"theme\": \"dark\"\n}\n",
		".qoder/settings.json":                         "{\n  \"theme\": \"dark\"\n}\n",
		".factory/mcp.json":                            "{\n  \"mcpServers\": {\n    \"x\": {\n      \"type\": \"stdio\",\n      \"command\": \"x\",\n      \"disabled\": false\n    }\n  }\n}",
		".config/amp/settings.json":                    "{\n  // mine\n  \"amp.showCosts\": true\n}\n",
		".cursor/mcp.json":                             "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}\n",
		".config/zed/settings.json":                    "// Zed\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n  },\n}\n",
		".config/Code/User/mcp.json":                   "{}\n",
		".kimi-code/mcp.json":                          "{ not JSON",
	}
	home := agentHome(t, files)
	real := filepath.Join(home, "dotfiles.toml")
	must.Do(t, os.Rename(filepath.Join(home, ".codex/config.toml"), real))
	must.Do(t, os.Symlink(real, filepath.Join(home, ".codex/config.toml")))
	content := func(name string) string {
		t.Helper()
		text := must.Get(os.ReadFile(filepath.Join(home, name)))(t)
		return string(text)
	}
	same := func(when string) {
		t.Helper()
		for name, text := range files {
			if got := content(name); got != text {
				t.Errorf("%s %s is %q, was %q", when, name, got, text)
			}
		}
	}
	out, status := command(t, "setup", "agents")
	if status != 2 || strings.Count(out, `"tether": {`) != 14 || !strings.Contains(out, "+ [mcp_servers.tether]") {
		t.Errorf("without a word from anybody: status %d\n%s", status, out)
	}
	same("unasked")
	if out, status = command(t, "setup", "agents", "--yes"); status != 0 || strings.Count(out, ": written") != 15 || !strings.Contains(out, "restart the agents; they see what you start with: tether run -- CMD") {
		t.Errorf("status %d\n%s", status, out)
	}
	for name, text := range files {
		got := content(name)
		if knows := strings.Contains(got, `"mcp"`); knows == (name == ".kimi-code/mcp.json") {
			t.Errorf("%s is %s", name, got)
		}
		if info, err := os.Stat(filepath.Join(home, name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
		for line := range strings.Lines(text) {
			if line = strings.Trim(line, "{}, \n\t"); line != "" && !strings.Contains(got, line) {
				t.Errorf("%s has lost %q: %s", name, line, got)
			}
		}
	}
	if to, err := os.Readlink(filepath.Join(home, ".codex/config.toml")); err != nil || to != real {
		t.Errorf("the link leads to %s, %v", to, err)
	}
	if out, status = command(t, "setup", "agents", "codex", "zed"); status != 0 || strings.Count(out, "already configured") != 2 || !strings.Contains(out, "types into a pane of your tmux") {
		t.Errorf("again: status %d\n%s", status, out)
	}
	if out, _ = command(t, "doctor"); !strings.Contains(out, "configured for tether: Claude Code, Codex, Gemini CLI, OpenCode, Qwen Code, GitHub Copilot CLI, Cline, Kilo Code, Auggie, Amp, Qoder CLI, Factory's Droid, Cursor, VS Code, Zed") ||
		!strings.Contains(out, "unknown: Kimi Code") {
		t.Errorf("doctor says\n%s", out)
	}
	if out, status = command(t, "setup", "agents", "--undo", "-y"); status != 0 || strings.Count(out, ": written") != 15 || strings.Contains(out, "tmux") {
		t.Errorf("taken back: status %d\n%s", status, out)
	}
	for _, name := range []string{".claude.json", ".config/zed/settings.json", ".config/Code/User/mcp.json"} { // an empty section, and an empty file, count as none
		delete(files, name)
	}
	same("taken back")
	if _, err := os.Stat(filepath.Join(home, ".config/Code/User/mcp.json")); !os.IsNotExist(err) {
		t.Errorf("an empty file stays: %v", err)
	}
	if _, status = command(t, "setup", "agents", "nobody"); status != 2 {
		t.Errorf("an agent that there is not: status %d", status)
	}
}

// The settings of terminal programs are shown before they are written, and one command
// takes them back.
func TestSetupTerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	const conf = "font_size 12\n"
	home := agentHome(t, map[string]string{".config/kitty/kitty.conf": conf, ".config/zed/settings.json": "{ not JSON"})
	t.Setenv("KITTY_CONFIG_DIRECTORY", "")
	file := filepath.Join(home, ".config/kitty/kitty.conf")
	names := []string{"setup", "terminal", "kitty", "zed"}
	out, status := command(t, names...)
	if got := must.Get(os.ReadFile(file))(t); status != 2 || string(got) != conf || !strings.Contains(out, "+ shell ") || !strings.Contains(out, "kitty has no profiles") {
		t.Errorf("unasked: status %d, %q\n%s", status, got, out)
	}
	out, status = command(t, append(names, "--yes")...)
	if got := must.Get(os.ReadFile(file))(t); status != 0 || !strings.Contains(string(got), "shell --window\n") || strings.Count(out, ": written") != 1 {
		t.Errorf("status %d, %q\n%s", status, got, out)
	}
	out, status = command(t, append(names, "--undo", "--yes")...)
	if got := must.Get(os.ReadFile(file))(t); status != 0 || string(got) != conf {
		t.Errorf("taken back: status %d, %q\n%s", status, got, out)
	}
	if _, status := command(t, "setup", "terminal", "nobody"); status != 2 {
		t.Errorf("a program that there is not: status %d", status)
	}
}

// The files that executors of agents elsewhere read are written on request, those of VS
// Code's remote servers as soon as one has run here. doctor says which of them lead to
// tether.
func TestSetupForAgentsElsewhere(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := agentHome(t, map[string]string{".vscode-server/data/User/settings.json": "{}", ".codex/auth.json": "{}", ".cursor/mcp.json": "{}"})
	t.Setenv("VSCODE_AGENT_FOLDER", "")
	t.Setenv("PATH", filepath.Dir(tetherProgram(t))+":/usr/bin:/bin")
	row := func() string {
		out, _ := command(t, "doctor")
		for line := range strings.Lines(out) {
			if strings.Contains(line, "agents elsewhere") {
				return line
			}
		}
		return out
	}
	if got := row(); !strings.Contains(got, "not configured for tether (tether setup agents does it): Codex's remote-control, Cursor's worker, VS Code's tunnels;") || !strings.Contains(got, "codex exec-server") {
		t.Errorf("before: %s", got)
	}
	if out, status := command(t, "setup", "agents", "codex", "vscode-remote", "--yes"); status != 0 || strings.Count(out, ": written") != 2 {
		t.Fatalf("status %d: %s", status, out)
	}
	text, err := os.ReadFile(filepath.Join(home, ".vscode-server/data/User/mcp.json"))
	if err != nil || !strings.Contains(string(text), `"servers"`) || !strings.Contains(string(text), `"vscode-remote"`) {
		t.Errorf("%s, %v", text, err)
	}
	if got := row(); !strings.Contains(got, "configured for tether: Codex's remote-control, VS Code's tunnels; not configured") || !strings.Contains(got, "Cursor's worker") {
		t.Errorf("after: %s", got)
	}
}

// tetherProgram is the program under test.
func tetherProgram(t *testing.T) string {
	t.Helper()
	return must.Get(exec.LookPath("tether"))(t)
}

// The real programs find tether in their configuration, and it works for those that try.
func TestRealAgentsKnowTether(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for agent, c := range map[string]struct {
		args []string
		want string
	}{
		"claude":   {[]string{"mcp", "list"}, "Connected"},
		"codex":    {[]string{"mcp", "list"}, "mcp --as codex"},
		"gemini":   {[]string{"mcp", "list"}, "mcp --as gemini"},
		"opencode": {[]string{"mcp", "list"}, "connected"},
		"qwen":     {[]string{"mcp", "list"}, "Connected"},
		"copilot":  {[]string{"mcp", "get", "tether"}, "mcp --as copilot"},
	} {
		t.Run(agent, func(t *testing.T) {
			argv := append(agentProgram(t, agent), c.args...)
			home := agentHome(t, nil)
			if out, status := command(t, "setup", "agents", agent, "--yes"); status != 0 {
				t.Fatalf("status %d: %s", status, out)
			}
			list := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			list.Dir = home
			out, err := list.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "tether") || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
