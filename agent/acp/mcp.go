package acp

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
)

// Server says which agents get an MCP server of ours with their sessions.
type Server string

// The choices.
const (
	ServerKnown  Server = "known" // agents that are known to run their commands themselves
	ServerAlways Server = "always"
	ServerNever  Server = "never"
)

// runsItself are agents that run their commands themselves whichever terminals their editor has, by the last part of agentInfo.name in
// lower case. docs/ACP.md lists the observed versions.
var runsItself = map[string]bool{"gemini-cli": true, "opencode": true, "claude-agent-acp": true, "codex-acp": true}

// MCPServer is a server that sessions are given: a member of mcpServers as session/new has it.
type MCPServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"` // an absolute path where the agent runs
	Args    []string `json:"args"`
	Env     []EnvVar `json:"env"`
}

// EnvVar is a variable of a server's environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// meet notes who the agent is, and tells the person of one that will run nothing in our terminals.
func (d *dialogue) meet(agent string) {
	if !runsItself[strings.ToLower(path.Base(agent))] {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.taking {
		return
	}
	text := agent + " runs its commands itself, not in tether's terminals"
	switch {
	case d.server == nil:
	case d.serve == ServerNever:
		text += "; without --mcp=false it gets tether's MCP server"
	default:
		d.given = true
		text += "; it gets tether's MCP server, with which it can"
	}
	d.notice(text)
}

// withServer returns the line of a request that begins a session with our server in it, or nil to let it pass unchanged.
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

// withItem returns a list of servers with one more, nil if it has one of that name or is no list. No list at all is an empty one.
func withItem(list []byte, server *MCPServer) []byte {
	var there []struct{ Name string }
	if list != nil && json.Unmarshal(list, &there) != nil {
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
