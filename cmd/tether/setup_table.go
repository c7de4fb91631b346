package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"tether/internal/progentry"
)

// knownAgent is a program that reads its MCP servers from a configuration file of the
// user.
type knownAgent struct {
	id, name string   // id is also the agent's name at tether
	programs []string // names of programs; if one is in the PATH, the agent is installed
	files    []string // possible paths of the documented file, the usual one first; the first that exists counts
	format   progentry.Format
}

// knownAgents returns the known agents, with the files of this user.
func knownAgents() ([]knownAgent, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, &hinted{err, "set it to your home directory"}
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	in := func(variable, otherwise string) string {
		return cmp.Or(os.Getenv(variable), filepath.Join(home, otherwise))
	}
	shared := in("XDG_CONFIG_HOME", ".config")
	kilo := cmp.Or(os.Getenv("KILO_CONFIG_DIR"), filepath.Join(shared, "kilo"))
	servers := progentry.Format{Section: "mcpServers"}
	return []knownAgent{
		{"claude", "Claude Code", []string{"claude"}, []string{filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), home), ".claude.json")},
			progentry.Format{Section: "mcpServers", Style: progentry.Typed}},
		{"codex", "Codex", []string{"codex"}, []string{filepath.Join(in("CODEX_HOME", ".codex"), "config.toml")}, progentry.Format{Section: "mcp_servers", TOML: true}},
		{"gemini", "Gemini CLI", []string{"gemini"}, []string{filepath.Join(in("GEMINI_CLI_HOME", ""), ".gemini", "settings.json")}, servers},
		{"opencode", "OpenCode", []string{"opencode"}, []string{filepath.Join(shared, "opencode", "opencode.json"), filepath.Join(shared, "opencode", "opencode.jsonc")},
			progentry.Format{Section: "mcp", Style: progentry.Local}},
		{"qwen", "Qwen Code", []string{"qwen"}, []string{filepath.Join(in("QWEN_HOME", ".qwen"), "settings.json")}, servers},
		{"copilot", "GitHub Copilot CLI", []string{"copilot"}, []string{filepath.Join(in("COPILOT_HOME", ".copilot"), "mcp-config.json")}, servers},
		{"cline", "Cline", []string{"cline"}, []string{cmp.Or(os.Getenv("CLINE_MCP_SETTINGS_PATH"),
			filepath.Join(cmp.Or(os.Getenv("CLINE_DATA_DIR"), filepath.Join(in("CLINE_DIR", ".cline"), "data")), "settings", "cline_mcp_settings.json"))}, servers},
		{"kilo", "Kilo Code", []string{"kilo", "kilocode"}, []string{filepath.Join(kilo, "kilo.jsonc"), filepath.Join(kilo, "kilo.json")},
			progentry.Format{Section: "mcp", Style: progentry.Local}},
		{"auggie", "Auggie", []string{"auggie"}, []string{filepath.Join(home, ".augment", "settings.json")}, servers},
		{"amp", "Amp", []string{"amp"}, []string{cmp.Or(os.Getenv("AMP_SETTINGS_FILE"), filepath.Join(shared, "amp", "settings.json"))},
			progentry.Format{Section: "amp.mcpServers"}},
		{"qoder", "Qoder CLI", []string{"qodercli"}, []string{filepath.Join(in("QODER_CONFIG_DIR", ".qoder"), "settings.json")}, servers},
		{"droid", "Factory's Droid", []string{"droid"}, []string{filepath.Join(in("FACTORY_HOME_OVERRIDE", ""), ".factory", "mcp.json")}, progentry.Format{Section: "mcpServers", Style: progentry.Typed}},
		{"cursor", "Cursor", []string{"cursor", "cursor-agent"}, []string{filepath.Join(home, ".cursor", "mcp.json")}, servers},
		{"vscode", "VS Code", []string{"code"}, []string{filepath.Join(config, "Code", "User", "mcp.json")}, progentry.Format{Section: "servers", Style: progentry.Typed}},
		{"vscode-remote", "VS Code's tunnels and remote servers", nil, []string{filepath.Join(in("VSCODE_AGENT_FOLDER", ".vscode-server"), "data", "User", "mcp.json")},
			progentry.Format{Section: "servers", Style: progentry.Typed}},
		{"zed", "Zed", []string{"zed", "zeditor"}, []string{filepath.Join(shared, "zed", "settings.json"), filepath.Join(config, "Zed", "settings.json")},
			progentry.Format{Section: "context_servers"}},
		{"kimi", "Kimi Code", []string{"kimi"}, []string{filepath.Join(in("KIMI_CODE_HOME", ".kimi-code"), "mcp.json")}, servers},
	}, nil
}

// file returns the path of the agent's configuration file, which need not exist.
func (k knownAgent) file() string {
	for _, path := range k.files {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	for _, path := range k.files {
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			return path
		}
	}
	return k.files[0]
}

// installed reports whether the agent is installed: its program is in the PATH, or its
// own file or directory exists.
func (k knownAgent) installed(home string) bool {
	if slices.ContainsFunc(k.programs, func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		return true
	}
	return slices.ContainsFunc(k.files, func(path string) bool {
		if dir := filepath.Dir(path); dir != home {
			path = dir
		}
		_, err := os.Stat(path)
		return err == nil
	})
}

// read returns the content of the agent's file, or nothing if the file does not exist.
func (k knownAgent) read() ([]byte, error) { return readIfThere(k.file()) }

// knows reports whether the agent has tether's MCP server.
func (k knownAgent) knows() (bool, error) {
	text, err := k.read()
	if err != nil {
		return false, err
	}
	return k.format.Has(text, "tether", "mcp")
}

// executor returns the name of the program by which agents that run elsewhere use this
// machine, if it reads the agent's file; else "".
func (k knownAgent) executor() string {
	switch k.id {
	case "claude":
		return "Claude Code's remote control"
	case "codex":
		return "Codex's remote-control"
	case "cursor":
		return "Cursor's worker"
	case "vscode-remote":
		return "VS Code's tunnels"
	}
	return ""
}

// agentsHere returns the names of the installed agents: configured for tether, not
// configured for it, and unknown, with the reason.
func agentsHere() (know, lack, broken []string) {
	return byFile(func(k knownAgent) string { return k.name })
}

// executorsHere is agentsHere for the executors of the installed agents.
func executorsHere() (know, lack, broken []string) { return byFile(knownAgent.executor) }

// byFile returns what name says of the installed agents, without those of which it says
// nothing, by what their files have.
func byFile(name func(knownAgent) string) (know, lack, broken []string) {
	all, err := knownAgents()
	if err != nil {
		return nil, nil, nil // without a home directory there are none
	}
	home, _ := os.UserHomeDir() // knownAgents has found it without an error
	for _, k := range all {
		if name(k) == "" || !k.installed(home) {
			continue
		}
		switch knows, err := k.knows(); {
		case err != nil:
			broken = append(broken, name(k)+" ("+k.file()+": "+err.Error()+")")
		case knows:
			know = append(know, name(k))
		default:
			lack = append(lack, name(k))
		}
	}
	return know, lack, broken
}
