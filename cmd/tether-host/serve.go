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
	"time"

	"tether/ahp"
	"tether/host"
)

// farewell is how long requests that are under way may take when all else has ended.
const farewell = 5 * time.Second

// keepAlive finds out that a machine has vanished without a word, also when nothing is sent: after a minute at most.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 10 * time.Second, Count: 4}

// serve is the whole program: it listens, says so, and runs until ctx ends.
func serve(ctx context.Context, s *settings, shellsGiven bool, stdout, stderr io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	log, err := s.logger(stderr)
	if err != nil {
		return err
	}
	if err := s.checkAddress(); err != nil {
		return err
	}
	secure, err := s.tls()
	if err != nil {
		return err
	}
	cred, err := s.credential()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	o := host.Options{Token: cred.token, Origins: s.origins, Grace: s.grace, Scrollback: s.scrollback, Logger: &log,
		Secure: strings.HasPrefix(s.publicURL, "https:"), MaxConnections: s.most, MaxTerminals: s.perMachine, Sessions: s.sessions,
		Info: ahp.Implementation{Name: "tether-host", Version: versionText()}}
	if !s.withoutToken {
		stop, err := s.openTokens(ctx, &o)
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
	door, err := s.openDevices(&o)
	if err != nil {
		return err
	}
	// Without a token, everyone on this machine would get a shell of this user's.
	if s.shells && (cred.token != "" || shellsGiven) {
		shells := newShells()
		defer shells.close()
		o.Runner = shells
	}
	h := host.New(o)
	defer h.Close()
	url := "ws://" + listener.Addr().String()
	if secure != nil {
		url = "wss" + strings.TrimPrefix(url, "ws")
		listener = tls.NewListener(listener, secure)
	}
	page := s.publicURL
	if page == "" {
		page = "http" + strings.TrimPrefix(url, "ws")
	}
	if cred.made {
		page += h.Launch(host.Principal{Role: host.RoleAdmin})
	}
	if err := announce(url, page, cred, stdout, stderr); err != nil {
		return err
	}
	return serveUntil(ctx, newServer(withDevices(h, door)), listener, h, s.drain)
}

// serveUntil serves until ctx ends, then ends every connection with a word, see end.
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

// end accepts nobody any more, lets what is under way come to its end, within bounds, and closes the rest.
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

// announce tells programs that the host accepts connections, and the person how to use it. A token is shown only if it was made
// for this run; then once, here.
func announce(url, page string, cred credential, stdout, stderr io.Writer) error {
	_, err := fmt.Fprintln(stdout, "READY", url)
	switch {
	case err != nil:
		return fmt.Errorf("standard output: %w", err)
	case cred.made:
		_, err = fmt.Fprintf(stderr, "token (for this run): %s\nlend terminals from a machine: tether pair %s\nsee them in a browser (once): %s\n", cred.token, url, page)
	case cred.file != "":
		_, err = fmt.Fprintf(stderr, "lend terminals from this machine: tether pair %s --token-file %s\nsee them in a browser: tether-host link --url %s --token-file %s\n",
			url, cred.file, url, cred.file)
	case cred.token == "":
		_, err = fmt.Fprintf(stderr, "lend terminals from this machine: tether pair %s --without-token\nsee them in a browser: %s\n", url, page)
	}
	if err != nil {
		return fmt.Errorf("standard error: %w", err)
	}
	return nil
}
