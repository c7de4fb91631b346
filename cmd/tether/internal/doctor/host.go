package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/cmd/tether/internal/display"
	"tether/internal/version"
	"tether/internal/webproxy"
)

// checkHosts checks the link to each host. If the link is down, it checks each step of
// the connection.
func checkHosts(ctx context.Context, m *machine) []Check {
	switch {
	case m.down != nil:
		return []Check{{Name: "hosts", Result: Skip, Reason: "the daemon is not running, so no host is connected"}}
	case len(m.status.Hosts) == 0:
		return []Check{{Name: "hosts", Result: Warn, Reason: "no host is paired", Fix: "tether pair wss://HOST", Doc: "README.md"}}
	}
	found := make([][]Check, len(m.status.Hosts))
	var wg sync.WaitGroup
	for i := range m.status.Hosts {
		wg.Go(func() { found[i] = checkHost(ctx, m, &m.status.Hosts[i]) })
	}
	wg.Wait()
	var all []Check
	for _, some := range found {
		all = append(all, some...)
	}
	return all
}

func checkHost(ctx context.Context, m *machine, h *localapi.HostStatus) []Check {
	name := "host " + display.Printable(h.Name, 64)
	if h.State == "online" {
		c := Check{Name: name, Result: OK, Reason: fmt.Sprintf("online for %s, protocol %s; shared terminals: %s", display.Ago(time.Since(h.Since)), h.Protocol, display.LentCount(*h))}
		for _, l := range h.Lent {
			if l.Problem != "" {
				c.Result, c.Reason, c.Fix = Warn, l.ID+" is not visible there: "+l.Problem, "if this persists: tether unlend "+l.ID+", then tether lend "+l.ID
			}
		}
		return append([]Check{c}, checkClock(ctx, name, h)...)
	}
	r := route{name: name, url: h.URL}
	r.all = []Check{{Name: name, Result: Fail, Reason: h.State + ": " + h.Error, Fix: "see the checks below", Doc: "docs/RELIABILITY.md"}}
	if n := len(h.Lent); n > 0 {
		r.all[0].Reason += fmt.Sprintf("; %d shared terminals are not visible there", n)
	}
	if h.State == "unsupported" && !h.NextRetry.IsZero() {
		r.all[0].Reason += "; next attempt in " + display.Ago(time.Until(h.NextRetry))
	}
	r.walk(ctx, m, h)
	if !slices.ContainsFunc(r.all[1:], func(c Check) bool { return c.Result == Fail }) {
		r.all[0].Fix = map[string]string{
			"refused":     "tether pair " + h.URL + ", with a token that may share terminals, unless the host pairs with a code",
			"unsupported": "use a host that accepts terminals of other machines, such as tether-host",
		}[h.State]
		r.all[0].Fix = cmp.Or(r.all[0].Fix, "wait for the next attempt, or: tether host retry "+h.Name)
	}
	return r.all
}

// route collects the checks of the steps of a connection to a host.
type route struct {
	name, url string
	all       []Check
}

func (r *route) ok(step, reason string) { r.add(step, OK, reason, "") }

func (r *route) add(step string, result Result, reason, fix string) {
	r.all = append(r.all, Check{Name: r.name + ": " + step, Result: result, Reason: reason, Fix: fix})
}

// walk checks the steps until one fails.
func (r *route) walk(ctx context.Context, m *machine, h *localapi.HostStatus) {
	u, err := url.Parse(h.URL)
	if err != nil {
		r.add("URL", Fail, "the URL is invalid", "tether unpair "+h.Name+", then pair again")
		return
	}
	if proxy := m.proxy(u); proxy != nil {
		if r.throughProxy(ctx, proxy) {
			r.enter(ctx, m, h)
		}
		return
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		r.add("DNS", Fail, err.Error(), "check the name and your network")
		return
	}
	r.ok("DNS", fmt.Sprintf("%d addresses, the first is %s", len(addresses), addresses[0]))
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), portOf(u)))
	if err != nil {
		r.add("TCP", Fail, err.Error(), "check that the host is running and that no firewall blocks port "+portOf(u))
		return
	}
	defer conn.Close()
	r.ok("TCP", "connected to "+conn.RemoteAddr().String())
	if u.Scheme == "wss" && !r.tls(ctx, conn, hostTLS(h, u.Hostname())) {
		return
	}
	r.all = append(r.all, checkClock(ctx, r.name, h)...)
	r.enter(ctx, m, h)
}

// throughProxy checks whether the proxy accepts connections. Only the proxy can reach the
// host behind it.
func (r *route) throughProxy(ctx context.Context, proxy *url.URL) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), portOf(proxy)))
	if err != nil {
		r.add("proxy", Fail, proxy.Redacted()+" (from the environment): "+err.Error(), "correct HTTPS_PROXY or ALL_PROXY, or add the host to NO_PROXY; then apply it with: tether daemon --replace --background")
		return false
	}
	conn.Close()
	r.ok("proxy", proxy.Redacted()+" (from the environment) answers; the checks below go through it")
	return true
}

func (r *route) tls(ctx context.Context, conn net.Conn, believed *tls.Config) bool {
	secured := tls.Client(conn, believed)
	if err := secured.HandshakeContext(ctx); err != nil {
		fix := "check that the certificate is valid for this name, that this machine trusts its issuer, and that the clock is right"
		if errors.Is(err, client.ErrPin) {
			fix = "check that this is the right host; if its certificate has changed, pair again with the new --pin"
		}
		r.add("TLS", Fail, err.Error(), fix)
		return false
	}
	state := secured.ConnectionState()
	r.ok("TLS", fmt.Sprintf("%s, valid until %s", tls.VersionName(state.Version), state.PeerCertificates[0].NotAfter.Format(time.DateOnly)))
	return true
}

// hostTLS returns the TLS configuration for a host. It trusts the certificate with the
// host's pin or, without a pin, the system's authorities.
func hostTLS(h *localapi.HostStatus, name string) *tls.Config {
	pin, _ := client.ParsePin(h.Pin) // the daemon has checked it
	believed := pin.TLS(name)
	if believed == nil {
		believed = &tls.Config{}
	}
	believed.ServerName = name
	return believed
}

// enter opens a WebSocket with the host's token, as the daemon does.
func (r *route) enter(ctx context.Context, m *machine, h *localapi.HostStatus) {
	e, found, err := hosts.Endpoint(m.Dirs, h.Name)
	if err != nil || !found {
		r.add("token", Skip, "the host's token cannot be read here", "")
		return
	}
	conn, err := client.Connect(ctx, e, client.Options{ClientID: client.NewID(), Info: ahp.Implementation{Name: "tether", Version: version.Text()}, Meta: ahp.NewClientMeta(),
		ReadLimit: client.LenderReadLimit, MaxValues: client.LenderMaxValues})
	var version *ahp.VersionError
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		r.add("token", Fail, "the host refuses the token", "get a new token, then tether pair "+h.URL+" --token-file FILE")
	case errors.As(err, &version):
		r.add("protocol", Fail, version.Error(), "update tether, or the host")
	case err != nil:
		r.add("WebSocket", Fail, err.Error(), "check that all proxies on the path allow WebSockets")
	default:
		defer conn.Close()
		if marker, _ := ahp.FindClientTerminals(conn.Result()); marker.Forbids() {
			r.add("token", Fail, "the token may only observe", "get a token that may share terminals (tether-host token create NAME --role machine), then tether pair "+h.URL+" --token-file FILE")
			return
		}
		r.ok("WebSocket", "the host accepts this machine")
	}
}

// checkClock compares this machine's clock with the host's, if the host sends the time.
func checkClock(ctx context.Context, name string, h *localapi.HostStatus) []Check {
	u, err := url.Parse(h.URL)
	if err != nil {
		return nil
	}
	u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	u.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return nil
	}
	began := time.Now()
	transport := &http.Transport{Proxy: webproxy.For, TLSClientConfig: hostTLS(h, u.Hostname())}
	defer transport.CloseIdleConnections()
	plain := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := plain.Do(req)
	if err != nil {
		return nil
	}
	resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil
	}
	c := Check{Name: name + ": clock", Result: OK, Reason: "within 30 s of this machine's clock"}
	if text := display.Skew(theirs.Sub(began.Add(time.Since(began) / 2)).Round(time.Second)); text != "" {
		c.Result, c.Reason, c.Fix = Warn, text, "set the clock: certificates and tokens expire by it"
	}
	return []Check{c}
}

// proxyOf returns the proxy that the environment names for the URL, or nil. The
// connection itself reports a wrong one.
func proxyOf(u *url.URL) *url.URL {
	proxy, _ := webproxy.Of(u)
	return proxy
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"ws": "80", "wss": "443", "http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
}
