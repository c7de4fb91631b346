// Package admission has the checks in front of the doors of a host: by which name and
// from which page a request comes, what it shows of its sender, how many wrong tokens its
// place has sent, and how it is refused. It knows nothing of terminals.
package admission

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/loopback"
)

// Options configure Checks.
type Options struct {
	// Token is the token of clients of rights.RoleAdmin, and Access knows further ones.
	// Without both, everybody is admitted.
	Token  string
	Access rights.Authenticator
	Logins Logins
	// Guest returns whose token of a guest one is; ok is false if it is none.
	Guest func(token string) (p rights.Principal, ok bool)
	// Origins are the hosts (with port, if it is not the scheme's own) of web pages that
	// may send requests besides pages that this host serves at an address.
	Origins []string
	// Secure says that browsers use https although requests come by http.
	Secure bool
	// Nodes says that there are other nodes to tell of wrong tokens.
	Nodes bool
	// Log logs and records a refused request.
	Log func(r *http.Request, why *Refusal)
}

// Checks are the checks of one host. Their methods may be called concurrently.
type Checks struct {
	opts Options // set once

	tokens   bounded.Rates // limits wrong tokens by place; the limiters have locks of their own
	links    bounded.Rates // limits links that do not work
	logLimit bounded.Rates // limits log lines about other refusals
	untold   untoldTries
}

// New returns the checks of a host.
func New(o Options) *Checks {
	c := &Checks{opts: o, tokens: newTries(), links: newTries(), logLimit: newTries()}
	if o.Nodes {
		c.untold.all = map[string]int{}
	}
	return c
}

// HTTPS reports whether the browser uses https.
func (c *Checks) HTTPS(r *http.Request) bool { return r.TLS != nil || c.opts.Secure }

// nameAllowed reports whether the request's name for this host cannot be an attacker's
// name that resolves to this machine (DNS rebinding).
func (c *Checks) nameAllowed(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	return isAddress(strings.Trim(name, "[]")) || c.named(r.Host)
}

// named reports whether the operator has named that host of pages.
func (c *Checks) named(host string) bool {
	return slices.ContainsFunc(c.opts.Origins, func(o string) bool { return strings.EqualFold(o, host) })
}

// originAllowed reports whether the web page that has sent the request may do so. A page
// is this host's own if its origin is the host of the request and that is an address or
// localhost: a name could be an attacker's that resolves to this machine (DNS rebinding).
// Where browsers use https, a page that came by http is refused, since anybody on its way
// could have written it; only this machine's own pages have not been on the way.
func (c *Checks) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme == "http" && c.HTTPS(r) && !loopback.Is(u.Hostname()) {
		return false
	}
	return c.named(u.Host) || strings.EqualFold(u.Host, r.Host) && isAddress(u.Hostname())
}

// FromHere returns a refusal of a request of the page that does not come by a name of
// this host, or comes from another page. A program may open a guest's link by any name.
func (c *Checks) FromHere(r *http.Request) *Refusal {
	_, bearer := RequestToken(r)
	switch {
	case !bearer && !c.nameAllowed(r) && !(r.URL.Path == OpenPath && FromProgram(r)):
		return ErrForeignName
	case !c.originAllowed(r), FromOtherPage(r) && !Followed(r):
		return ErrForeignSite
	}
	return nil
}

// OpenPath is where guests open a link.
const OpenPath = ahp.SharePath + "open"

// CookieName is the name of a cookie of the host's. With https, no other name below the
// host's domain and no port without TLS can set it; otherwise the name distinguishes
// ports, which cookies do not.
func CookieName(of string, r *http.Request, https bool) string {
	if https {
		return "__Host-tether_" + of
	}
	_, port, _ := net.SplitHostPort(r.Host)
	return "tether_" + of + "_" + cmp.Or(port, "80")
}

// LoginCookie is the name of the cookie of a logged-in browser, and GuestCookie of a
// guest's, which has nothing to do with it.
func (c *Checks) LoginCookie(r *http.Request) string { return CookieName("host", r, c.HTTPS(r)) }

// GuestCookie is the name of the cookie of a guest.
func (c *Checks) GuestCookie(r *http.Request) string { return CookieName("guest", r, c.HTTPS(r)) }

// SetCookie gives a browser a cookie, which it sends only with requests that begin at the
// page itself, and no script sees.
func (c *Checks) SetCookie(w http.ResponseWriter, r *http.Request, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.HTTPS(r)})
}
