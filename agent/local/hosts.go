package local

import (
	"context"
	"net/http"

	"tether/agent/localapi"
)

func (s *Server) changeHost(w http.ResponseWriter, r *http.Request) error {
	var req localapi.HostChange
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req == (localapi.HostChange{}) {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "nothing to change", Hint: "give name, default, tools or retry"}
	}
	h, err := s.opts.Hosts.ChangeHost(r.Context(), r.PathValue("name"), req)
	if err != nil {
		return err
	}
	return reply(w, h)
}

// ChangeHost renames the paired host of that name, makes it the default one, switches its tools or tries to reach it now.
func (c *Client) ChangeHost(ctx context.Context, name string, change localapi.HostChange) (localapi.HostStatus, error) {
	var h localapi.HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/hosts/"+segment(name), change, &h)
}

func (s *Server) offer(w http.ResponseWriter, r *http.Request) error {
	var req localapi.PairRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Token != "" {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "pairing by a code needs no token", Hint: "POST /v1/hosts pairs with a token"}
	}
	o, err := s.opts.Hosts.Offer(r.Context(), req)
	if err != nil {
		return err
	}
	return reply(w, o)
}

func (s *Server) finish(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	h, err := s.opts.Hosts.Finish(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, h)
}

// Offer begins to pair by a code. An offer without an ID says that the host pairs by tokens alone, or, with Paired, that it is paired
// already.
func (c *Client) Offer(ctx context.Context, r localapi.PairRequest) (localapi.PairOffer, error) {
	var o localapi.PairOffer
	return o, c.do(ctx, http.MethodPost, "/v1/pairings", r, &o)
}

// Finish blocks until the offer with that ID was approved at the host, has expired or ctx ends, after which it is over.
func (c *Client) Finish(ctx context.Context, id string) (localapi.HostStatus, error) {
	var h localapi.HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/pairings/"+segment(id), struct{}{}, &h)
}
