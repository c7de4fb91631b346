package local

import (
	"context"
	"net"
	"slices"
	"sync"

	"tether/agent/term"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// promotedAgent is the principal of what was started in a terminal that an
// agent has started and given to the person, where an older daemon did not
// write down which agent it was.
const promotedAgent = "promoted"

// originKey is where a connection's context keeps who is at its other end.
type originKey struct{}

// withOrigin lets requests of the connection find out, once and only if they
// ask, in whose terminal the program at its other end was started.
func (s *Server) withOrigin(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, originKey{}, sync.OnceValue(func() term.Actor { return s.originOf(conn) }))
}

// origin is for whom a program acts, whoever it says it is: for the person,
// unless an agent has started it. Otherwise an agent would only have to run
// tether approve to answer its own questions, or to say that it is another to
// be out of its sandbox. A program can hide where it comes from, so that this is
// a threshold, not a wall.
func origin(ctx context.Context) term.Actor {
	of, ok := ctx.Value(originKey{}).(func() term.Actor)
	if !ok {
		return term.User
	}
	return of()
}

func (s *Server) originOf(conn net.Conn) term.Actor {
	var started []term.Info // by agents
	for _, h := range s.opts.Access(term.User).List() {
		if i := h.Info(); i.Owner.Role == term.RoleAgent || i.Promoted {
			started = append(started, i)
		}
	}
	if len(started) == 0 {
		return term.User
	}
	if c, ok := conn.(*counted); ok {
		conn = c.Conn
	}
	pid, ok := ipc.PeerPid(conn)
	if !ok {
		return term.User
	}
	for _, p := range proc.Lineage(pid) {
		for _, i := range started {
			inside := i.Exit == nil && i.Pid > 1 && (p.Pid == i.Pid || p.Session == i.Pid)
			if !inside && !slices.Contains(p.Terminals, string(i.ID)) {
				continue
			}
			switch term.RoleAgent {
			case i.Owner.Role:
				return i.Owner
			case i.Starter.Role: // else giving a terminal away would be a way out of a sandbox
				return i.Starter
			}
			return term.Agent(promotedAgent)
		}
	}
	return term.User
}
