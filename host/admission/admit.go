package admission

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"tether/ahp"
	"tether/host/rights"
)

// Logins knows the browsers that are logged in.
type Logins interface {
	// Find returns the principal of a cookie; ok is false if nobody is logged in by it.
	Find(cookie string) (p rights.Principal, ok bool)
}

// Admit returns the principal of a request, or why it is refused.
func (c *Checks) Admit(r *http.Request) (rights.Principal, *Refusal) {
	if !c.originAllowed(r) {
		return rights.Principal{}, ErrForeignPage
	}
	if strings.HasPrefix(r.URL.Path, ahp.SharePath) { // a login does not count here, and a guest not elsewhere
		if p, ok := c.Guest(r); ok {
			return p, nil
		}
		return rights.Principal{}, ErrNoToken
	}
	if c.Open() {
		if !c.nameAllowed(r) {
			return rights.Principal{}, ErrForeignName
		}
		return rights.Principal{Role: rights.RoleAdmin}, nil
	}
	token, ok := RequestToken(r)
	if ok && FromOtherPage(r) {
		return rights.Principal{}, ErrForeignPage
	}
	if !ok {
		// The page of this host, after a login. Other pages do not send this cookie, and
		// cannot have the host's name.
		if p, known := c.Browser(r); known && c.nameAllowed(r) && p.May(rights.Page) {
			return p, nil
		}
		return rights.Principal{}, ErrNoToken
	}
	return c.Authenticate(r.RemoteAddr, token)
}

// Authenticate returns the principal of a token. A token that the host knows is accepted
// at once, whatever else came from the same place: tokens have 128 bits or more, so
// guessing is hopeless even without the limit. The limit bounds the cost of wrong tokens:
// after too many from one place, the file of tokens is not read for that place, and a new
// token works only after the host has read the file by itself, at most a second later.
func (c *Checks) Authenticate(place, token string) (rights.Principal, *Refusal) {
	p, why := c.principalOf(place, token)
	p.Token = sha256.Sum256([]byte(token))
	return p, why
}

func (c *Checks) principalOf(place, token string) (rights.Principal, *Refusal) {
	if c.opts.Token != "" && sameToken(token, c.opts.Token) {
		return rights.Principal{Role: rights.RoleAdmin}, nil
	}
	if p, ok := c.opts.Guest(token); ok {
		return p, nil
	}
	if c.opts.Access != nil {
		if p, ok := c.opts.Access.Known(token); ok {
			return p, nil
		}
	}
	if why := c.Guessing(place); why != nil {
		return rights.Principal{}, why
	}
	if c.opts.Access != nil {
		if p, ok := c.opts.Access.Authenticate(token); ok {
			return p, nil
		}
	}
	c.Wrong(place)
	return rights.Principal{}, ErrWrongToken
}

// sameToken compares tokens in a time that reveals neither content nor length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Browser returns the principal of the request's cookie.
func (c *Checks) Browser(r *http.Request) (rights.Principal, bool) {
	cookie, err := r.Cookie(c.LoginCookie(r))
	if err != nil {
		return rights.Principal{}, false
	}
	return c.opts.Logins.Find(cookie.Value)
}

// Guest returns the guest whose cookie, or token, a request below ahp.SharePath shows. A
// cookie counts at a name of this host's alone.
func (c *Checks) Guest(r *http.Request) (rights.Principal, bool) {
	if token, ok := RequestToken(r); ok {
		return c.opts.Guest(token)
	}
	cookie, err := r.Cookie(c.GuestCookie(r))
	if err != nil || !c.nameAllowed(r) {
		return rights.Principal{}, false
	}
	return c.opts.Guest(cookie.Value)
}

// Open reports whether everybody is admitted.
func (c *Checks) Open() bool { return c.opts.Token == "" && c.opts.Access == nil }
