package local

import (
	"context"
	"net/http"
)

// TokenList is the answer to a list of the tokens that were made.
type TokenList struct {
	SchemaVersion int         `json:"schema_version"`
	Tokens        []TokenInfo `json:"tokens"`
}

// TokenRequest makes a token for an agent, or for the person's scripts.
type TokenRequest struct {
	Principal string `json:"principal"`
	Person    bool   `json:"person,omitempty"` // it is yours; principal is a name for it
}

// NewToken answers it. The token cannot be had again.
type NewToken struct {
	SchemaVersion int    `json:"schema_version"`
	Principal     string `json:"principal"`
	Person        bool   `json:"person,omitempty"`
	Token         string `json:"token"`
}

// tokens answers 404 where a server has none.
func (s *Server) tokens() (*Tokens, error) {
	if s.opts.Tokens == nil {
		return nil, &Error{Code: CodeNotFound, Message: "this daemon has no tokens"}
	}
	return s.opts.Tokens, nil
}

func (s *Server) listTokens(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	return reply(w, TokenList{SchemaVersion: SchemaVersion, Tokens: t.List()})
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	var req TokenRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	token, err := t.create(req.Principal, req.Person)
	if err != nil {
		return err
	}
	return reply(w, NewToken{SchemaVersion: SchemaVersion, Principal: req.Principal, Person: req.Person, Token: token})
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
	return reply(w, NewToken{SchemaVersion: SchemaVersion, Principal: userToken, Token: token})
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
func (c *Client) Tokens(ctx context.Context) (TokenList, error) {
	var l TokenList
	return l, c.do(ctx, http.MethodGet, "/v1/tokens", nil, &l)
}

// CreateToken makes a token for the agent called principal.
func (c *Client) CreateToken(ctx context.Context, principal string) (NewToken, error) {
	var t NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/tokens", TokenRequest{Principal: principal}, &t)
}

// CreatePersonToken makes a token for the person's scripts: name tells it from others.
func (c *Client) CreatePersonToken(ctx context.Context, name string) (NewToken, error) {
	var t NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/tokens", TokenRequest{Principal: name, Person: true}, &t)
}

// UserToken returns the token that acts as the person.
func (c *Client) UserToken(ctx context.Context) (NewToken, error) {
	var t NewToken
	return t, c.do(ctx, http.MethodPost, "/v1/token", struct{}{}, &t)
}

// RevokeToken ends the token of that name and all that it has opened; "user" is the person's own, which is replaced by another.
func (c *Client) RevokeToken(ctx context.Context, principal string) error {
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+segment(principal), nil, &struct{}{})
}
