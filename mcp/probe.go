package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of a probe.
const (
	probeEvery   = 100 * time.Millisecond
	probeTimeout = 2 * time.Second // of one try
	maxURL       = 2000            // bytes
	maxRedirects = 5
)

// probe looks whether something on this machine can be reached.
type probe interface {
	// try returns nil once it can.
	try(context.Context) error
	// why is the reason that ends the wait then.
	why() reason
	// tell adds what is known to the answer. It is called after the last try
	// has ended.
	tell(*waitResult)
}

// addProbes makes what the call asks for.
func (s *Server) addProbes(w *wait, a *waitArgs) error {
	if (a.Port != nil || a.URL != "") && !s.opts.Loopback {
		return errors.New("port and url are not available here: the terminals run on another machine")
	}
	if a.Port != nil {
		if err := inRange("port", *a.Port, 1, 65535); err != nil {
			return err
		}
		p := &portProbe{id: a.TerminalID, port: int(*a.Port)}
		p.locator, _ = s.opts.Terminals.(Locator)
		w.probes = append(w.probes, p)
	}
	if a.URL != "" {
		u, err := loopbackURL(a.URL)
		if err != nil {
			return err
		}
		w.probes = append(w.probes, &urlProbe{url: u.String(), client: newProbeClient()})
	}
	return nil
}

// startProbes tries each until one succeeds or ctx ends. The function it
// returns waits for their end.
func (w *wait) startProbes(ctx context.Context, end context.CancelCauseFunc) func() {
	var wg sync.WaitGroup
	for _, p := range w.probes {
		wg.Go(func() {
			tick := time.NewTicker(probeEvery)
			defer tick.Stop()
			for {
				try, cancel := context.WithTimeout(ctx, probeTimeout)
				err := p.try(try)
				cancel()
				if err == nil {
					end(p.why())
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return wg.Wait
}

// portProbe connects to a TCP port of the loopback interface.
type portProbe struct {
	id      string
	port    int
	locator Locator // nil if there is none

	mu   sync.Mutex
	addr string
}

// loopbacks are tried in turn: servers listen on one of them or on both.
var loopbacks = []string{"127.0.0.1", "::1"}

func (p *portProbe) try(ctx context.Context) error {
	conn, err := dialLoopback(ctx, strconv.Itoa(p.port))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.addr = conn.RemoteAddr().String()
	p.mu.Unlock()
	return conn.Close()
}

func (p *portProbe) why() reason { return reasonPort }

// Who listens on a port, as wait_terminal tells it: a server that is left over
// from before may have the port that this one wanted.
const (
	listenerSame  = "this terminal"
	listenerOther = "another program"
)

func (p *portProbe) tell(r *waitResult) {
	p.mu.Lock()
	r.Address = p.addr
	p.mu.Unlock()
	if r.Address == "" || p.locator == nil {
		return
	}
	if yes, known := p.locator.Listens(p.id, p.port); known {
		r.Listener = listenerOther
		if yes {
			r.Listener = listenerSame
		}
	}
}

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

// urlProbe asks for a URL.
type urlProbe struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	status int
	failed string
}

func (p *urlProbe) try(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "tether")
	resp, err := p.client.Do(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			p.failed = err.Error()
		}
		return err
	}
	resp.Body.Close()
	p.status = resp.StatusCode
	if resp.StatusCode/100 != 2 {
		p.failed = "it answers " + strconv.Itoa(resp.StatusCode)
		return errors.New(p.failed)
	}
	p.failed = ""
	return nil
}

func (p *urlProbe) why() reason { return reasonURL }

func (p *urlProbe) tell(r *waitResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Status = p.status
	if r.Reason == reasonTimeout {
		r.Detail = p.failed
	}
}

// newProbeClient returns a client that reaches the loopback interface alone,
// whatever a name resolves to and a server redirects to: an agent must not see
// the network through the daemon. Certificates are not checked, since those of
// development servers are made up and nothing secret is sent.
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

// loopbackURL checks that a URL names this machine.
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
