package local

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"time"

	"tether/agent/localapi"
)

// Leveler is a Daemon whose log says more or less while it runs.
type Leveler interface {
	LogLevel() string
	// SetLogLevel takes debug, info, warn or error. It holds until the daemon ends.
	SetLogLevel(level string) error
}

// logLevel answers with the level of the log; a POST changes it before.
func (s *Server) logLevel(w http.ResponseWriter, r *http.Request) error {
	l, ok := s.opts.Daemon.(Leveler)
	if !ok {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon has no log"}
	}
	if r.Method == http.MethodPost {
		var req localapi.LogLevelRequest
		if err := decode(w, r, &req); err != nil {
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

// Bounds of a profile of the processor's time.
const (
	defaultProfile = 10 * time.Second
	maxProfile     = 60 * time.Second
)

// profile answers with a profile of the runtime's, as go tool pprof reads it; debug=1 or 2 is text.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if name == "profile" {
		return s.profileTime(w, r)
	}
	p := pprof.Lookup(name)
	if p == nil {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: fmt.Sprintf("no such profile: %.40q", name), Hint: "profiles: profile, heap, allocs, goroutine, block, mutex, threadcreate"}
	}
	debug, err := number(r.URL.Query(), "debug", 2)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = p.WriteTo(w, int(debug)) // fails when the client is gone
	return nil
}

// profileTime measures the processor's time for seconds.
func (s *Server) profileTime(w http.ResponseWriter, r *http.Request) error {
	seconds, err := number(r.URL.Query(), "seconds", int64(maxProfile/time.Second))
	if err != nil {
		return err
	}
	took := time.Duration(seconds) * time.Second
	if took == 0 {
		took = defaultProfile
	}
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
