package oidc

import (
	"net/http"
	"time"

	"tether/host"
)

const (
	maxLogout     = 64 << 10 // bytes of a logout request
	maxLoggedOut  = 4096     // stored ids of logout tokens
	maxLogoutLife = time.Hour
)

// logout ends sessions at the provider's request, by back-channel logout (OpenID Connect Back-Channel Logout 1.0). The token is checked
// like an ID token, and accepted once.
func (p *Provider) logout(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogout)
	raw := r.PostFormValue("logout_token")
	ctx, done, err := p.ask(r.Context())
	if err != nil {
		http.Error(w, errManyLogins.text, errManyLogins.status)
		return
	}
	defer done()
	d, err := p.discover(ctx)
	if err != nil {
		http.Error(w, errAway.text, errAway.status)
		return
	}
	token, err := d.verifier.VerifyLogout(ctx, raw)
	if err != nil {
		p.log.Warn().Str("remote", r.RemoteAddr).Err(err).Msg("logout refused")
		http.Error(w, "the logout token is not valid", http.StatusBadRequest)
		return
	}
	if !p.first(token.TokenID, token.Expiry) {
		http.Error(w, "this logout token was used already", http.StatusBadRequest)
		return
	}
	ended := p.endAll(token.Subject, token.SessionID)
	p.audit(host.AuditEnded, r.RemoteAddr, "", "logged out by the identity provider")
	p.log.Info().Int("sessions", ended).Msg("logged out by the identity provider")
	w.WriteHeader(http.StatusOK)
}

// first reports whether a logout token is new. A token that is valid for longer than an hour could be replayed after its id was dropped,
// which only ends sessions again.
func (p *Provider) first(id string, expires time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, seen := p.loggedOut[id]; seen || len(id) > maxText || len(p.loggedOut) >= maxLoggedOut {
		return false
	}
	if most := time.Now().Add(maxLogoutLife); expires.After(most) {
		expires = most
	}
	p.loggedOut[id] = expires
	return true
}

// endAll ends the sessions of a subject, or the session that the provider calls sid, and returns how many it has ended.
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
