package local

import (
	"context"
	"net/http"

	"tether/agent/localapi"
)

// HandOver asks the daemon to end and leave its terminals to the next one. It does not wait for the end. A daemon that does not know how is
// an *Error with CodeNotFound.
func (c *Client) HandOver(ctx context.Context, r localapi.HandOverRequest) (localapi.HandOver, error) {
	var h localapi.HandOver
	return h, c.do(ctx, http.MethodPost, "/v1/handover", r, &h)
}

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
