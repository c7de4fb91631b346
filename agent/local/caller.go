package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// connKey is where a connection's context keeps its peer, callerKey where a request's keeps its caller.
type (
	connKey   struct{}
	callerKey struct{}
)

// peer is the process at the other end of a connection, as it was when the connection came.
type peer struct {
	proc.ID
	err error // why it is not known
}

var errPeerGone = errors.New("the program that opened the connection has ended")

// withPeer pins the process that has opened the connection.
func (s *Server) withPeer(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*counted); ok {
		conn = c.Conn
	}
	return context.WithValue(ctx, connKey{}, peerOf(conn))
}

// peerOf takes the start time while the kernel's handle says that the number still is the peer's.
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

// caller returns the peer's present identity. It examines the peer before and after, so that the result cannot belong to a later process.
func (s *Server) caller(p peer) Caller {
	if p.err != nil {
		return nobody(p.err.Error())
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

func (s *Server) identify(p peer) Caller {
	e := evidence{daemon: os.Getpid(), line: proc.Lineage(p.Pid), agents: s.opts.Agents.List(), masters: systemMasters}
	if now, err := proc.Lookup(p.Pid); err != nil || now.ID != p.ID || now.Zombie || len(e.line) == 0 || e.line[0].ID != p.ID {
		return nobody(errPeerGone.Error())
	}
	if session := e.line[0].Session; e.line[0].TTY != 0 && leaderIn(e.line, session) < 0 {
		e.leader = proc.Lineage(session)
	}
	user := s.opts.Access(term.User)
	for _, h := range user.List() {
		e.terminals = append(e.terminals, startedFrom(h.Info()))
	}
	for _, st := range user.Starting() {
		e.terminals = append(e.terminals, started{id: string(st.ID), by: st.Owner, unsigned: st.Unsigned})
	}
	return identify(e)
}

// PersonsProcess says why a process does not count as one of the person's, nil if it does. It is for who answers in the person's name, such
// as a desktop.
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

// settleWithin is how long a caller waits for terminals that are being started by agents, or without a sign, and whose children are not
// known yet. It takes milliseconds.
const settleWithin = 5 * time.Second

// settle waits for terminals that are being started now, and reports whether there were any.
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

// callerFrom is the caller, as this door has found out.
func callerFrom(r *http.Request) Caller { return callerIn(r.Context()) }

// callerIn is callerFrom for a request's context.
func callerIn(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// origin is the actor for whom a program really acts: the person, unless an agent has started it. Otherwise an agent could run tether
// approve to answer its own questions, or claim to be another agent to leave its sandbox.
func origin(r *http.Request) term.Actor { return callerFrom(r).Actor }

// whoamiPath answers also nobody.
const whoamiPath = "/v1/whoami"

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) error {
	c := callerFrom(r)
	return reply(w, localapi.Whoami{SchemaVersion: localapi.SchemaVersion, Actor: ActorFrom(r.Context()).String(), Why: c.Why, Sign: c.Sign, NoSign: c.NoSign})
}
