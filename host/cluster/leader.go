package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tether/internal/retry"
)

// leader says which node leads: does a task that one node does for all. The epoch is
// higher than that of each earlier leader.
type leader struct {
	Node  string `json:"node"` // empty: the last leader has stopped
	Epoch int64  `json:"epoch"`
}

const (
	leaders = "leader."
	// leadEvery is how often a node checks whether it should lead.
	leadEvery = 500 * time.Millisecond
	// leadAfter is how long a node waits after its start before it may lead: by then it
	// has heard the others.
	leadAfter = helloEvery + time.Second
)

var errLed = errors.New("another node leads")

// Leader returns the node that leads the task about, empty if none does, and its epoch.
func (n *Node) Leader(about string) (node string, epoch int64) {
	l := n.leaderOf(about)
	return l.Node, l.Epoch
}

func (n *Node) leaderOf(about string) (l leader) {
	_ = json.Unmarshal(n.known(leaders+about).data, &l) // an unreadable value counts as none
	return l
}

// Lead calls serve, with an epoch, when this node becomes the leader of the task about;
// the cluster has one leader at a time. The context of serve ends when another node
// leads, NATS is not reached, or ctx ends; serve must return then, and may be called
// again. A node that was frozen learns late that another one leads, so whatever serve
// changes must be refused for old epochs. Lead returns after ctx has ended and serve has
// returned, and then lets another node lead at once.
func (n *Node) Lead(ctx context.Context, about string, serve func(ctx context.Context, epoch int64)) {
	began := time.Now()
	stop := func() {}
	leads := int64(0) // the epoch that is served; 0: none
	for {
		l := n.leaderOf(about)
		mine, reached := l.Node == n.id, n.Reached()
		if leads != 0 && (!mine || l.Epoch != leads || !reached || ctx.Err() != nil) {
			stop()
			leads = 0
		}
		if ctx.Err() != nil {
			if mine {
				_ = n.lead(about, leader{"", l.Epoch}, l) // if it fails, the others notice this node's silence
			}
			return
		}
		if !mine && reached && time.Since(began) > leadAfter && !n.hears(l.Node) {
			next := leader{n.id, l.Epoch + 1}
			if n.lead(about, next, l) == nil {
				l, mine = next, true
				n.log.Info().Str("about", about).Int64("epoch", l.Epoch).Msg("this node leads")
			}
		}
		if leads == 0 && mine && reached {
			leads = l.Epoch
			serving, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); serve(serving, l.Epoch) }()
			stop = func() { cancel(); <-ended }
		}
		retry.Wait(ctx, leadEvery)
	}
}

// lead replaces the leader, if it is still the former one.
func (n *Node) lead(about string, next, former leader) error {
	return n.change(n.ctx, leaders+about, func(old []byte) ([]byte, error) {
		var l leader
		_ = json.Unmarshal(old, &l) // as in leaderOf
		if l != former {
			return nil, errLed
		}
		return json.Marshal(next)
	})
}

// hears reports whether another node was heard recently.
func (n *Node) hears(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[node] != nil
}
