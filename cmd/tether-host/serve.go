package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/idle"
	"tether/internal/version"
	"tether/platform/rawio"
)

// farewell is how long requests under way may take after everything else has ended.
const farewell = 5 * time.Second

// keepAlive detects within a minute that a machine has vanished, even if nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 10 * time.Second, Count: 4}

// plan is what follows from the flags, before anything is opened.
type plan struct {
	log     zerolog.Logger
	trusted proxies
	secure  *tls.Config // nil without TLS
	cred    credential
}

// plan checks the flags, reads the files that they name, and makes a token if one is
// needed.
func (s *settings) plan(stderr io.Writer) (p plan, err error) {
	if err := s.check(); err != nil {
		return p, err
	}
	if p.log, err = s.logger(stderr); err != nil {
		return p, err
	}
	if err := s.checkAddress(); err != nil {
		return p, err
	}
	if p.trusted, err = parseNetworks("--trusted-proxy", s.proxies); err != nil {
		return p, err
	}
	if p.secure, err = s.tls(); err != nil {
		return p, err
	}
	p.cred, err = s.credential()
	return p, err
}

// options returns the host's options that follow from the flags alone.
func (s *settings) options(p *plan) host.Options {
	return host.Options{Token: p.cred.token, Origins: s.origins, Grace: s.grace, Park: s.park, Scrollback: s.scrollback, Logger: &p.log,
		Secure: strings.HasPrefix(s.publicURL, "https:"), NoShares: !s.shares, ShareURL: s.shareURL(), MaxConnections: s.most, MaxTerminals: s.perMachine, MaxMemory: s.memory,
		Sessions: s.sessions, ShellGrace: s.shellGrace, AgentShells: s.agentShells, Info: ahp.Implementation{Name: "tether-host", Version: version.Text()}}
}

// shareURL returns the beginning of links for guests, "" if only machines know the host's
// address.
func (s *settings) shareURL() string {
	if s.publicURL == "" {
		return ""
	}
	return s.publicURL + ahp.SharePath + "#"
}

// wantsShells reports whether clients get shells. Without a token everyone on this
// machine would get one of this user's: then only if --shells was given.
func (s *settings) wantsShells(token string, given bool) (bool, error) {
	shells := s.shells && (token != "" || given)
	if s.agentShells && !shells {
		return false, &usageError{"--agent-shells without a token lets everyone on this machine run commands as you", "to allow that, add --shells"}
	}
	return shells, nil
}

// addresses returns the URL at which the host listens, the URL that people type for
// clients, and the URL of the page.
func (s *settings) addresses(at net.Addr, secure bool) (url, typed, page string) {
	tls := ""
	if secure {
		tls = "s"
	}
	page = "http" + tls + "://" + at.String()
	if a, ok := at.(*net.TCPAddr); ok && a.IP.IsUnspecified() { // no name of this machine
		page = fmt.Sprintf("http%s://127.0.0.1:%d", tls, a.Port)
	}
	if s.publicURL != "" {
		page = s.publicURL // the certificate is for it, too
	}
	return "ws" + tls + "://" + at.String(), "ws" + strings.TrimPrefix(page, "http"), page
}

// serve runs the host: it listens, announces that, and serves until ctx ends.
func serve(ctx context.Context, s *settings, shellsGiven bool, stdout, stderr io.Writer) error {
	p, err := s.plan(stderr)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen: %w; --listen takes another address", err)
	}
	defer listener.Close()
	o := s.options(&p)
	leave, err := s.joinCluster(ctx, &o)
	if err != nil {
		return err
	}
	defer leave()
	if !s.withoutToken {
		stop, err := s.openTokens(ctx, &o, p.cred)
		if err != nil {
			return err
		}
		defer stop()
	}
	if s.auditLog != "" {
		record, err := s.openAudit(&o)
		if err != nil {
			return err
		}
		defer record.Close()
	}
	door, err := s.openDevices(&o, stderr)
	if err != nil {
		return err
	}
	idp, err := s.openProvider(&o)
	if err != nil {
		return err
	}
	openRegister(&o, idp)
	hooks, err := s.openHooks(&o)
	if err != nil {
		return err
	}
	wanted, err := s.wantsShells(p.cred.token, shellsGiven)
	if err != nil {
		return err
	}
	if wanted {
		r := newRunner()
		defer r.close()
		o.Runner = r
	}
	url, typed, page := s.addresses(listener.Addr(), p.secure != nil)
	if err := s.openPreviews(&o, page); err != nil {
		return err
	}
	h := host.New(o)
	defer h.Close()
	defer s.runNode(ctx, h, o.Logger)()
	stopMetrics, err := s.serveMetrics(ctx, h, stderr)
	if err != nil {
		return err
	}
	defer stopMetrics()
	defer idp.run(ctx, h)()
	defer hooks.run(ctx, h)()
	if p.cred.made || p.cred.file != "" {
		page += h.Page().Launch(rights.Principal{Role: rights.RoleAdmin})
	}
	if err := announce(url, typed, page, p.cred, stdout, stderr); err != nil {
		return err
	}
	server := newServer(p.trusted.handler(s.httpsAlone(route(ctx, h, door, idp, s.node))), s.most)
	defer keepSmall(ctx, server)()
	return serveUntil(ctx, server, wrap(listener, p.secure), h, s.drain)
}

// wrap returns the listener to serve. Its connections are rawio's, with TLS above them
// unless secure is nil.
func wrap(l net.Listener, secure *tls.Config) net.Listener {
	l = rawio.Listener{Listener: l}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	return l
}

// quietAfter is how long there must be no new connection before memory is freed.
const quietAfter = 5 * time.Second

// keepSmall returns memory to the system that the start of the host and new connections
// needed. It must be called before the server serves. stop ends it.
func keepSmall(ctx context.Context, server *http.Server) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	trimmer := idle.New(quietAfter)
	trimmer.Stir()
	counted := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		counted(c, state)
		if state == http.StateHijacked { // an observer or a machine; short requests need little
			trimmer.Stir()
		}
	}
	var done sync.WaitGroup
	done.Go(func() { trimmer.Run(ctx) })
	return func() { cancel(); done.Wait() }
}

// serveUntil serves until ctx ends, and then closes every connection with a reason, see
// end.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, h *host.Host, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		return fmt.Errorf("serve: %w", err)
	}
	end(context.WithoutCancel(ctx), server, h, drain)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// end accepts no more connections, lets running requests finish, within bounds, and
// closes the rest.
func end(ctx context.Context, server *http.Server, h *host.Host, within time.Duration) {
	drain, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	bounded, cancelAll := context.WithTimeout(ctx, within+farewell)
	defer cancelAll()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(bounded) }()
	h.Drain(drain)
	h.Close()
	if err := <-stopped; err != nil {
		server.Close()
	}
}

// announce tells programs that the host accepts connections, and the person how to use
// it. A token is shown only here, and only if it was made for this run.
func announce(url, typed, page string, cred credential, stdout, stderr io.Writer) error {
	_, err := fmt.Fprintln(stdout, "READY", url)
	switch {
	case err != nil:
		return err
	case cred.made:
		_, err = fmt.Fprintf(stderr, "token (for this run): %s\nlend terminals from a machine: tether pair %s\nsee them in a browser (once): %s\n", cred.token, typed, page)
	case cred.file != "":
		_, err = fmt.Fprintf(stderr, "lend terminals from this machine: tether pair %s --token-file %s\nsee them in a browser (once): %s\nanother link: tether-host link --url %s --token-file %s\n",
			typed, cred.file, page, typed, cred.file)
	case cred.token == "":
		_, err = fmt.Fprintf(stderr, "lend terminals from this machine: tether pair %s --without-token\nsee them in a browser: %s\n", typed, page)
	}
	if err != nil {
		return fmt.Errorf("standard error: %w", err)
	}
	return nil
}
