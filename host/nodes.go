package host

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"tether/host/sessions"
	"tether/host/terminals"
	"tether/jsonrpc"
)

// Nodes is how a host reaches the other nodes of its cluster. Its methods may be called
// from any goroutine.
type Nodes interface {
	sessions.Nodes
	// Own makes this node the owner of a client's terminals and returns the epoch of that
	// ownership, which is greater than all earlier ones and than least. It may take
	// seconds.
	Own(ctx context.Context, clientID string, least int64) (epoch int64, err error)
	// Dial opens a stream of bytes to a node, which passes it to ServeNode. It ends with
	// either node, or when one of them does not reach the cluster. Its two directions are
	// buffered: whoever uses it bounds what is under way. The error is sessions.ErrNoNode
	// if that node is gone.
	Dial(ctx context.Context, node string) (net.Conn, error)
	// Others returns the names of the other nodes.
	Others() []string
	// Wanted is called when somebody follows the terminal of another node. The caller
	// holds the host's mutex; Wanted does not block.
	Wanted(uri string)
}

// firstSeq is the host's first serverSeq. Nodes count from different random numbers, so
// that a client's position at another node is not mistaken for one here.
func (o *Options) firstSeq() int64 {
	if o.Nodes == nil {
		return 0
	}
	return 1<<40 + rand.Int64N(1<<52) // exact in every JSON reader, with room to count
}

// take makes this node the owner of the client's terminals, once for each connection that
// lends.
func (c *conn) take() error {
	h := c.h
	if h.opts.Nodes == nil {
		return nil
	}
	h.mu.Lock()
	taken, id, least := c.link.Taken, c.link.Client.ID(), c.link.Client.Epoch
	h.mu.Unlock()
	if taken {
		return nil
	}
	epoch, err := h.opts.Nodes.Own(h.ctx, id, least)
	if err != nil {
		h.log.Warn().Err(err).Str("client", id).Msg("a machine is not taken: the cluster's engine does not answer")
		c.close(closeGoingAway, "this node does not reach its cluster: try another address")
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "this node does not reach its cluster: try another address")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	cl := c.link.Client
	switch {
	case epoch > cl.Epoch: // even if the connection has ended meanwhile: by the lease, this node is the owner in this epoch
		cl.Epoch, cl.Node, cl.Anew, cl.Owned = epoch, "", false, time.Now()
		for _, t := range slices.Collect(h.terminals.Every()) {
			if t.Creator == cl || t.Parked() != nil && t.LentBy(cl) {
				h.terminals.Arrive(t)
			}
		}
	case cl.Node != "":
		return terminals.ErrClosing
	}
	if c.closing {
		return terminals.ErrClosing
	}
	c.link.Taken = true
	h.log.Info().Str("client", id).Int64("epoch", epoch).Msg("a machine's terminals are owned here")
	return nil
}
