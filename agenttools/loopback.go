package agenttools

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tether/internal/loopback"
)

// Loopbacks returns the addresses of the loopback interface. A server may listen on only
// one of them.
func Loopbacks() []string { return []string{"127.0.0.1", "::1"} }

// reach returns the addresses at which a wait may connect to a port, see Locator. Without
// a locator, the daemon itself waits.
func reach(l Locator, port int, url bool) ([]string, error) {
	if l == nil {
		return Loopbacks(), nil
	}
	return l.Reach(port, url)
}

// dialLoopback connects to a port at the first of the addresses at which a server
// answers.
func dialLoopback(ctx context.Context, l Locator, port int, url bool) (net.Conn, error) {
	hosts, err := reach(l, port, url)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	var errs []error
	for _, host := range hosts {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
}

// newProbeClient returns a client that connects only to the loopback interface, whatever
// a name resolves to and wherever a server redirects, and there only to what the locator
// lets it reach: an agent must not reach anything through the daemon that it cannot reach
// itself. Certificates are not checked, since development servers use self-made ones and
// nothing secret is sent.
func newProbeClient(l Locator) *http.Client {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		_, text, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("port %.10q: %w", text, err)
		}
		return dialLoopback(ctx, l, int(port), true)
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
	return strings.HasSuffix(host, ".localhost") || loopback.Is(host)
}

// URLPort returns the port of a URL of this machine.
func URLPort(text string) (int, error) {
	u, err := loopbackURL(text)
	switch {
	case err != nil:
		return 0, err
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		return int(port), err
	case u.Scheme == "https":
		return 443, nil
	}
	return 80, nil
}
