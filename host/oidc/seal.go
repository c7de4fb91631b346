package oidc

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// attemptTime is how long a login at the provider may take.
const attemptTime = 10 * time.Minute

// attempt is a browser that was sent to the provider. It travels in a cookie that only this host can open, and without other nodes only this
// run of it. So the host keeps no state for attempts, and a login begun in one browser cannot be finished in another.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Expires  time.Time `json:"e"`
	CLI      *purpose  `json:"c,omitempty"` // nil: the browser itself is to be logged in
}

// cookieName is the name of an attempt's cookie. With https, no other name below the host's domain can set it. Cookies do not distinguish
// ports, so without https the name does.
func (p *Provider) cookieName(r *http.Request) string {
	if p.secure {
		return "__Host-tether_login"
	}
	_, port, _ := net.SplitHostPort(r.Host)
	return "tether_login_" + port
}

// setAttempt gives the browser an attempt to keep; nil takes it away. The provider sends the browser back from another site, so that the
// cookie has to go along with links that are followed.
func (p *Provider) setAttempt(w http.ResponseWriter, r *http.Request, a *attempt) {
	c := &http.Cookie{Name: p.cookieName(r), Path: "/", MaxAge: -1, HttpOnly: true, Secure: p.secure, SameSite: http.SameSiteLaxMode}
	if a != nil {
		text, _ := json.Marshal(a) // strings and a time always can be
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(p.seal.Seal(nil, nil, text, []byte(Path))), int(attemptTime.Seconds())
	}
	http.SetCookie(w, c)
}

// attemptOf returns the attempt that a browser has kept; ok is false if there is none that is still valid.
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
