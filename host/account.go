package host

import (
	"tether/host/admission"
	"tether/host/rights"
	"tether/jsonrpc"
)

const (
	createBurst = 256 // terminals that a machine may create at once, or MaxTerminals if that is more
	createRate  = 16  // terminals per second after that
	// perName is the fraction of all connections that one name may have: a fourth, but at
	// least leastPerName connections.
	perName, leastPerName = 4, 16
	// allTerminals is how many terminals the host may have for each of its
	// MaxConnections.
	allTerminals = 16
)

var errTooManyOfName = jsonrpc.Errorf(jsonrpc.CodeOverloaded, "too many connections with tokens of this name")

// account counts everything that a name has at the host, under all its clientIds. The
// host's own token has no account; there are at most as many names as tokens. Guarded by
// the host's mutex.
type account struct {
	conns, terminals int
}

// accountLocked returns the account of a principal, nil for the host's own token.
func (h *Host) accountLocked(p rights.Principal) *account {
	if p.Name == "" {
		return nil
	}
	a := h.accounts[p.Name]
	if a == nil {
		a = &account{}
		h.accounts[p.Name] = a
	}
	return a
}

// countLocked adds to the numbers of connections and terminals of a principal; negative
// numbers are gone ones.
func (h *Host) countLocked(p rights.Principal, conns, terminals int) {
	a := h.accountLocked(p)
	if a == nil {
		return
	}
	a.conns += conns
	a.terminals += terminals
	if a.conns+a.terminals == 0 {
		delete(h.accounts, p.Name)
	}
}

// mostPerName returns how many connections one name may have, and likewise how many
// requests at the doors for agents and people.
func mostPerName(o Options) int { return max(leastPerName, o.MaxConnections/perName) }

// crowdedLocked reports whether a principal has all connections that it may have, at all
// nodes together.
func (h *Host) crowdedLocked(p rights.Principal) bool {
	if p.Name == "" {
		return false
	}
	n := 0
	if a := h.accounts[p.Name]; a != nil {
		n = a.conns
	}
	for _, conns := range h.nodes.conns {
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
	for name, a := range h.accounts {
		if a.conns >= mostPerName(h.opts)/manyConns && len(c.Conns) < maxNodeNames {
			c.Conns[name] = a.conns
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
	if h.nodes.conns == nil {
		h.nodes.conns = map[string]map[string]int{}
	}
	h.nodes.conns[node] = c.Conns
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

// admitTerminalLocked returns nil if the client may have one more terminal.
func (h *Host) admitTerminalLocked(cl *client) error {
	a := h.accountLocked(cl.principal)
	switch machine := a != nil && cl.principal.Role == rights.RoleMachine; {
	case cl.terminals >= h.opts.MaxTerminals || machine && a.terminals >= h.opts.MaxTerminals:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals of one client", h.opts.MaxTerminals)
	case len(h.order) >= allTerminals*h.opts.MaxConnections:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals at this host", allTerminals*h.opts.MaxConnections)
	case machine && !h.creates.Allow(cl.principal.Name):
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "too many terminals are created: more than %d in a second", createRate)
	}
	return nil
}
