package local

import (
	"net/http"

	"tether/agent/localapi"
)

// tokens answers 404 where a server has none.
func (s *Server) tokens() (*Tokens, error) {
	if s.opts.Tokens == nil {
		return nil, &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon has no tokens"}
	}
	return s.opts.Tokens, nil
}

func (s *Server) listTokens(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	return reply(w, localapi.TokenList{SchemaVersion: localapi.SchemaVersion, Tokens: t.List()})
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	var req localapi.TokenRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	token, err := t.create(req.Principal, req.Person)
	if err != nil {
		return err
	}
	return reply(w, localapi.NewToken{SchemaVersion: localapi.SchemaVersion, Principal: req.Principal, Person: req.Person, Token: token})
}

// showToken answers with the person's own token.
func (s *Server) showToken(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	token, err := t.User()
	if err != nil {
		return err
	}
	return reply(w, localapi.NewToken{SchemaVersion: localapi.SchemaVersion, Principal: userToken, Token: token})
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	if err := t.Revoke(r.PathValue("principal")); err != nil {
		return err
	}
	return reply(w, struct{}{})
}
