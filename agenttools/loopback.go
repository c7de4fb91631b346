package agenttools

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// loopbacks are the addresses that dialLoopback tries in turn, because a server may listen on only one of them.
var loopbacks = []string{"127.0.0.1", "::1"}

func dialLoopback(ctx context.Context, port string) (net.Conn, error) {
	var d net.Dialer
	var errs []error
	for _, host := range loopbacks {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
}

// newProbeClient returns a client that connects only to the loopback interface, whatever a name resolves to and wherever a server
// redirects: an agent must not reach the network through the daemon. Certificates are not checked, since development servers use self-made
// ones and nothing secret is sent.
func newProbeClient() *http.Client {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return dialLoopback(ctx, port)
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return errors.New("too many redirects")
			}
			_, err := loopbackURL(req.URL.String())
			return err
		},
	}
}

// loopbackURL parses an http or https URL and checks that it names this machine.
func loopbackURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("url has %d bytes, at most %d are allowed", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url %.60q must begin with http:// or https://", text)
	case u.User != nil:
		return nil, errors.New("url must not contain a user name or password")
	case !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("url names %.60q, it must be localhost, 127.0.0.1 or [::1]", u.Hostname())
	}
	return u, nil
}

func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
