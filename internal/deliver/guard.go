package deliver

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

	"tether/internal/webproxy"
)

const (
	maxURL = 2048 // bytes
	// AttemptTime bounds one request with its answer.
	AttemptTime = 10 * time.Second
	headerTime  = 8 * time.Second // until the answer begins
	maxHeaders  = 64 << 10
)

// errAddress is the error of a connection to an address that is not allowed.
var errAddress = errors.New("the address is not publicly reachable, and no others are allowed here")

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

// Guard decides where requests may go: by default only to addresses that are publicly
// routed.
type Guard struct {
	// Allow has networks in which receivers may be besides. http is allowed if the URL
	// names a loopback address in one of them.
	Allow []netip.Prefix
	// Any allows all addresses, for receivers that the person has named; http is allowed
	// on loopback. Requests then go through the proxy that the environment names.
	Any bool
}

// Allowed reports whether a connection to an address is allowed.
func (g Guard) Allowed(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	if g.Any || slices.ContainsFunc(g.Allow, in) {
		return true
	}
	return (ip.Is4() || global.Contains(ip)) && !slices.ContainsFunc(special, in)
}

// dial connects to an allowed one of the present addresses of a name. It resolves the
// name itself and connects to the checked address, so that no later answer of a name
// server can lead elsewhere.
func (g Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
		if !g.Allowed(ip) || name == localhost && !ip.IsLoopback() {
			continue
		}
		var conn net.Conn
		if conn, err = (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(ip.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// localhost is the only name that stands for loopback, whatever it resolves to.
const localhost = "localhost"

// Check returns the URL in its canonical form, or an error that says why nothing is sent
// there, without the URL. It does not resolve names.
func (g Guard) Check(text string) (string, error) {
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
	case err == nil && !g.Allowed(ip):
		return "", errAddress
	case err != nil && numeric(name): // some resolvers treat names such as 0x7f.1 as addresses
		return "", errors.New("an address must be a plain dotted quad")
	case u.Scheme == "http" && err == nil && ip.IsLoopback(): // which is allowed here
	case u.Scheme == "http" && g.Any && name == localhost:
	case u.Scheme == "http" && g.Any:
		return "", errors.New("the URL must begin with https://; http is only for this machine, such as http://127.0.0.1:8080/")
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

// Client returns a client that connects only to allowed addresses, follows no redirect,
// and keeps no connection. Unless Any is set, it uses no proxy, which would resolve names
// by itself. secure is for tests; nil means Go's defaults.
func (g Guard) Client(secure *tls.Config) *http.Client {
	t := &http.Transport{DialContext: g.dial, TLSClientConfig: secure, TLSHandshakeTimeout: headerTime, ResponseHeaderTimeout: headerTime,
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders, DisableCompression: true}
	if g.Any {
		t.Proxy = webproxy.For
	}
	return &http.Client{Timeout: AttemptTime, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// HostOf returns the host of a checked URL.
func HostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}
