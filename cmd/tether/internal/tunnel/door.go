package tunnel

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tether/internal/loopback"
)

// Door lets guests to the pages of a private host that are for them, and to nothing else
// of it. It serves plain HTTP on loopback; what ends TLS is in front of it. It is safe
// for concurrent use.
type Door struct {
	paths []string
	proxy *httputil.ReverseProxy
	at    atomic.Pointer[url.URL] // where guests find it
	open  atomic.Int32            // requests and connections
}

// maxOpen bounds the requests and connections at a time, of all guests.
const maxOpen = 200

// headerWithin and idleWithin bound how long a client may take.
const (
	headerWithin = 10 * time.Second
	idleWithin   = 2 * time.Minute
)

// NewDoor returns a door to the host at that address, HOST:PORT. A path that ends in "/"
// stands for all paths below it.
func NewDoor(host string, paths ...string) *Door {
	d := &Door{paths: paths}
	d.proxy = &httputil.ReverseProxy{
		FlushInterval: -1, // events are sent as they come
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: host})
			r.Out.Host = host // the host takes no other name than its own; ServeHTTP has checked the one that the client gave
			if r.In.Header.Get("Origin") != "" {
				r.Out.Header.Set("Origin", "http://"+host)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if at := d.at.Load(); at != nil && at.Scheme == "https" {
				for i, c := range r.Header["Set-Cookie"] {
					r.Header["Set-Cookie"][i] = c + "; Secure"
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the host has ended", http.StatusBadGateway)
		},
	}
	return d
}

// FoundAt tells the door its URL.
func (d *Door) FoundAt(text string) {
	if u, err := url.Parse(text); err == nil {
		d.at.Store(u)
	}
}

// Server returns a server for the door. The caller serves and closes it.
func (d *Door) Server() *http.Server {
	return &http.Server{Handler: d, ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: 16 << 10}
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.open.Add(-1)
	switch {
	case d.open.Add(1) > maxOpen:
		http.Error(w, "too many guests", http.StatusServiceUnavailable)
	case !d.ours(r):
		http.Error(w, "this page may not connect", http.StatusForbidden)
	case !d.has(r.URL):
		http.NotFound(w, r)
	default:
		d.proxy.ServeHTTP(w, r)
	}
}

// has reports whether guests may see the path. A path that is not in its plain form is
// none of ours.
func (d *Door) has(u *url.URL) bool {
	if u.RawPath != "" || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/.") {
		return false
	}
	return slices.ContainsFunc(d.paths, func(p string) bool { return u.Path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(u.Path, p) })
}

// ours reports whether the request names this door, and comes from its own page or from
// no page. Other names could be those of an attacker that resolve to this machine (DNS
// rebinding).
func (d *Door) ours(r *http.Request) bool {
	at := d.at.Load()
	if !isAddress(r.Host) && (at == nil || !strings.EqualFold(r.Host, at.Host)) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	if at != nil && strings.EqualFold(origin, at.Scheme+"://"+at.Host) {
		return true
	}
	return isAddress(r.Host) && strings.EqualFold(origin, "http://"+r.Host)
}

// isAddress reports whether a host, with or without a port, is an address on loopback.
func isAddress(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return loopback.Is(name)
}
