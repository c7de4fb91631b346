package local

import (
	"net/http"

	"tether/agent/localapi"
)

// DrainKeeping is Drain where the terminals go on: attached clients are told, and look for the next daemon.
func (s *Server) DrainKeeping() {
	s.keeping.Store(true)
	s.Drain()
}

func (s *Server) handOver(w http.ResponseWriter, r *http.Request) error {
	var req localapi.HandOverRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	h, err := s.opts.Daemon.HandOver(req)
	if err != nil {
		return err
	}
	return reply(w, h)
}
