package cluster

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"tether/host"
)

// End tells an owner that nobody here follows a terminal any more.
func (n *Node) End(ctx context.Context, owner string, r host.FeedRequest) { n.end(ctx, owner, r) }

// Over makes a node over a bucket, whose watch has begun. It says nothing to other nodes.
func Over(ctx context.Context, id string, nc *nats.Conn, kv jetstream.KeyValue) (*Node, error) {
	n := &Node{opts: Options{Name: "test"}, log: zerolog.Nop(), id: id, nc: nc, kv: kv, kept: map[string]value{}, peers: map[string]*peer{}, wanted: map[string]bool{}}
	n.ctx, n.stop = context.WithCancel(ctx)
	return n, n.watch(ctx)
}

// Serve gives the node its host.
func (n *Node) Serve(h *host.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.host = h
}

// RightsOf is rightsOf.
var RightsOf = rightsOf
