package local

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/mcp"
	"tether/platform/proc"
)

// ErrorFor is errorFor.
var ErrorFor = errorFor

// NewestFirst is newestFirst.
var NewestFirst = newestFirst

// DecodeBody is decode for a request with this body.
func DecodeBody(body []byte, into any) error {
	return decode(httptest.NewRequest("POST", "/", bytes.NewReader(body)), into)
}

// Enter is enter: called by a request that was admitted before the server drained.
func (s *Server) Enter() error { return s.enter() }

// Leave ends that.
func (s *Server) Leave() { s.attached.Done() }

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

// FakeSystem has facts about processes that do not exist. Process 75 may not be examined,
// and is privileged.
type FakeSystem struct {
	Holders map[int][]int           // by the number of a terminal, the processes that have its other end open; nil: the system does not tell
	Lines   map[int][]proc.Ancestor // lineages by the number of their first process
}

// system returns these facts as evidence. Programs are installed in /usr and below /opt
// and ~/.local; Electron is in directories named code and Cursor, JetBrains' files are in
// /opt/idea and /opt/goland.
func (f FakeSystem) system() system {
	return system{
		holders: func(of proc.Info, first int) ([]int, error) {
			if f.Holders == nil {
				return nil, errors.ErrUnsupported
			}
			if of.TTY == 4 {
				return nil, proc.ErrNoPty
			}
			return f.Holders[of.TTY], nil
		},
		line:       func(pid int) []proc.Ancestor { return f.Lines[pid] },
		privileged: func(a proc.Ancestor) bool { return a.Pid == 75 },
		installed: func(exe string) bool {
			return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/opt/", "/home/me/.local/", "/Applications/", `C:\`}, func(place string) bool { return strings.HasPrefix(exe, place) })
		},
		has: func(p proc.Ancestor, name string) bool {
			dir := path.Dir(p.Exe)
			if name == "resources/app" {
				return path.Base(dir) == "code" || path.Base(dir) == "Cursor"
			}
			return name == "../product-info.json" && (dir == "/opt/idea/bin" || dir == "/opt/goland/bin")
		},
		own: func(exe string) bool { return path.Dir(exe) == "/work/tether" },
	}
}

// Identify is identify, for a daemon that is process 2.
func (f FakeSystem) Identify(line []proc.Ancestor, terminals []FakeTerminal, agents []AgentRecord, i *Identity) Caller {
	e := evidence{line: line, daemon: 2, agents: agents, lists: i.now(), system: f.system()}
	for _, t := range terminals {
		e.terminals = append(e.terminals, started{id: t.ID, pid: t.Pid, by: t.By, unsigned: t.Unsigned})
	}
	if len(line) > 0 {
		e.lookBeside()
	}
	return identify(e)
}

// AgentAbove is agentAbove, for a daemon that is process 2.
func (f FakeSystem) AgentAbove(line []proc.Ancestor) (AgentRecord, bool) {
	e := evidence{line: line, daemon: 2, system: f.system()}
	return e.agentAbove("x")
}

// KnownAgents are the rows of known_agents.txt: name, programs, directories and an
// argument, "" if none is needed.
func KnownAgents() (rows [][4]string) {
	for _, k := range knownAgents() {
		rows = append(rows, [4]string{k.name, strings.Join(k.programs, " "), strings.Join(k.dirs, " "), k.argument})
	}
	return rows
}

// InOtherTables reports whether a table of programs that are no agents has a name.
func InOtherTables(name string) bool {
	return slices.ContainsFunc([][]string{wrappers, runners, scripted, shells, never, makers, loaders, served, editors}, func(table []string) bool { return oneOf(table, name) })
}

// Routes are the patterns of the served routes.
func (s *Server) Routes() []string { return slices.Sorted(maps.Keys(s.handlers())) }

// PassGone passes on a request whose program has ended.
func (s *Server) PassGone(r *http.Request) {
	s.as(httptest.NewRecorder(), r, nobody(errPeerGone), http.NotFoundHandler())
}

// The bounds of connections.
const (
	MaxAgentConns   = maxAgentConns
	MaxAgentsConns  = maxAgentsConns
	MaxNobodysConns = maxNobodysConns
)

// Guarded is a server's guard around a handler.
func Guarded(h func(*http.Request) error) http.Handler {
	return new(Server).guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(r); err != nil {
			fail(w, errorFor(err))
		}
	}))
}

// MaxPersonConns is how many the person may have where so many files may be open.
func MaxPersonConns(files uint64) int { return newConns(files, nil).person }

// Table returns a listener that accepts connections of l, and the connection that one of
// them wraps.
func Table(l net.Listener) (net.Listener, func(net.Conn) net.Conn) {
	return &listener{Listener: l, table: newConns(0, nil)}, func(c net.Conn) net.Conn { return c.(*conn).Conn }
}

// SayWho replaces how the caller of a connection without a request is found.
func (s *Server) SayWho(who func() term.Actor) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	s.conns.who = func(peer) term.Actor { return who() }
}

// OpenConns returns how many connections are open.
func (s *Server) OpenConns() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return s.conns.fresh.Len() + s.conns.countLocked(func(term.Actor) bool { return true })
}

// BusyConns returns how many of them have a request under way that counts for an actor.
func (s *Server) BusyConns(of term.Actor) int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	n := 0
	for c := range s.conns.of[of] {
		if c.busy {
			n++
		}
	}
	return n
}

// Bounds of user interfaces.
const (
	MaxViewers        = maxViewers
	MaxViewersOfAgent = maxViewersOfAgent
	MaxStreams        = maxStreams
	HistorySize       = historySize
	AckWindow         = ackWindow
)

// PortUsersOf is what an actor is told of ports.
func PortUsersOf(s *Server, actor term.Actor, ports []int) map[int]string {
	return (&agentTerminals{server: s, access: s.opts.Access(actor)}).PortUsers(ports)
}

// UnseenOf is what an actor is told of programs in no terminal.
func UnseenOf(s *Server, actor term.Actor) []agenttools.UnseenPort {
	return (&agentTerminals{server: s, access: s.opts.Access(actor)}).Unseen()
}

// PortsOf are those of the sockets of which an actor is told.
func PortsOf(s *Server, actor term.Actor, held []proc.Held) []localapi.UserPort {
	access := s.opts.Access(actor)
	return s.portsOf(access, look{held: held, dirs: directoriesOf(held, nil)})
}

// For tests of what is told of programs in no terminal.
var (
	ProgramName = programName
	TmuxPane    = tmuxPane
	JobOf       = jobOf
)
