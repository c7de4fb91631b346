package host

import (
	"context"
	"maps"
	"slices"
	"sync"

	"tether/ahp"
	"tether/jsonrpc"
)

var errGoingAway = jsonrpc.Errorf(jsonrpc.CodeInternal, "the host is going away")

// Drain begins the end of the host: nobody new is let in, what clients send is not taken any more (machines keep what was not
// acknowledged, and have it for the next host), and shells of the host's end. It returns when each connection has been sent what
// waited for it and was told that the host goes away, or when ctx ends. Close it then.
func (h *Host) Drain(ctx context.Context) {
	h.draining.Store(true)
	h.mu.Lock()
	conns := slices.Collect(maps.Keys(h.conns))
	var shells []ServerProcess
	for _, t := range h.order {
		if t.proc != nil {
			shells = append(shells, t.proc)
			h.exitLocked(t, -1)
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

// drain lets what waits for the connection leave and closes it.
func (c *conn) drain(ctx context.Context) {
	idle := make(chan struct{})
	c.h.mu.Lock()
	c.idle = idle
	c.h.mu.Unlock()
	c.wake()
	select {
	case <-idle:
		_ = c.peer.Flush(ctx) // it is closed either way
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

// refuses reports whether a host that goes away does not take a request any more.
func (h *Host) refuses(r *jsonrpc.Request) bool {
	return h.draining.Load() && r.Method != ahp.MethodPing
}
