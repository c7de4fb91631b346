package local

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"

	"tether/agent/term"
	"tether/mcp"
	"tether/platform/proc"
)

// MaxConns is maxConns.
const MaxConns = maxConns

// ErrorFor is errorFor.
var ErrorFor = errorFor

// NewestFirst is newestFirst.
var NewestFirst = newestFirst

// LastLines is lastLines.
var LastLines = lastLines

// DecodeBody is decode for a request with this body.
func DecodeBody(body []byte, into any) error {
	return decode(httptest.NewRequest("POST", "/", bytes.NewReader(body)), into)
}

// Enter is enter: called by a request that was admitted before the server drained.
func (s *Server) Enter() error { return s.enter() }

// Leave ends that.
func (s *Server) Leave() { s.attached.Done() }

// MaxTCPConns is maxTCPConns.
const MaxTCPConns = maxTCPConns

// ActorOf is the actor of a token; nobody if it is invalid.
func (t *Tokens) ActorOf(token string) term.Actor {
	if g := t.find(token, false); g != nil {
		return g.actor
	}
	return term.Actor{}
}

// CallerUnfound is unfound for who shows this token.
func (t *Tokens) CallerUnfound(token string, foreign bool, err error) Caller {
	return (&tcpClient{foreign: foreign, err: err}).unfound(t.find(token, false))
}

// Patterns are those of all routes.
func Patterns() []string { return slices.Collect(maps.Keys((&Server{}).handlers())) }

// Powers are the patterns of routes that need a sign of a person.
func Powers() []string { return slices.Collect(maps.Keys(powers)) }

// MCPServer is mcpServer.
func (s *Server) MCPServer(actor term.Actor) (*mcp.Server, error) { return s.mcpServer(actor) }

// Leases is leases.
type Leases struct{ leases }

// Expect, Take and Close are its methods.
func (l *Leases) Expect(h term.Handle) { l.expect(h) }
func (l *Leases) Take(actor term.Actor, h term.Handle) (func(), error) {
	return l.take(actor, h)
}
func (l *Leases) Close()                                 { l.close() }
func (l *Leases) Resume(as func(term.Actor) term.Access) { l.resume(as) }

// LeaseGrace is leaseGrace.
const LeaseGrace = leaseGrace

// MaxAgents is maxAgents.
const MaxAgents = maxAgents

// FakeTerminal is a terminal as evidence of who a caller is.
type FakeTerminal struct {
	ID       string
	Pid      int
	By       term.Actor
	Unsigned bool
}

// IdentifyWith is identify, for a daemon that is process 2, where these processes, with these lineages, have the other ends of terminals
// open, by their numbers. Process 75 may not be examined, and is privileged. With nil the system reports nothing.
func IdentifyWith(line []proc.Ancestor, terminals []FakeTerminal, agents []AgentRecord, holders map[int][]int, lines map[int][]proc.Ancestor) Caller {
	e := evidence{line: line, daemon: 2, agents: agents, masters: masters{
		holders: func(of proc.Info, first int) ([]int, error) {
			if holders == nil {
				return nil, errors.ErrUnsupported
			}
			if of.TTY == 4 {
				return nil, proc.ErrNoPty
			}
			return holders[of.TTY], nil
		},
		line:       func(pid int) []proc.Ancestor { return lines[pid] },
		privileged: func(a proc.Ancestor) bool { return a.Pid == 75 },
	}}
	for _, t := range terminals {
		e.terminals = append(e.terminals, started{id: t.ID, pid: t.Pid, by: t.By, unsigned: t.Unsigned})
	}
	return identify(e)
}

// AgentAbove is agentAbove, for a daemon that is process 2.
func AgentAbove(line []proc.Ancestor) (AgentRecord, bool) { return agentAbove(line, 2, "x") }

// Routes are the patterns of the served routes.
func (s *Server) Routes() []string { return slices.Sorted(maps.Keys(s.handlers())) }

// PassGone passes on a request whose program has ended.
func (s *Server) PassGone(r *http.Request) {
	s.as(httptest.NewRecorder(), r, nobody(errPeerGone), http.NotFoundHandler())
}

// Limit is newLimited for one connection.
func Limit(l net.Listener) net.Listener { return newLimited(l, 1) }

// Counted is the connection that one of Limit's counts.
func Counted(c net.Conn) net.Conn { return c.(*counted).Conn }

// Guarded is a server's guard around a handler.
func Guarded(h func(*http.Request) error) http.Handler {
	return new(Server).guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(r); err != nil {
			fail(w, errorFor(err))
		}
	}))
}
