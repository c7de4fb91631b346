package acp

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"tether/internal/jsonspan"
)

// Server says which agents get our MCP server in their sessions.
type Server string

// The choices.
const (
	ServerKnown  Server = "known" // the agents in runsItself
	ServerAlways Server = "always"
	ServerNever  Server = "never"
)

// runsItself are the agents that run their commands themselves and never use the editor's terminals. The key is the last path element of
// agentInfo.name in lower case. docs/ACP.md lists the observed versions.
var runsItself = map[string]bool{"gemini-cli": true, "opencode": true, "claude-agent-acp": true, "codex-acp": true}

// MCPServer is an MCP server for sessions: an item of mcpServers in session/new.
type MCPServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"` // an absolute path on the machine where the agent runs
	Args    []string `json:"args"`
	Env     []EnvVar `json:"env"`
}

// EnvVar is an environment variable of an MCP server.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// meet learns the agent's name. It tells the person if the agent will run nothing in our terminals.
func (d *dialogue) meet(agent string) {
	if !runsItself[strings.ToLower(path.Base(agent))] {
		return
	}
	text := agent + " runs its commands itself, not in tether's terminals"
	switch {
	case d.server == nil:
	case d.serve == ServerNever:
		text += "; without --mcp=false it gets tether's MCP server"
	default:
		text += "; it gets tether's MCP server, with which it can"
	}
	d.mu.Lock()
	taking := d.taking
	d.given = taking && d.server != nil && d.serve != ServerNever
	d.mu.Unlock()
	if taking {
		d.notice(text) // without the lock: it may block
	}
}

// withServer returns the line of a request that begins a session, with our MCP server added, or nil to let the line pass unchanged.
func (d *dialogue) withServer(line []byte, m message) []byte {
	d.mu.Lock()
	give := d.taking && d.server != nil && (d.given || d.serve == ServerAlways)
	d.mu.Unlock()
	if !give || m.method == "session/close" || m.params == nil {
		return nil
	}
	changed := false
	out := withMember(line, "params", func(params []byte) []byte {
		return withMember(params, "mcpServers", func(list []byte) []byte {
			longer := withItem(list, d.server)
			changed = longer != nil
			return longer
		})
	})
	if !changed {
		return nil
	}
	return append(out, ending(line)...)
}

// withItem returns the list of servers with one more. It returns nil if the list has a server of that name, or is not a list. A nil list
// counts as an empty one.
func withItem(list []byte, server *MCPServer) []byte {
	var there []struct{ Name string }
	if list != nil && jsonspan.Unmarshal(list, &there) != nil {
		return nil
	}
	for _, s := range there {
		if s.Name == server.Name {
			return nil
		}
	}
	item, err := json.Marshal(server)
	if err != nil {
		return nil
	}
	if len(there) == 0 {
		return append(append([]byte{'['}, item...), ']')
	}
	head := bytes.TrimRight(list, " \t\r\n]")
	out := append(append([]byte{}, head...), ',')
	return append(append(out, item...), ']')
}
