package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"tether/internal/jsonspan"
	"tether/pairing"
)

var (
	errBadBody  = &refusal{http.StatusBadRequest, "not a request of tether login"}
	errNoLogin  = &refusal{http.StatusUnauthorized, "this login is over: run tether login again"}
	errInternal = &refusal{http.StatusInternalServerError, "the host cannot do this now; its log says why"}
)

// serveCLI answers a request of the command line. It refuses requests from browsers,
// because no page may send one.
func (p *Provider) serveCLI(w http.ResponseWriter, r *http.Request, what string) {
	answer, err := p.answerCLI(w, r, what)
	if err != nil {
		p.refuseCLI(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client is gone
}

func (p *Provider) refuseCLI(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Content-Type", "application/json")
	why, ok := errors.AsType[*refusal](err)
	if !ok {
		why = errInternal
	}
	if !ok && p.opts.Noted(r) {
		p.log.Warn().Str("remote", r.RemoteAddr).Err(err).Msg("request of the command line refused")
	}
	w.WriteHeader(why.status)
	_ = json.NewEncoder(w).Encode(pairing.Refusal{Code: "login", Message: why.text})
}

// answerCLI is serveCLI without HTTP.
func (p *Provider) answerCLI(w http.ResponseWriter, r *http.Request, what string) (any, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Origin") != "" || err != nil || kind != "application/json" {
		return nil, errBadBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, pairing.MaxMessage)
	switch what {
	case "page":
		return pairing.LoginPage{URL: p.opts.PublicURL + pairing.LoginPath}, nil
	case "begin":
		b, err := body[pairing.LoginBegin](r)
		if err != nil {
			return nil, err
		}
		return p.begun(r.RemoteAddr, b)
	case "token":
		c, err := body[pairing.LoginClaim](r)
		if err != nil {
			return nil, err
		}
		return p.claim(r.Context(), c)
	case "approve":
		a, err := body[pairing.LoginApprove](r)
		if err != nil {
			return nil, err
		}
		return struct{}{}, p.approve(r, a)
	case "logout":
		return struct{}{}, p.logoutCLI(r)
	}
	return nil, &refusal{http.StatusNotFound, "no such request"}
}

func body[T any](r *http.Request) (v T, err error) {
	if jsonspan.Decode(r.Body, &v) != nil {
		return v, errBadBody
	}
	return v, nil
}

// bearer returns the token in the Authorization header.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// approve admits a machine as belonging to the calling person.
func (p *Provider) approve(r *http.Request, a pairing.LoginApprove) error {
	principal, ok := p.Known(bearer(r))
	if !ok {
		return errNoLogin
	}
	if p.opts.Approve == nil {
		return &refusal{http.StatusNotFound, "this host pairs no machines by a login"}
	}
	if err := p.opts.Approve(principal, a.Code, a.Name); err != nil {
		return &refusal{http.StatusForbidden, err.Error()}
	}
	return nil
}

// logoutCLI ends the caller's session.
func (p *Provider) logoutCLI(r *http.Request) error {
	p.mu.Lock()
	s := p.sessions[sha256.Sum256([]byte(bearer(r)))]
	p.mu.Unlock()
	if s == nil {
		return errNoLogin
	}
	s.end(errOver)
	return nil
}
