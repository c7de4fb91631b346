package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"tether/internal/jsonspan"
)

// Server says which agents get our MCP server in their sessions.
type Server string

// The choices.
const (
	ServerKnown  Server = "known" // the agents in runsItself, and all in version 2 of the protocol
	ServerAlways Server = "always"
	ServerNever  Server = "never"
)

// runsItself are the agents that run their commands themselves and never use the editor's
// terminals. The key is the last path element of agentInfo.name in lower case. The value
// is empty for agents that take MCP servers which are programs from their editor. For
// others it is the agent's name at tether setup agents. docs/ACP.md lists the observed
// versions.
var runsItself = map[string]string{
	"gemini-cli": "", "opencode": "", "claude-agent-acp": "", "codex-acp": "", "qwen-code": "", "kilo": "",
	"copilot": "copilot", // 1.0.102 refuses such servers
	"cline":   "cline",   // 3.0.65 starts none
}

// maxAgentName bounds the agent's name in a notice, in characters.
const maxAgentName = 100

// MCPServer is an MCP server for sessions: an item of mcpServers in session/new.
type MCPServer struct {
	Type    string   `json:"type,omitempty"` // "stdio" in version 2 of the protocol, which wants one; version 1 has none
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

// meet learns from the agent's answer to initialize. It tells the person if the agent
// will run nothing in our terminals.
func (d *dialogue) meet(a agreement) {
	name := cmp.Or(a.AgentInfo.Name, a.Info.Name, "the agent")
	setup, known := runsItself[strings.ToLower(path.Base(name))]
	name = fmt.Sprintf("%.*s", maxAgentName, name)
	newer := isNewer(a.ProtocolVersion)
	takes := setup == ""
	if newer { // it says so itself
		setup, takes = "", a.Capabilities.Session.MCP.Stdio != nil
	}
	d.mu.Lock()
	d.agent, d.taking = name, d.taking && !newer
	itself := newer || !d.theirs && (known || !d.taking)
	d.told = itself
	if d.server != nil && (d.serve == ServerKnown && itself && takes || d.serve == ServerAlways && (takes || !newer)) {
		given := *d.server
		if newer {
			given.Type = "stdio"
		}
		d.given = &given
	}
	d.mu.Unlock()
	if !itself {
		return
	}
	text := name + " runs its commands itself"
	if newer {
		text = name + " speaks version " + string(bytes.TrimSpace(a.ProtocolVersion)) + " of the protocol, in which agents run their commands themselves"
	}
	d.notice(text + ", not in tether's terminals" + d.access(setup, takes)) // without the lock: it may block
}

// access returns the end of a sentence about an agent that runs commands itself: how it
// comes to tether's MCP server.
func (d *dialogue) access(setup string, takes bool) string {
	switch {
	case d.server == nil:
		return ""
	case d.serve == ServerNever:
		return ", and because of --mcp=false it does not get tether's MCP server"
	case setup != "":
		return ", and takes MCP servers from its own configuration only: tether setup agents " + setup + " adds tether's there"
	case !takes && d.serve == ServerAlways:
		return ", and --mcp is refused, because the agent does not offer to start MCP servers (session.mcp.stdio)"
	case !takes:
		return ", and does not offer to start MCP servers (session.mcp.stdio)"
	}
	return ", so it gets tether's MCP server, with which it can use them"
}

// usesTerminals learns that the agent has asked for a terminal.
func (d *dialogue) usesTerminals() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = true
}

// ranItself learns that a tool call that ran a command is complete. It tells the person,
// once, if the agent has never asked for a terminal. A session that is being loaded
// repeats its calls; they are ignored.
func (d *dialogue) ranItself() {
	d.mu.Lock()
	told, text := d.told, d.agent+" has run a command itself, not in tether's terminals"
	for _, p := range d.pending {
		told = told || p.method == "session/load"
	}
	d.told = d.told || !told
	d.mu.Unlock()
	if told {
		return
	}
	if d.server != nil && d.serve == ServerKnown {
		d.notice(text + "; with --mcp it gets tether's MCP server, with which it can use them")
		return
	}
	d.notice(text + d.access("", true))
}

// withServer returns the line of a request that begins a session, with our MCP server
// added, or nil to let the line pass unchanged.
func (d *dialogue) withServer(line []byte, m message) []byte {
	d.mu.Lock()
	given := d.given
	d.mu.Unlock()
	if given == nil || m.method == "session/close" || m.params == nil {
		return nil
	}
	changed := false
	out := withMember(line, "params", func(params []byte) []byte {
		return withMember(params, "mcpServers", func(list []byte) []byte {
			longer := withItem(list, given)
			changed = longer != nil
			return longer
		})
	})
	if !changed {
		return nil
	}
	return append(out, ending(line)...)
}

// withItem returns the list of servers with one more. It returns nil if the list has a
// server of that name, or is not a list. A nil list counts as an empty one.
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
