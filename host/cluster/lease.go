package cluster

import (
	"context"
	"encoding/json"
	"strings"
)

// lease says which node owns the terminals of a machine. It only says where the machine
// is, and that each epoch has one owner: it does not expire. A node stays the owner while
// the machine's connection lives and the node knows no higher epoch.
type lease struct {
	Client string `json:"client"`
	Node   string `json:"node"`
	Epoch  int64  `json:"epoch"`
}

const leases = "lease"

// Own implements host.Nodes.
func (n *Node) Own(ctx context.Context, clientID string, least int64) (epoch int64, err error) {
	err = n.change(ctx, hashed(leases, clientID), func(old []byte) ([]byte, error) {
		var l lease
		if old != nil {
			_ = json.Unmarshal(old, &l) // an unreadable value is replaced
		}
		epoch = max(l.Epoch, least) + 1
		return json.Marshal(lease{clientID, n.id, epoch})
	})
	return epoch, err
}

// leased lets the host know that another node owns a machine's terminals.
func (n *Node) leased(key string, data []byte) {
	var l lease
	if !strings.HasPrefix(key, leases+".") || json.Unmarshal(data, &l) != nil || l.Node == n.id {
		return
	}
	n.mu.Lock()
	h := n.host
	n.mu.Unlock()
	if h != nil {
		h.Terminals().Released(l.Client, l.Node, l.Epoch)
	}
}
