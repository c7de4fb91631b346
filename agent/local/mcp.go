package local

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agenttools"
	"tether/mcp"
)

const (
	// maxAgents bounds the agents that are served at a time.
	maxAgents = 256
)

func (o *Options) agentDefaults() {
	if o.Policy == nil {
		o.Policy, _ = policy.New(policy.Options{}) // cannot fail without files
	}
}

// mcpServer returns the MCP server for an agent, and makes it at the first call.
func (s *Server) mcpServer(actor term.Actor) (*mcp.Server, error) {
	if actor == term.User {
		actor = term.Agent(localapi.DefaultAgent)
	}
	if actor.Role != term.RoleAgent {
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s is not an agent", actor)}
	}
	m, err := s.agents.Of(actor.Name, func() *mcp.Server {
		terminals := &agentTerminals{server: s, access: s.opts.Access(actor), door: policy.DoorMCP}
		tools := agenttools.New(agenttools.Options{Terminals: terminals, Machine: s.opts.Machine, Loopback: true, Bug: s.toolBug, Matchers: s.opts.Matchers})
		return mcp.New(mcp.Options{Tools: tools, Events: s.newEvents(terminals, terminals.access, tools.Matching()), Version: s.opts.Version})
	})
	switch {
	case errors.Is(err, mcp.ErrTooManyAgents):
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%d agents are connected, the maximum", maxAgents)}
	case err != nil:
		return nil, term.ErrClosed
	}
	return m, nil
}

// mcpHTTP serves MCP over streamable HTTP.
func (s *Server) mcpHTTP(w http.ResponseWriter, r *http.Request) error {
	m, err := s.mcpServer(ActorFrom(r.Context()))
	if err != nil {
		return err
	}
	m.ServeHTTP(w, r)
	return nil
}

// mcpLines turns the connection into an MCP session of lines, which tether mcp passes on
// between its client and the daemon.
func (s *Server) mcpLines(w http.ResponseWriter, r *http.Request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), localapi.MCPProtocol) {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "this path is for Upgrade: " + localapi.MCPProtocol, Hint: "use tether mcp, or POST /mcp for streamable HTTP"}
	}
	m, err := s.mcpServer(ActorFrom(r.Context()))
	if err != nil {
		return err
	}
	s.recordAgent(r)
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	lines := &lineStream{conn: conn, buffered: rw.Reader, timeout: s.opts.WriteTimeout}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil // gone
	}
	const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + localapi.MCPProtocol + "\r\n\r\n"
	if _, err := lines.Write([]byte(answer)); err == nil {
		if err := m.Serve(s.draining, lines); err != nil {
			s.log.Debug().Err(err).Msg("mcp session")
		}
	}
	return nil
}

// recordAgent records the process that is the agent and has started tether mcp.
func (s *Server) recordAgent(r *http.Request) {
	at, ok := r.Context().Value(connKey{}).(peer)
	if c := callerFrom(r); !ok || overTCP(r) || at.err != nil || c.Actor.Role == term.RoleAgent && !c.renames {
		return // it has a name
	}
	principal := localapi.DefaultAgent
	if a := ActorFrom(r.Context()); a.Role == term.RoleAgent {
		principal = a.Name
	}
	e := s.evidence(at)
	if record, ok := e.agentAbove(principal); ok {
		if err := s.opts.Agents.Record(record); err != nil {
			s.log.Warn().Err(err).Msg("record an agent")
		}
	}
}

// lineStream is a connection that was taken over from HTTP. A client that does not read
// for timeout is disconnected.
type lineStream struct {
	conn     net.Conn
	buffered *bufio.Reader // has bytes that arrived after the request
	timeout  time.Duration
}

func (l *lineStream) Read(p []byte) (int, error) { return l.buffered.Read(p) }

func (l *lineStream) Write(p []byte) (int, error) {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return 0, err
	}
	return l.conn.Write(p)
}

func (l *lineStream) Close() error { return l.conn.Close() }

// toolBug logs a panic in a call of a tool.
func (s *Server) toolBug(tool string, stack []byte) {
	s.log.Error().Str("tool", tool).Bytes("stack", stack).Msg("a call of a tool ran into a bug")
}

// ToolsAt returns the tools that agents here have, for an agent that works in a session
// of a paired host. The same policy applies. Terminals that it starts are lent to the
// host at once, it sees only terminals that are lent there, and all its output is
// redacted. The tools give no access to this machine's loopback interface. The caller
// must Close the set, which ends its waiting calls; the calls also end with this server.
// named is the host's name for the agent, for people to read.
func (s *Server) ToolsAt(host, session, named string) *agenttools.Set {
	access := s.opts.Access(term.AgentAt(host, session))
	terminals := &agentTerminals{server: s, access: access, door: policy.DoorAHP, host: host, named: named}
	return agenttools.New(agenttools.Options{Terminals: terminals, Machine: s.opts.Machine, Bug: s.toolBug, Matchers: s.opts.Matchers})
}
