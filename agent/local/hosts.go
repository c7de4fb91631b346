package local

import (
	"net/http"

	"tether/agent/localapi"
)

func (s *Server) changeHost(w http.ResponseWriter, r *http.Request, req localapi.HostChange) error {
	if req == (localapi.HostChange{}) {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "nothing to change", Hint: "give name, default, tools or retry"}
	}
	h, err := s.opts.Hosts.ChangeHost(r.Context(), r.PathValue("name"), req)
	return answer(w, h, err)
}

func (s *Server) offer(w http.ResponseWriter, r *http.Request, req localapi.PairRequest) error {
	if req.Token != "" {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "pairing by a code needs no token", Hint: "POST /v1/hosts pairs with a token"}
	}
	o, err := s.opts.Hosts.Offer(r.Context(), req)
	return answer(w, o, err)
}

func (s *Server) finish(w http.ResponseWriter, r *http.Request) error {
	if err := decode(r, &struct{}{}); err != nil {
		return err
	}
	h, err := s.opts.Hosts.Finish(r.Context(), r.PathValue("id"))
	return answer(w, h, err)
}

func (s *Server) pair(w http.ResponseWriter, r *http.Request, req localapi.PairRequest) error {
	host, err := s.opts.Hosts.Pair(r.Context(), req)
	return answer(w, host, err)
}

func (s *Server) unpair(w http.ResponseWriter, r *http.Request) error {
	u, err := s.opts.Hosts.Unpair(r.Context(), r.PathValue("name"))
	return answer(w, u, err)
}
