package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	launchTime  = 10 * time.Minute // how long a launch link can be followed
	loginTime   = 12 * time.Hour   // how long a browser stays logged in
	maxLaunches = 256
	maxLogins   = 4096
)

// logins are the browsers that are logged in, and the links that log one in. Only hashes are kept, and nothing outlives the host.
// The zero value is ready to use.
type logins struct {
	mu       sync.Mutex
	launches map[[sha256.Size]byte]login
	browsers map[[sha256.Size]byte]login
}

// login is one of either.
type login struct {
	principal Principal
	until     time.Time
}

func (s login) over(now time.Time) bool {
	return !now.Before(s.until) || s.principal.live().Err() != nil
}

// add keeps a new secret in a map and returns it. The map gives way at its oldest entry.
func (s *logins) add(to *map[[sha256.Size]byte]login, p Principal, ttl time.Duration, most int) string {
	secret := rand.Text() // 128 bits of chance
	s.mu.Lock()
	defer s.mu.Unlock()
	if *to == nil {
		*to = make(map[[sha256.Size]byte]login)
	}
	now := time.Now()
	var oldest [sha256.Size]byte
	for hash, one := range *to {
		if one.over(now) {
			delete(*to, hash)
		} else if o, ok := (*to)[oldest]; !ok || one.until.Before(o.until) {
			oldest = hash
		}
	}
	if len(*to) >= most {
		delete(*to, oldest)
	}
	(*to)[sha256.Sum256([]byte(secret))] = login{p, now.Add(ttl)}
	return secret
}

// launch returns the code of a link that logs a browser in as p, once.
func (s *logins) launch(p Principal) string { return s.add(&s.launches, p, launchTime, maxLaunches) }

// follow uses a code up and returns whose it was.
func (s *logins) follow(code string) (Principal, bool) {
	hash := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.launches[hash]
	delete(s.launches, hash)
	return one.principal, ok && !one.over(time.Now())
}

// login returns the cookie of a browser that is logged in as p from now on.
func (s *logins) login(p Principal) string { return s.add(&s.browsers, p, loginTime, maxLogins) }

// find returns who is logged in with a cookie.
func (s *logins) find(cookie string) (Principal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.browsers[sha256.Sum256([]byte(cookie))]
	if !ok || one.over(time.Now()) {
		return Principal{}, false
	}
	// What the browser has opened ends with the session too.
	if one.principal.Live == nil {
		one.principal.Live = context.Background()
	}
	return one.principal, true
}

func (s *logins) logout(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.browsers, sha256.Sum256([]byte(cookie)))
}

// Launch returns the path, with its query, of a link that logs one browser in as p. It can be followed once, within ten minutes. The
// caller has seen to it that it is p who asks.
func (h *Host) Launch(p Principal) string { return launchPath + "?code=" + h.logins.launch(p) }

// cookieName is that of the session's cookie. Cookies do not tell ports apart, so the name does.
func cookieName(r *http.Request) string {
	port := "80"
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		port = p
	}
	return "tether_host_" + port
}

// setCookie logs the browser in. The cookie goes along only with requests that begin at the page itself, and no script sees it. It is an
// observer's, also that of an administrator: the page needs no more, and browsers send a cookie to every port of a machine, where a
// program may listen that an agent has started.
func (h *Host) setCookie(w http.ResponseWriter, r *http.Request, p Principal) {
	p.Role = RoleObserver
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: h.logins.login(p), Path: "/", MaxAge: int(loginTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || h.opts.Secure})
}

// browser returns who is logged in with the request's cookie.
func (h *Host) browser(r *http.Request) (Principal, bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return Principal{}, false
	}
	return h.logins.find(cookie.Value)
}

// nameAllowed reports whether the request asks for this host under a name that cannot be somebody else's: a name of an attacker's may
// resolve to this machine (DNS rebinding).
func (h *Host) nameAllowed(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if isAddress(strings.Trim(name, "[]")) {
		return true
	}
	for _, o := range h.opts.Origins {
		if strings.EqualFold(o, r.Host) {
			return true
		}
	}
	return false
}
