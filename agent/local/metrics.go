package local

import (
	"net/http"
	"time"

	"tether/agent/localapi"
	"tether/internal/metrics"
)

// metrics answers with the daemon's counters, in Prometheus' text format 0.0.4. No label contains output or typed text; hosts have the
// person's names for them.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	var m metrics.Text
	status := s.opts.Daemon.Status()
	m.Gauge("tether_info", "The daemon's version.", 1, "version", status.Version)
	m.Gauge("tether_start_time_seconds", "When the daemon started, in Unix time.", float64(status.Started.UnixMilli())/1000)
	m.Gauge("tether_terminals", "Terminals by state.", float64(status.Terminals.Running), "state", "running")
	m.More(float64(status.Terminals.Exited), "state", "exited")
	m.Gauge("tether_terminals_lent", "Running terminals that a host sees.", float64(status.Terminals.Lent))
	m.Gauge("tether_holders", "Processes in which terminals outlive the daemon.", float64(status.Holders.Alive))
	m.Gauge("tether_terminals_in_daemon", "Running terminals that would end with the daemon.", float64(status.Holders.InDaemon))
	m.Gauge("tether_log_bytes", "Memory for what terminals printed.", float64(status.Logs.Bytes))
	m.Gauge("tether_log_limit_bytes", "The bound of tether_log_bytes.", float64(status.Logs.MaxBytes))
	m.Gauge("tether_degraded", "What does not work as it should.", float64(len(status.Degraded)))
	m.Gauge("tether_approvals_waiting", "Questions that wait for the person.", float64(status.Waiting))
	hostMetrics(&m, status.Hosts)
	m.Runtime()
	m.Answer(w)
	return nil
}

// hostMetrics writes the metrics of each link.
func hostMetrics(m *metrics.Text, all []localapi.HostStatus) {
	for _, metric := range []struct {
		name, help, kind string
		value            func(*localapi.HostStatus) float64
	}{
		{"tether_host_up", "Whether the link to a host is online.", "gauge", func(h *localapi.HostStatus) float64 { return metrics.Yes(h.State == "online") }},
		{"tether_host_state_seconds", "How long a link has been in its state.", "gauge", func(h *localapi.HostStatus) float64 { return time.Since(h.Since).Seconds() }},
		{"tether_host_lent", "Terminals that are lent to a host.", "gauge", func(h *localapi.HostStatus) float64 { return float64(len(h.Lent)) }},
		{"tether_host_unacked_bytes", "Text that a host is not known to have.", "gauge", func(h *localapi.HostStatus) float64 { return float64(h.Unacked) }},
		{"tether_host_gaps_total", "How often bytes were dropped before a host had them.", "counter", func(h *localapi.HostStatus) float64 { return float64(h.Gaps) }},
		{"tether_host_gap_bytes_total", "How many bytes those were.", "counter", func(h *localapi.HostStatus) float64 { return float64(h.GapBytes) }},
		{"tether_host_refused_actions_total", "Actions of a host's that were refused.", "counter", func(h *localapi.HostStatus) float64 { return float64(h.Refused) }},
	} {
		for i := range all {
			if i == 0 {
				m.Metric(metric.name, metric.help, metric.kind, metric.value(&all[i]), "host", all[i].Name)
				continue
			}
			m.More(metric.value(&all[i]), "host", all[i].Name)
		}
	}
}
