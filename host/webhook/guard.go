package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxURL        = 2048             // bytes
	attemptTime   = 10 * time.Second // for one request with its answer
	headerTime    = 8 * time.Second  // until the answer begins
	maxChallenge  = 64 << 10         // bytes read of the answer to a challenge
	maxAnswer     = 4 << 10          // of any other answer
	maxHeaders    = 64 << 10
	maxPerKey     = 8  // requests to one host, and of one principal, at a time
	maxDeliveries = 64 // requests at a time, of all subscriptions
)

// errAddress is the error of a connection to an address that is not allowed.
var errAddress = errors.New("the address is not publicly reachable, and this host allows no others")

// special has the networks that are not globally routable, or that lead to such networks
// (IANA's special-purpose registries; RFC 6890).
var special = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// global is the only part of IPv6 that is routed (RFC 4291).
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// guard decides where requests may go.
type guard struct{ allow []netip.Prefix }

// address reports whether a connection to an address is allowed.
func (g guard) address(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	if slices.ContainsFunc(g.allow, in) {
		return true
	}
	return (ip.Is4() || global.Contains(ip)) && !slices.ContainsFunc(special, in)
}

// dial connects to an allowed one of the present addresses of a name. It resolves the
// name itself and connects to the checked address, so that no later answer of a name
// server can lead elsewhere.
func (g guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	err = errAddress
	for _, ip := range found {
		if !g.address(ip) {
			continue
		}
		var conn net.Conn
		if conn, err = (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(ip.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// check returns the URL in its canonical form, or an error that says why events are not
// sent there. It does not resolve names.
func (g guard) check(text string) (string, error) {
	if len(text) > maxURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) {
		return "", fmt.Errorf("a URL has at most %d bytes of ASCII, without spaces and backslashes", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return "", errors.New("not a URL such as https://example.com/hook")
	}
	if u.User != nil || strings.Contains(text, "#") {
		return "", errors.New("a URL with a user or a fragment is refused")
	}
	name := strings.ToLower(u.Hostname())
	ip, err := netip.ParseAddr(name)
	switch {
	case err == nil && !g.address(ip):
		return "", errAddress
	case err != nil && numeric(name): // some resolvers treat names such as 0x7f.1 as addresses
		return "", errors.New("an address must be a plain dotted quad")
	case u.Scheme == "http" && err == nil && ip.IsLoopback(): // allowed by the operator
	case u.Scheme != "https":
		return "", errors.New("the URL must begin with https://")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return "", errors.New("not a URL such as https://example.com/hook")
	}
	if port == map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		port = ""
	}
	if u.Host = name; strings.Contains(name, ":") {
		u.Host = "[" + name + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// numeric reports whether the last label of a name is a number.
func numeric(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil
}

// client returns a client that connects only to allowed addresses. It uses no proxy,
// which would resolve names by itself, follows no redirect, and keeps no connection.
func (g guard) client(secure *tls.Config) *http.Client {
	return &http.Client{Timeout: attemptTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: g.dial, TLSClientConfig: secure, TLSHandshakeTimeout: headerTime, ResponseHeaderTimeout: headerTime,
			DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders, DisableCompression: true}}
}
