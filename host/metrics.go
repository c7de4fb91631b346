package host

import (
	"time"

	"tether/internal/metrics"
)

// Metrics appends the host's metrics. They contain no names and no text of anybody.
func (h *Host) Metrics(m *metrics.Text) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var here, elsewhere, followed, owned int
	for _, t := range h.terminals.Listed {
		switch {
		case t.Mirror() == nil:
			here++
		case t.Mirror().Fed:
			followed++
			fallthrough
		default:
			elsewhere++
		}
	}
	parked := 0
	for _, t := range h.terminals.Parked {
		if t.Mirror() == nil {
			parked++
		}
	}
	oldest, newest := time.Duration(0), time.Duration(0)
	for _, cl := range h.terminals.Clients {
		if cl.Link == nil || !cl.Link.Taken {
			continue
		}
		age := time.Since(cl.Owned)
		if owned++; owned == 1 {
			newest = age
		}
		oldest, newest = max(oldest, age), min(newest, age)
	}
	m.Gauge("tether_node_uptime_seconds", "For how long the host has run.", time.Since(h.epoch).Seconds())
	m.Gauge("tether_node_connections", "Connections of machines and observers.", float64(len(h.conns)))
	m.Gauge("tether_node_terminals", "Terminals that are listed: of machines and shells at this node, and of other nodes.", float64(here), "at", "here")
	m.More(float64(elsewhere), "at", "elsewhere")
	m.Gauge("tether_node_terminals_parked", "Terminals that are kept here while their machine is away.", float64(parked))
	used, most := h.terminals.Memory.Used()
	m.Gauge("tether_node_text_bytes", "Memory for what terminals printed, and for what waits for observers.", float64(used))
	m.Gauge("tether_node_text_limit_bytes", "The bound of tether_node_text_bytes.", float64(most))
	if h.opts.Nodes == nil {
		return
	}
	m.Gauge("tether_node_machines_owned", "Machines that are connected to this node, which owns their terminals.", float64(owned))
	m.Gauge("tether_node_terminals_followed", "Terminals of other nodes whose text comes here.", float64(followed))
	m.Gauge("tether_node_lease_age_seconds", "For how long this node has owned the terminals of the machines that are connected to it.", oldest.Seconds(), "lease", "oldest")
	m.More(newest.Seconds(), "lease", "newest")
	m.Counter("tether_node_resyncs_total", "How often text of another node began anew here, since its node had dropped some that was missing.", float64(h.terminals.Resyncs))
}
