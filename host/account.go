package host

import (
	"tether/host/admission"
	"tether/host/rights"
	"tether/jsonrpc"
)

const (
	// perName is the fraction of all connections that one name may have: a fourth, but at
	// least leastPerName connections.
	perName, leastPerName = 4, 16
)

var errTooManyOfName = jsonrpc.Errorf(jsonrpc.CodeOverloaded, "too many connections with tokens of this name")

// mostPerName returns how many connections one name may have, and likewise how many
// requests at the doors for agents and people.
func mostPerName(o Options) int { return max(leastPerName, o.MaxConnections/perName) }

// countLocked adds to the number of connections of a principal. The host's own token has
// no name, and is not counted; there are at most as many names as tokens.
func (h *Host) countLocked(p rights.Principal, more int) {
	if p.Name == "" {
		return
	}
	if h.connsOf[p.Name] += more; h.connsOf[p.Name] == 0 {
		delete(h.connsOf, p.Name)
	}
}

// crowdedLocked reports whether a principal has all connections that it may have, at all
// nodes together.
func (h *Host) crowdedLocked(p rights.Principal) bool {
	if p.Name == "" {
		return false
	}
	n := h.connsOf[p.Name]
	for _, conns := range h.nodeConns {
		n += conns[p.Name]
	}
	return n >= mostPerName(h.opts)
}

// NodeCounts are the usage counts that nodes exchange, for limits that hold for all nodes
// together.
type NodeCounts struct {
	Conns map[string]int `json:"conns,omitempty"` // of names with many connections
	Wrong map[string]int `json:"wrong,omitempty"` // wrong tokens since the last NodeCounts, by place
}

const (
	manyConns    = 8  // a name has many with an eighth of what it may have
	maxNodeNames = 64 // names in NodeCounts; fewer names can have many connections
)

// NodeCounts returns this node's counts; wrong tokens are counted since the last call.
func (h *Host) NodeCounts() NodeCounts {
	c := NodeCounts{Conns: map[string]int{}, Wrong: h.checks.Untold()}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.connsOf {
		if n >= mostPerName(h.opts)/manyConns && len(c.Conns) < maxNodeNames {
			c.Conns[name] = n
		}
	}
	return c
}

// CountsOf records another node's counts. They hold until the node sends others or goes
// silent.
func (h *Host) CountsOf(node string, c NodeCounts) {
	if len(c.Conns) > maxNodeNames || len(c.Wrong) > admission.MaxPlaces {
		return
	}
	h.checks.Told(c.Wrong)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodeConns == nil {
		h.nodeConns = map[string]map[string]int{}
	}
	h.nodeConns[node] = c.Conns
}

// NodeSilent is called when a node has gone silent or has announced that it stops. Its
// terminals are away until a node lists them again.
func (h *Host) NodeSilent(node string) {
	h.callers.Forget(node)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.nodeConns, node)
	h.terminals.NodeSilent(node)
}

// ask counts one more request of a principal at the doors for agents and people, until
// done is called; the request may take long. ok is false if the principal has as many as
// it may.
func (h *Host) ask(p rights.Principal) (done func(), ok bool) {
	if p.Name == "" {
		return func() {}, true
	}
	return h.asks.Try(p.Name)
}
