package cluster

import (
	"context"

	"tether/host"
)

// End tells an owner that nobody here follows a terminal any more.
func (n *Node) End(ctx context.Context, owner string, r host.FeedRequest) { n.end(ctx, owner, r) }
