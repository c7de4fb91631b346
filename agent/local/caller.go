package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// connKey is the key of the peer of a request at the socket in its context, callerKey
// that of a request's caller.
type (
	connKey   struct{}
	callerKey struct{}
)

// peer is the process at the other end of a connection, as of the time when the
// connection was accepted.
type peer struct {
	proc.ID
	err error // why the process is not known
}

var errPeerGone = errors.New("the program that opened the connection has ended")

// peerOf identifies the peer by number and start time. It reads the start time while the
// kernel's handle proves that the number still belongs to the peer.
func peerOf(conn net.Conn) peer {
	at, err := ipc.PeerOf(conn)
	if err != nil {
		return peer{err: err}
	}
	defer at.Close()
	p, err := proc.Lookup(at.Pid)
	switch {
	case p.Zombie || at.Gone() || errors.Is(err, fs.ErrNotExist): // it may end at any moment
		return peer{err: errPeerGone}
	case err != nil:
		return peer{err: err}
	}
	return peer{ID: p.ID}
}

// caller returns the peer's present identity. It examines the peer before and after, so
// that the result cannot belong to a later process.
func (s *Server) caller(p peer) Caller {
	if p.err != nil {
		return nobody(p.err)
	}
	c := s.identify(p)
	if c.Actor != term.User {
		return c
	}
	if s.settle() {
		c = s.identify(p)
	}
	return c
}

// evidence returns what is known about a process without the terminals.
func (s *Server) evidence(p peer) evidence {
	return evidence{daemon: os.Getpid(), line: s.system.line(p.Pid), agents: s.opts.Agents.List(), lists: s.opts.Identity.now(), system: s.system}
}

func (s *Server) identify(p peer) Caller {
	e := s.evidence(p)
	if now, err := proc.Lookup(p.Pid); err != nil || now.ID != p.ID || now.Zombie || len(e.line) == 0 || e.line[0].ID != p.ID {
		return nobody(errPeerGone)
	}
	e.lookBeside()
	user := s.opts.Access(term.User)
	for _, h := range user.List() {
		e.terminals = append(e.terminals, startedFrom(h.Info()))
	}
	for _, st := range user.Starting() {
		e.terminals = append(e.terminals, started{id: string(st.ID), by: st.Owner, unsigned: st.Unsigned})
	}
	return identify(e)
}

// lookBeside looks up the leaders of the caller's session and process group if it has
// lost the parents that it had there.
func (e *evidence) lookBeside() {
	p := e.line[0]
	if leaderIn(e.line, p.Session) >= 0 {
		return
	}
	if e.leader = e.system.line(p.Session); len(e.leader) > 0 {
		e.beside = append(e.beside, e.leader[0])
	}
	if leader := e.system.line(p.Group); p.Group != p.Session && leaderIn(e.line, p.Group) < 0 && len(leader) > 0 {
		e.beside = append(e.beside, leader[0])
	}
}

// PersonsProcess returns nil if a process counts as the person's; otherwise the error
// says why not. It is for a program that answers in the person's name, such as a desktop.
func (s *Server) PersonsProcess(pid int) error {
	p, err := proc.Lookup(pid)
	if err != nil {
		return err
	}
	if c := s.caller(peer{ID: p.ID}); c.Actor != term.User {
		return fmt.Errorf("it counts as %s: %s", c.Actor, c.Why)
	}
	return nil
}

// settleWithin bounds how long a caller waits for terminals that are being started by
// agents, or without a sign, and whose children are not known yet. Usually that takes
// milliseconds.
const settleWithin = 5 * time.Second

// settle waits for terminals that are being started now, and reports whether there were
// any.
func (s *Server) settle() bool {
	var timeout <-chan time.Time
	waited := false
	for _, st := range s.opts.Access(term.User).Starting() {
		if st.Owner.Role != term.RoleAgent && !st.Unsigned {
			continue
		}
		if timeout == nil {
			timeout = time.After(settleWithin)
		}
		waited = true
		select {
		case <-st.Done:
		case <-timeout:
			return true
		}
	}
	return waited
}

// callerFrom returns the caller that this door has identified.
func callerFrom(r *http.Request) Caller { return callerIn(r.Context()) }

// callerIn is callerFrom for a request's context.
func callerIn(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// origin returns the actor for whom a program really acts, whatever its headers say: the
// person, unless an agent has started it. Otherwise an agent could run tether approve to
// answer its own questions, or claim to be another agent to leave its sandbox.
func origin(r *http.Request) term.Actor { return callerFrom(r).Actor }

// whoamiPath is also served to a caller that is nobody.
const whoamiPath = "/v1/whoami"

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) error {
	c := callerFrom(r)
	return reply(w, localapi.Whoami{SchemaVersion: localapi.SchemaVersion, Actor: ActorFrom(r.Context()).String(), Why: c.Why, Sign: c.Sign, NoSign: c.NoSign})
}

// maxPrincipal bounds the name of an agent's principal, in bytes.
const maxPrincipal = 64

// checkPrincipal checks a principal's name.
func checkPrincipal(name string) *localapi.Error {
	if name == "" || name == "." || name == ".." || len(name) > maxPrincipal || strings.ContainsFunc(name, notPrincipal) {
		return localapi.BadRequest("principal %.80q must be 1 to %d of the characters A-Z a-z 0-9 . _ : @ -, and neither . nor ..", name, maxPrincipal)
	}
	return nil
}

func notPrincipal(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._:@-", r)
}

// actorKey is the key of the actor in a request's context.
type actorKey struct{}

// ActorFrom returns the actor for whom a request is made: the local user or an agent.
// Handlers that are mounted here call it with their request's context. Without an actor
// in the context it returns nobody, who may do nothing.
func ActorFrom(ctx context.Context) term.Actor {
	actor, _ := ctx.Value(actorKey{}).(term.Actor)
	return actor
}

// lowered returns the actor for whom a request is made: the caller, or the agent that the
// request's header names. Nobody stays nobody.
func lowered(c Caller, h http.Header) (term.Actor, *localapi.Error) {
	actor := c.Actor
	names, there := h[localapi.PrincipalHeader]
	if !there || actor.Role == 0 {
		return actor, nil
	}
	if len(names) != 1 {
		return term.Actor{}, &localapi.Error{Code: localapi.CodeBadRequest, Message: "more than one " + localapi.PrincipalHeader}
	}
	if err := checkPrincipal(names[0]); err != nil {
		return term.Actor{}, err
	}
	if actor != term.User && actor != term.Agent(names[0]) && !c.renames {
		return term.Actor{}, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s may not act as agent %s", actor, names[0]), Hint: c.hint()}
	}
	return term.Agent(names[0]), nil
}

// hint tells a refused caller its identity and the remedy.
func (c Caller) hint() string {
	switch c.Actor.Role {
	case term.RoleAgent:
		return fmt.Sprintf("%s, so it counts as %s: let the user do it, from a terminal that no agent started", c.Why, c.Actor)
	case 0:
		return "keep the program that opens the connection running until the answer comes; tether whoami shows whom a program counts as"
	}
	return "the request itself names an agent"
}

// nobodyError refuses a caller that is nobody.
func nobodyError(c Caller) *localapi.Error {
	return &localapi.Error{Code: localapi.CodeDenied, Message: "this program counts as nobody: " + c.Why, Hint: c.hint()}
}

// access returns the pool as the request's actor sees it.
func (s *Server) access(r *http.Request) term.Access { return s.opts.Access(ActorFrom(r.Context())) }

// handler answers a request, or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

// person returns h, restricted to the local user.
func (s *Server) person(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if actor := ActorFrom(r.Context()); actor != term.User {
			does := r.Method + " " + r.URL.Path
			if needed := powers[r.Pattern]; len(needed) == 1 && needed[0].when == nil {
				does = needed[0].does
			}
			return s.refused(r, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s may not %s", actor, does), Hint: callerFrom(r).hint()})
		}
		return h(w, r)
	}
}

// refused records the refusal and returns it. It keeps only the route of the request,
// because paths may contain private data.
func (s *Server) refused(r *http.Request, why *localapi.Error) *localapi.Error {
	s.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Actor: ActorFrom(r.Context()), Detail: r.Pattern})
	return why
}
