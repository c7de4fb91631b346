package cluster

import "tether/internal/metrics"

// Metrics appends what the node counts, beside its host's.
func (n *Node) Metrics(m *metrics.Text) {
	n.mu.Lock()
	peers := len(n.peers)
	n.mu.Unlock()
	s := n.nc.Stats()
	m.Gauge("tether_node_nats_up", "Whether NATS is reached.", metrics.Yes(n.Reached()))
	m.Gauge("tether_node_peers", "Other nodes that are heard.", float64(peers))
	m.Counter("tether_node_sent_bytes_total", "Bytes of messages to other nodes, and to the bucket.", float64(s.OutBytes))
	m.Counter("tether_node_received_bytes_total", "Bytes of messages of other nodes, and of the bucket.", float64(s.InBytes))
	m.Counter("tether_node_unanswered_total", "Requests to other nodes that were repeated, because no answer came in time.", float64(n.unanswered.Load()))
}
