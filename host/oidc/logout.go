package oidc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"

	"tether/host/rights"
	"tether/internal/jsonspan"
)

const (
	maxLogout     = 64 << 10 // bytes of a logout request
	maxLoggedOut  = 4096     // stored ids of logout tokens
	maxLogoutLife = time.Hour
)

// logout ends sessions at the provider's request, by back-channel logout (OpenID Connect
// Back-Channel Logout 1.0). The token is checked like an ID token, and accepted once.
func (p *Provider) logout(w http.ResponseWriter, r *http.Request) {
	token, err := p.logoutToken(w, r)
	if err != nil {
		p.refuseLogout(w, r, err)
		return
	}
	if !p.first(token.TokenID, token.Expiry) {
		http.Error(w, "this logout token was used already", http.StatusBadRequest)
		return
	}
	ended := p.endAll(token.Subject, token.SessionID)
	p.audit(rights.AuditEnded, r.RemoteAddr, "", "logged out by the identity provider")
	p.log.Info().Int("sessions", ended).Msg("logged out by the identity provider")
	w.WriteHeader(http.StatusOK)
}

func (p *Provider) refuseLogout(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", strconv.Itoa(int(keysGap.Seconds())))
		http.Error(w, errManyLogouts.text, errManyLogouts.status)
	case errors.Is(err, errAway):
		http.Error(w, errAway.text, errAway.status)
	default:
		if p.opts.Noted(r) {
			p.log.Warn().Str("remote", r.RemoteAddr).Err(err).Msg("logout refused")
		}
		http.Error(w, "the logout token is not valid", http.StatusBadRequest)
	}
}

// logoutToken returns the logout token of a request. Anybody can send one, so what costs
// least is checked first: what the token says, then whether a known key has signed it.
// Only then it takes a slot, and waits for newer keys.
func (p *Provider) logoutToken(w http.ResponseWriter, r *http.Request) (*openid.LogoutToken, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogout)
	raw := r.PostFormValue("logout_token")
	if err := p.plausible(raw); err != nil {
		return nil, err
	}
	if d := p.description(); d != nil {
		if token, err := d.known.VerifyLogout(r.Context(), raw); err == nil {
			return token, nil
		}
	}
	ctx, done, err := p.ask(r, &p.ends)
	if err != nil {
		return nil, err
	}
	defer done()
	d, err := p.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	return d.verifier.VerifyLogout(ctx, raw)
}

// plausible reports whether a logout token would be valid if the provider has signed it.
// It requests nothing and checks no signature.
func (p *Provider) plausible(raw string) error {
	var header struct {
		Algorithm string `json:"alg"`
	}
	var says struct {
		Issuer   string          `json:"iss"`
		Audience json.RawMessage `json:"aud"`
		Expiry   float64         `json:"exp"`
		ID       string          `json:"jti"`
		Subject  string          `json:"sub"`
		Session  string          `json:"sid"`
		Nonce    json.RawMessage `json:"nonce"`
		Events   struct {
			Logout json.RawMessage `json:"http://schemas.openid.net/event/backchannel-logout"`
		} `json:"events"`
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || !decoded(parts[0], &header) || !decoded(parts[1], &says) {
		return errors.New("it is no signed token")
	}
	audience := []string{""}
	if jsonspan.Unmarshal(says.Audience, &audience) != nil && jsonspan.Unmarshal(says.Audience, &audience[0]) != nil {
		return errors.New("it has no audience")
	}
	switch {
	case !slices.Contains(algorithms, header.Algorithm):
		return errors.New("its algorithm has no public key")
	case says.Issuer != p.opts.Issuer || !slices.Contains(audience, p.opts.ClientID):
		return errors.New("its issuer or its audience is another one")
	case says.Expiry < float64(time.Now().Unix()):
		return errors.New("it has expired")
	case says.ID == "" || len(says.ID) > maxText || says.Subject == "" && says.Session == "" || len(says.Nonce) > 0 || len(says.Events.Logout) == 0:
		return errors.New("it announces no logout")
	}
	return nil
}

// decoded decodes a part of a token and reports whether it is JSON.
func decoded(part string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && jsonspan.Unmarshal(data, v) == nil
}

// first reports whether a logout token is new. A token that is valid for longer than an
// hour could be replayed after its id was dropped, which only ends sessions again.
func (p *Provider) first(id string, expires time.Time) bool {
	if most := time.Now().Add(maxLogoutLife); expires.After(most) {
		expires = most
	}
	return len(id) <= maxText && p.loggedOut.Add(id, struct{}{}, expires)
}

// endAll ends the sessions of a subject, or the session that the provider calls sid, and
// returns how many it has ended.
func (p *Provider) endAll(subject, sid string) (ended int) {
	p.mu.Lock()
	var ends []*session
	for _, s := range p.sessions {
		if (subject == "" || s.subject == subject) && (sid == "" || s.sid == sid) {
			ends = append(ends, s)
		}
	}
	p.mu.Unlock()
	for _, s := range ends {
		s.end(errLoggedOut)
	}
	return len(ends)
}
