package oidc

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"tether/host/admission"
)

// attemptTime is how long a login at the provider may take.
const attemptTime = 10 * time.Minute

// attempt is the state of a browser that was sent to the provider. It is in a cookie that
// only this host can decrypt; a host without other nodes can do so only until it is
// restarted. So the host keeps no state for attempts, and a login begun in one browser
// cannot be finished in another.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Expires  time.Time `json:"e"`
	CLI      *purpose  `json:"c,omitempty"` // nil: to log in the browser itself
	Again    bool      `json:"a,omitempty"` // the person was to log in at the provider, whether they were logged in there or not
}

// cookieName returns the name of an attempt's cookie.
func (p *Provider) cookieName(r *http.Request) string {
	return admission.CookieName("login", r, p.secure)
}

// setAttempt stores an attempt in the browser; nil removes it. The browser returns from
// another site, the provider's, so the cookie must be sent with links from other sites.
func (p *Provider) setAttempt(w http.ResponseWriter, r *http.Request, a *attempt) {
	c := &http.Cookie{Name: p.cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, Secure: p.secure, SameSite: http.SameSiteLaxMode}
	if a != nil {
		text, _ := json.Marshal(a) // cannot fail: strings and a time
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(p.seal.Seal(nil, nil, text, []byte(Path))), int(attemptTime.Seconds())
	}
	http.SetCookie(w, c)
}

// attemptOf returns the attempt that is stored in a browser; ok is false if there is none
// that is still valid.
func (p *Provider) attemptOf(r *http.Request) (a attempt, ok bool) {
	c, err := r.Cookie(p.cookieName(r))
	if err != nil {
		return a, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return a, false
	}
	text, err := p.seal.Open(nil, nil, sealed, []byte(Path))
	if err != nil || json.Unmarshal(text, &a) != nil {
		return a, false
	}
	return a, time.Now().Before(a.Expires)
}
