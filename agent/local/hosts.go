package local

import (
	"context"
	"net/http"
	"net/url"
)

// HostChange changes what is kept of a paired host.
type HostChange struct {
	Name    string `json:"name,omitempty"`    // the new one; "" leaves it
	Default bool   `json:"default,omitempty"` // true makes it the default host
}

func (s *Server) changeHost(w http.ResponseWriter, r *http.Request) error {
	var req HostChange
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req == (HostChange{}) {
		return &Error{Code: CodeBadRequest, Message: "there is nothing to change", Hint: "give name, default, or both"}
	}
	h, err := s.opts.Daemon.ChangeHost(r.Context(), r.PathValue("name"), req)
	if err != nil {
		return err
	}
	return reply(w, h)
}

// ChangeHost renames the paired host of that name or makes it the default one.
func (c *Client) ChangeHost(ctx context.Context, name string, change HostChange) (HostStatus, error) {
	var h HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/hosts/"+url.PathEscape(name), change, &h)
}
