package local

import (
	"context"
	"net/http"
)

// HandOverRequest asks the daemon to end and leave its terminals to the next one.
type HandOverRequest struct {
	Force bool `json:"force,omitempty"` // also if some would end
}

// HandOver is the fate of the terminals.
type HandOver struct {
	SchemaVersion int `json:"schema_version"`
	Kept          int `json:"kept"`  // run on
	Ended         int `json:"ended"` // do not
}

// HandOver asks the daemon to end and leave its terminals to the next one. It does not wait for the end. A daemon that does not know how is
// an *Error with CodeNotFound.
func (c *Client) HandOver(ctx context.Context, r HandOverRequest) (HandOver, error) {
	var h HandOver
	return h, c.do(ctx, http.MethodPost, "/v1/handover", r, &h)
}

// DrainKeeping is Drain where the terminals go on: attached clients are told, and look for the next daemon.
func (s *Server) DrainKeeping() {
	s.keeping.Store(true)
	s.Drain()
}

func (s *Server) handOver(w http.ResponseWriter, r *http.Request) error {
	var req HandOverRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	h, err := s.opts.Daemon.HandOver(req)
	if err != nil {
		return err
	}
	return reply(w, h)
}
