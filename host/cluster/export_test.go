package cluster

import (
	"context"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"tether/host"
	"tether/host/terminals"
)

// End tells an owner that nobody here follows a terminal any more.
func (n *Node) End(ctx context.Context, owner string, r terminals.FeedRequest) { n.end(ctx, owner, r) }

// Over makes a node over a bucket, whose watch has begun. It says nothing to other nodes.
func Over(ctx context.Context, id string, nc *nats.Conn, kv jetstream.KeyValue) (*Node, error) {
	n := &Node{opts: Options{Name: "test"}, log: zerolog.Nop(), id: id, nc: nc, kv: kv, kept: map[string]value{}, peers: map[string]*peer{}, wanted: map[string]bool{}, conns: map[string]*conn{}}
	n.ctx, n.stop = context.WithCancel(ctx)
	return n, n.watch(ctx)
}

// Serve gives the node its host.
func (n *Node) Serve(h *host.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.host = h
}

// Streams replaces what serves the streams of other nodes. It must be called before Run.
func (n *Node) Streams(serve func(context.Context, net.Conn)) { n.streams = serve }

// RightsOf is rightsOf.
var RightsOf = rightsOf

// Conns returns the number of streams.
func (n *Node) Conns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Kill cuts the node from the engine without a word, for good.
func (n *Node) Kill() { n.nc.Close() }

// Skip makes the streams act as if a message with a byte had been lost.
func (n *Node) Skip() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.publish(pieceData, 1<<40, []byte("z"))
	}
}
