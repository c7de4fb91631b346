package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// leader is which node does something that one node does for all. The epoch is higher than that of each leader before.
type leader struct {
	Node  string `json:"node"` // empty: the last one has stopped
	Epoch int64  `json:"epoch"`
}

const (
	leaders = "leader."
	// leadEvery is how often a node looks whether it is to lead.
	leadEvery = 500 * time.Millisecond
	// leadAfter is how long after its start a node takes over at the earliest: it has heard the others by then.
	leadAfter = helloEvery + time.Second
)

var errLed = errors.New("another node leads")

// Leader returns the node that does something for all; empty if none does.
func (n *Node) Leader(about string) string { return n.leaderOf(about).Node }

func (n *Node) leaderOf(about string) (l leader) {
	_ = json.Unmarshal(n.known(leaders+about).data, &l) // an unreadable value counts as none
	return l
}

// Lead calls serve at one node of the cluster at a time: when this node becomes the leader, with its epoch. The context that serve gets ends
// when another node leads, the engine is not reached, or ctx ends; serve must return then, and may be called again. A node that is frozen
// learns late that another one leads: what serve changes must be refused by epoch. Lead returns after ctx has ended and serve has returned,
// and then lets another node lead at once.
func (n *Node) Lead(ctx context.Context, about string, serve func(ctx context.Context, epoch int64)) {
	began := time.Now()
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
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
				_ = n.lead(about, leader{"", l.Epoch}, l) // the others find out by this node's silence otherwise
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
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
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

// hears reports whether another node is there.
func (n *Node) hears(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[node] != nil
}
