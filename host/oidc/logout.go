package oidc

import (
	"net/http"
	"time"

	"tether/host"
)

const (
	maxLogout     = 64 << 10 // bytes of a logout request
	maxLoggedOut  = 4096     // ids of logout tokens that are remembered
	maxLogoutLife = time.Hour
)

// logout ends sessions because the provider says so, by back-channel logout (OpenID Connect Back-Channel Logout 1.0). The token is checked
// like an ID token, and counts once.
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

// first reports whether a logout token was not seen before. One that lives longer than an hour could be replayed once it is forgotten,
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

// endAll ends the sessions of a subject, or the one that the provider calls sid, and returns how many.
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
