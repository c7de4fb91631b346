package local

import (
	"context"
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

// Tokens lists the tokens that were made, the oldest first.
func (c *Client) Tokens(ctx context.Context) (localapi.TokenList, error) {
	var l localapi.TokenList
	return l, c.do(ctx, http.MethodGet, "/v1/tokens", nil, &l)
}

// CreateToken makes a token for the agent called principal.
func (c *Client) CreateToken(ctx context.Context, principal string) (localapi.NewToken, error) {
	var t localapi.NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/tokens", localapi.TokenRequest{Principal: principal}, &t)
}

// CreatePersonToken makes a token for the person's scripts: name tells it from others.
func (c *Client) CreatePersonToken(ctx context.Context, name string) (localapi.NewToken, error) {
	var t localapi.NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/tokens", localapi.TokenRequest{Principal: name, Person: true}, &t)
}

// UserToken returns the token that acts as the person.
func (c *Client) UserToken(ctx context.Context) (localapi.NewToken, error) {
	var t localapi.NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/token", struct{}{}, &t)
}

// RevokeToken ends the token of that name and all that it has opened; "user" is the person's own, which is replaced by another.
func (c *Client) RevokeToken(ctx context.Context, principal string) error {
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+segment(principal), nil, &struct{}{})
}
