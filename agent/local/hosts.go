package local

import (
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

func (s *Server) pair(w http.ResponseWriter, r *http.Request) error {
	var req localapi.PairRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	host, err := s.opts.Hosts.Pair(r.Context(), req)
	if err != nil {
		return err
	}
	return reply(w, host)
}

func (s *Server) unpair(w http.ResponseWriter, r *http.Request) error {
	u, err := s.opts.Hosts.Unpair(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return reply(w, u)
}
