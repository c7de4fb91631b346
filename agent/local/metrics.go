package local

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// metrics answers with the daemon's counters, in Prometheus' text format 0.0.4. No label contains output or typed text; hosts have the
// person's names for them.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	var m metricsText
	status := s.opts.Daemon.Status()
	m.gauge("tether_info", "The daemon's version.", 1, "version", status.Version)
	m.gauge("tether_start_time_seconds", "When the daemon started, in Unix time.", float64(status.Started.UnixMilli())/1000)
	m.gauge("tether_terminals", "Terminals by state.", float64(status.Terminals.Running), "state", "running")
	m.more(float64(status.Terminals.Exited), "state", "exited")
	m.gauge("tether_terminals_lent", "Running terminals that a host sees.", float64(status.Terminals.Lent))
	m.gauge("tether_holders", "Processes in which terminals outlive the daemon.", float64(status.Holders.Alive))
	m.gauge("tether_terminals_in_daemon", "Running terminals that would end with the daemon.", float64(status.Holders.InDaemon))
	m.gauge("tether_log_bytes", "Memory for what terminals printed.", float64(status.Logs.Bytes))
	m.gauge("tether_log_limit_bytes", "The bound of tether_log_bytes.", float64(status.Logs.MaxBytes))
	m.gauge("tether_degraded", "What does not work as it should.", float64(len(status.Degraded)))
	m.gauge("tether_approvals_waiting", "Questions that wait for the person.", float64(status.Waiting))
	m.hosts(status.Hosts)
	m.runtime()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(m.Bytes()) // fails when the client is gone
	return nil
}

// hosts writes the metrics of each link.
func (m *metricsText) hosts(all []HostStatus) {
	for _, metric := range []struct {
		name, help, kind string
		value            func(*HostStatus) float64
	}{
		{"tether_host_up", "Whether the link to a host is online.", "gauge", func(h *HostStatus) float64 { return yes(h.State == "online") }},
		{"tether_host_state_seconds", "How long a link has been in its state.", "gauge", func(h *HostStatus) float64 { return time.Since(h.Since).Seconds() }},
		{"tether_host_lent", "Terminals that are lent to a host.", "gauge", func(h *HostStatus) float64 { return float64(len(h.Lent)) }},
		{"tether_host_unacked_bytes", "Text that a host is not known to have.", "gauge", func(h *HostStatus) float64 { return float64(h.Unacked) }},
		{"tether_host_gaps_total", "How often bytes were dropped before a host had them.", "counter", func(h *HostStatus) float64 { return float64(h.Gaps) }},
		{"tether_host_gap_bytes_total", "How many bytes those were.", "counter", func(h *HostStatus) float64 { return float64(h.GapBytes) }},
		{"tether_host_refused_actions_total", "Actions of a host's that were refused.", "counter", func(h *HostStatus) float64 { return float64(h.Refused) }},
	} {
		for i := range all {
			if i == 0 {
				m.metric(metric.name, metric.help, metric.kind, metric.value(&all[i]), "host", all[i].Name)
				continue
			}
			m.more(metric.value(&all[i]), "host", all[i].Name)
		}
	}
}

// runtime writes the Go runtime's metrics, under the names that its own exporter uses.
func (m *metricsText) runtime() {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m.gauge("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	m.gauge("go_memstats_heap_alloc_bytes", "Heap in use.", float64(mem.HeapAlloc))
	m.gauge("go_memstats_sys_bytes", "Memory from the system.", float64(mem.Sys))
	m.metric("go_gc_cycles_total", "Collections of garbage.", "counter", float64(mem.NumGC))
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metricsText is a page of metrics.
type metricsText struct {
	bytes.Buffer
	name string // of the metric that more goes on with
}

func (m *metricsText) gauge(name, help string, value float64, labels ...string) {
	m.metric(name, help, "gauge", value, labels...)
}

// metric begins a metric; labels are names and values in turn.
func (m *metricsText) metric(name, help, kind string, value float64, labels ...string) {
	m.name = name
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	m.more(value, labels...)
}

// more is another value of the same metric.
func (m *metricsText) more(value float64, labels ...string) {
	m.WriteString(m.name)
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(m, "%s%s=\"%s\"", map[bool]string{true: "{", false: ","}[i == 0], labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		m.WriteByte('}')
	}
	fmt.Fprintf(m, " %g\n", value)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
