package host

import (
	"context"
	"maps"
	"slices"
	"sync"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/rights"
	"tether/host/shells"
	"tether/jsonrpc"
)

var errGoingAway = jsonrpc.Errorf(jsonrpc.CodeInternal, "the host is going away")

// Drain begins the end of the host. It admits no new clients, handles no more messages of
// clients (machines keep unacknowledged output for the next host), and ends the host's
// shells. It returns when each connection was sent its waiting messages and the news that
// the host ends, or when ctx ends. Call Close then.
func (h *Host) Drain(ctx context.Context) {
	h.draining.Store(true)
	h.ports.Close()
	h.mu.Lock()
	conns := slices.Collect(maps.Keys(h.conns))
	var shells []shells.Process
	for _, t := range h.terminals.Listed {
		if t.Proc() != nil {
			shells = append(shells, t.Proc())
			h.terminals.Exit(t)
		}
	}
	h.mu.Unlock()
	h.log.Info().Int("connections", len(conns)).Int("shells", len(shells)).Msg("draining")
	for _, s := range shells {
		s.Kill()
	}
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() { c.drain(ctx) })
	}
	all.Wait()
}

// SetRights sets how old the rights are that this node knows. A machine's connection
// stays in any case until it breaks: it shows only the machine's own terminals, and the
// machine connects to another node next time.
func (h *Host) SetRights(now admission.Age) {
	if !h.gate.Set(now) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		if !c.link.Taken && c.remote.principal.Role != rights.RoleMachine {
			c.expelLocked(closeGoingAway, admission.ErrOld.Text)
		}
	}
}

// drain sends the connection's waiting messages and closes it.
func (c *conn) drain(ctx context.Context) {
	idle := make(chan struct{})
	c.h.mu.Lock()
	c.idle = idle
	c.h.mu.Unlock()
	c.Wake()
	select {
	case <-idle:
		_ = c.peer.Flush(ctx) // the connection is closed even if that fails
	case <-c.peer.Done():
	case <-ctx.Done():
	}
	c.close(closeGoingAway, errGoingAway.Message)
}

// drainedLocked is called when the writer has nothing more to send.
func (c *conn) drainedLocked() {
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// refuses reports whether a draining host refuses a request.
func (h *Host) refuses(r *jsonrpc.Request) bool {
	return h.draining.Load() && r.Method != ahp.MethodPing
}
