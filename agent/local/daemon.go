package local

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/pprof"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/internal/metrics"
	"tether/vocab"
)

// status answers with the daemon's status. An agent is told nothing about hosts, and
// nothing about terminals that it does not see.
func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	status := s.opts.Daemon.Status()
	status.Waiting = s.waiting(r)
	actor := ActorFrom(r.Context())
	status.Connections = s.conns.counts(func(a term.Actor) bool { return actor == term.User || a == actor })
	if actor != term.User {
		status.Hosts, status.Terminals, status.Degraded, status.Log = []localapi.HostStatus{}, localapi.Count{}, []localapi.Degraded{}, ""
		status.History = nil
		for _, h := range s.access(r).List() {
			CountTerminal(&status.Terminals, h)
		}
	}
	status.Checkouts = s.checkoutsInUse(s.access(r).List())
	return reply(w, status)
}

// CountTerminal counts one more terminal.
func CountTerminal(c *localapi.Count, h term.Handle) {
	i := h.Info()
	switch {
	case i.Exit != nil:
		c.Exited++
		return
	case len(i.LentTo) > 0:
		c.Lent++
	}
	c.Running++
	if in, _ := h.Input(); in.Input.Awaits() {
		c.Awaits++
	}
	if ready := i.Ready; ready == vocab.ReadyStarting || ready == vocab.ReadyFailed {
		c.NotReady++
	}
}

// environment answers with the login environment; a POST runs the shell again.
func (s *Server) environment(w http.ResponseWriter, r *http.Request) error {
	env, err := s.opts.Daemon.Environment(r.Context(), r.Method == http.MethodPost)
	if err != nil {
		return err
	}
	out := localapi.Environment{SchemaVersion: localapi.SchemaVersion}
	out.Env, out.EnvBytes = jsonspan.Pack(env)
	return reply(w, out)
}

func (s *Server) shutdown(w http.ResponseWriter, _ *http.Request) error {
	defer s.opts.Daemon.Shutdown()
	return reply(w, struct{}{})
}

func (s *Server) handOver(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, s.opts.Daemon.HandOver())
}

func (s *Server) sandbox(w http.ResponseWriter, r *http.Request, req localapi.SandboxRequest) error {
	if err := req.Unpack(); err != nil {
		return err
	}
	actor := ActorFrom(r.Context())
	if actor.Role != term.RoleAgent || s.opts.Sandbox == nil || len(req.Command) == 0 {
		return localapi.BadRequest("an agent and a command are required")
	}
	argv, err := s.opts.Sandbox(actor, req.Cwd, req.Command)
	if err != nil {
		return err
	}
	out := localapi.SandboxReply{SchemaVersion: localapi.SchemaVersion}
	out.Command, out.CommandBytes = jsonspan.Pack(argv)
	return reply(w, out)
}

// Leveler is a Daemon whose log level can be changed while it runs.
type Leveler interface {
	LogLevel() string
	// SetLogLevel accepts debug, info, warn or error. The level stays until the daemon
	// ends.
	SetLogLevel(level string) error
}

// logLevel answers with the level of the log; a POST changes it first.
func (s *Server) logLevel(w http.ResponseWriter, r *http.Request) error {
	l, ok := s.opts.Daemon.(Leveler)
	if !ok {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon has no log"}
	}
	if r.Method == http.MethodPost {
		var req localapi.LogLevelRequest
		if err := decode(r, &req); err != nil {
			return err
		}
		if err := l.SetLogLevel(req.Level); err != nil {
			return err
		}
	}
	return reply(w, localapi.LogLevel{SchemaVersion: localapi.SchemaVersion, Level: l.LogLevel()})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	h := localapi.Health{SchemaVersion: localapi.SchemaVersion, Status: "ok", Degraded: s.opts.Daemon.Status().Degraded}
	if len(h.Degraded) > 0 {
		h.Status = "degraded"
	}
	return reply(w, h)
}

// Bounds of a CPU profile.
const (
	defaultProfile = 10 * time.Second
	maxProfile     = 60 * time.Second
)

// profile answers with a profile of the Go runtime, for go tool pprof; with debug=1 or 2,
// as text.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if name == "profile" {
		return s.profileTime(w, r)
	}
	p := pprof.Lookup(name)
	if p == nil {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: fmt.Sprintf("no such profile: %.40q", name), Hint: "profiles: profile, heap, allocs, goroutine, block, mutex, threadcreate"}
	}
	debug, err := paramsOf(r).number("debug", 2) // go tool pprof sends others, too
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = p.WriteTo(w, int(debug)) // fails when the client is gone
	return nil
}

// profileTime answers with a CPU profile of some seconds.
func (s *Server) profileTime(w http.ResponseWriter, r *http.Request) error {
	seconds, err := paramsOf(r).number("seconds", int64(maxProfile/time.Second))
	if err != nil {
		return err
	}
	took := cmp.Or(time.Duration(seconds)*time.Second, defaultProfile)
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := pprof.StartCPUProfile(w); err != nil {
		w.Header().Del("Content-Type")
		return &localapi.Error{Code: localapi.CodeLimit, Message: err.Error(), Hint: "wait until the other profile has ended"}
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(took):
	case <-r.Context().Done():
	case <-s.draining.Done():
	}
	return nil
}

// metrics answers with the daemon's counters, in Prometheus' text format 0.0.4. No label
// contains output or typed text; hosts are labelled with the names that the person gave
// them.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	var m metrics.Text
	status := s.opts.Daemon.Status()
	m.Gauge("tether_info", "The daemon's version.", 1, "version", status.Version)
	m.Gauge("tether_start_time_seconds", "When the daemon started, in Unix time.", float64(status.Started.UnixMilli())/1000)
	m.Gauge("tether_terminals", "Terminals by state.", float64(status.Terminals.Running), "state", "running")
	m.More(float64(status.Terminals.Exited), "state", "exited")
	m.Gauge("tether_terminals_lent", "Running terminals that a host sees.", float64(status.Terminals.Lent))
	m.Gauge("tether_holders", "Processes in which terminals outlive the daemon.", float64(status.Holders.Alive))
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
