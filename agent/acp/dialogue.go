package acp

import (
	"encoding/json"
	"sync"

	"tether/internal/jsonspan"
)

// Mode says which terminals an agent gets: ours or the editor's.
type Mode string

// The modes.
const (
	Take   Mode = "take"   // ours, even if the editor has terminals
	Auto   Mode = "auto"   // the editor's if the editor has terminals, else ours
	Editor Mode = "editor" // the editor's or none: every line passes unchanged
)

// maxPending bounds the editor's requests whose answers are awaited. maxSessions bounds
// the sessions whose directory is known. Only a broken peer has more.
const (
	maxPending  = 1000
	maxSessions = 10_000
)

// dialogue holds what the proxy has learned from the messages of both sides. It is safe
// for concurrent use.
type dialogue struct {
	// Set at construction.
	mode   Mode
	notice func(string)
	server *MCPServer
	serve  Server

	mu       sync.Mutex
	taking   bool       // the proxy serves the agent's terminal/* requests
	theirs   bool       // the agent uses the editor's terminals, if it uses any
	agent    string     // the agent's name, for notices
	given    *MCPServer // the server that sessions get; nil for none
	told     bool       // the person knows that the agent runs commands itself, or it does not
	rich     bool       // the editor shows terminals that we run, see screen
	pending  map[string]pending
	sessions map[string]string // session → its directory
}

// pending is a request of the editor that the agent has not answered.
type pending struct {
	method  string
	session string
	cwd     string
}

func newDialogue(o Options) *dialogue {
	return &dialogue{mode: o.Mode, notice: o.Notice, server: o.MCP, serve: o.Serve, agent: "the agent", pending: map[string]pending{}, sessions: map[string]string{}}
}

// awaits reports whether a request of the editor is unanswered.
func (d *dialogue) awaits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pending) > 0
}

// state reports whether the proxy serves the agent's terminals, and whether the editor
// shows them as terminals.
func (d *dialogue) state() (taking, rich bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.taking, d.rich
}

// cwd returns the directory of a session, or "" if it is not known.
func (d *dialogue) cwd(session string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[session]
}

// offer is the part of InitializeRequest that matters here.
type offer struct {
	ProtocolVersion    json.RawMessage `json:"protocolVersion"`
	ClientCapabilities *struct {
		Terminal json.RawMessage `json:"terminal"`
		Meta     *struct {
			TerminalOutput json.RawMessage `json:"terminal_output"`
		} `json:"_meta"`
	} `json:"clientCapabilities"`
}

// agreement is the part of InitializeResponse that matters here, of versions 1 and 2.
type agreement struct {
	ProtocolVersion json.RawMessage `json:"protocolVersion"`
	AgentInfo       struct {
		Name string `json:"name"`
	} `json:"agentInfo"` // version 1
	Info struct {
		Name string `json:"name"`
	} `json:"info"` // version 2
	Capabilities struct {
		Session struct {
			MCP struct {
				Stdio *struct{} `json:"stdio"`
			} `json:"mcp"`
		} `json:"session"`
	} `json:"capabilities"` // version 2
}

// initialize decides whether the proxy serves the agent's terminals. It returns the
// changed line that offers terminals to the agent, or nil to let the line pass unchanged.
// An editor that speaks version 2 or later and sends no clientCapabilities for version 1
// cannot offer terminals, so its line passes unchanged.
func (d *dialogue) initialize(line []byte, m message) []byte {
	var o offer
	understood := jsonspan.Unmarshal(m.params, &o) == nil
	has := understood && o.ClientCapabilities != nil && string(o.ClientCapabilities.Terminal) == "true"
	theirs := d.mode == Auto && has
	take := !theirs && (!isNewer(o.ProtocolVersion) || o.ClientCapabilities != nil)
	d.mu.Lock()
	d.taking, d.theirs, d.given, d.told = take, theirs, nil, false
	d.rich = understood && o.ClientCapabilities != nil && o.ClientCapabilities.Meta != nil &&
		string(o.ClientCapabilities.Meta.TerminalOutput) == "true"
	d.mu.Unlock()
	d.expect(m.id, pending{method: m.method})
	if !take || has {
		return nil
	}
	return append(withMember(line, "params", func(params []byte) []byte {
		return withMember(params, "clientCapabilities", func(capabilities []byte) []byte {
			return withMember(capabilities, "terminal", set([]byte("true")))
		})
	}), ending(line)...)
}

// isNewer reports whether the version is 2 or later. Those versions have no client
// terminals.
func isNewer(version json.RawMessage) bool {
	var n float64
	return jsonspan.Unmarshal(version, &n) == nil && n >= 2
}

// expect remembers a request until its answer arrives.
func (d *dialogue) expect(id []byte, p pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) < maxPending {
		d.pending[idKey(id)] = p
	}
}

// request learns from a request of the editor to the agent.
func (d *dialogue) request(m message) {
	var p struct {
		SessionID string `json:"sessionId"`
		Cwd       string `json:"cwd"`
	}
	if jsonspan.Unmarshal(m.params, &p) != nil {
		return // the agent reports the fault
	}
	if m.method == "session/load" || m.method == "session/resume" {
		d.learn(p.SessionID, p.Cwd) // the agent may run commands before it answers
	}
	d.expect(m.id, pending{m.method, p.SessionID, p.Cwd})
}

// listened are the editor's requests that begin or end a session.
var listened = map[string]bool{"session/new": true, "session/load": true, "session/resume": true, "session/fork": true, "session/close": true}

// learn remembers the directory of a session.
func (d *dialogue) learn(session, cwd string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if session != "" && cwd != "" && len(d.sessions) < maxSessions {
		d.sessions[session] = cwd
	}
}

// answer learns from an answer of the agent. It returns the id of the session that the
// answer closes, or "".
func (d *dialogue) answer(m message) (closed string) {
	d.mu.Lock()
	if len(d.pending) == 0 {
		d.mu.Unlock()
		return ""
	}
	key := idKey(m.id)
	p, ok := d.pending[key]
	delete(d.pending, key)
	d.mu.Unlock()
	if !ok || m.failed {
		return ""
	}
	switch p.method {
	case "initialize":
		var a agreement
		_ = jsonspan.Unmarshal(m.result, &a) // fields that are missing or wrong stay empty
		d.meet(a)
	case "session/new", "session/fork":
		var r struct {
			SessionID string `json:"sessionId"`
		}
		_ = jsonspan.Unmarshal(m.result, &r)
		d.learn(r.SessionID, p.cwd)
	case "session/close":
		return p.session
	}
	return ""
}
