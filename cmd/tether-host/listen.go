package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"tether/internal/loopback"
)

// checkAddress refuses an address where others could eavesdrop or connect, unless the
// flags say that this is intended.
func (s *settings) checkAddress() error {
	loopback, err := isLoopback(s.listen)
	switch {
	case err != nil:
		return err
	case loopback:
	case s.withoutToken:
		return &usageError{fmt.Sprintf("--without-token would let everyone connect who can reach %s", s.listen),
			"listen on 127.0.0.1, or use --token-file"}
	case s.cert == "" && !s.plaintext:
		return &usageError{fmt.Sprintf("tokens and what terminals print would travel in clear text to %s", s.listen),
			"give --tls-cert and --tls-key, or listen on 127.0.0.1; behind a proxy that does TLS, add --plaintext"}
	}
	if err := s.checkPublicURL(); err != nil {
		return err
	}
	return s.checkPreviews()
}

// checkPublicURL lets pages at that URL connect. Without TLS, only this machine may be at
// the URL, unless --plaintext says that clear text is intended.
func (s *settings) checkPublicURL() error {
	if s.publicURL == "" {
		return nil
	}
	u, err := url.Parse(s.publicURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return &usageError{fmt.Sprintf("--public-url %.200q must be https://NAME", s.publicURL), "give the URL of the page without a path"}
	}
	if u.Scheme == "http" && !loopback.Is(u.Hostname()) && (!s.plaintext || s.cert != "") {
		return &usageError{fmt.Sprintf("tokens, logins and what terminals print would travel in clear text to --public-url %.200q", s.publicURL),
			"give the https URL at which browsers reach this host; without TLS, in a network you trust, add --plaintext"}
	}
	s.publicURL = u.Scheme + "://" + u.Host
	s.origins = append(s.origins, u.Host)
	return nil
}

// hstsTime is how long a browser uses https alone, in seconds: 30 days. Each answer
// begins it anew.
const hstsTime = 30 * 24 * 60 * 60

// httpsAlone makes h tell browsers to use https alone for the name in the public URL
// (HSTS, RFC 6797). The RFC knows no addresses. Requests with another name, such as those
// of a health check, did not come by that URL.
func (s *settings) httpsAlone(h http.Handler) http.Handler {
	u, err := url.Parse(s.publicURL)
	if err != nil || u.Scheme != "https" || s.noHSTS || net.ParseIP(u.Hostname()) != nil || strings.EqualFold(u.Hostname(), "localhost") {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		if strings.EqualFold(name, u.Hostname()) {
			w.Header().Set("Strict-Transport-Security", fmt.Sprintf("max-age=%d", hstsTime))
		}
		h.ServeHTTP(w, r)
	})
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) (bool, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, &usageError{fmt.Sprintf("--listen: %v", err), "give an address such as 127.0.0.1:9187"}
	}
	return loopback.Is(name), nil
}

// certCheck is the shortest time between two checks of the certificate's files.
const certCheck = time.Minute

// certificate is a pair of files. It is read again when the files have changed, because
// tools that renew certificates seldom restart programs.
type certificate struct {
	cert, key string // set once

	mu     sync.Mutex
	looked time.Time
	read   [2]time.Time
	pair   *tls.Certificate
}

// tls returns the TLS configuration, nil for a host without TLS.
func (s *settings) tls() (*tls.Config, error) {
	if s.cert == "" {
		return nil, nil
	}
	c := &certificate{cert: s.cert, key: s.key}
	if _, err := c.current(nil); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.current}, nil
}

// current returns the certificate. If the files cannot be read any more, the former
// certificate stays in use: they may be in the middle of a renewal.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.looked) < certCheck {
		return c.pair, nil
	}
	c.looked = time.Now()
	now, err := modified(c.cert, c.key)
	if err == nil && (c.pair == nil || now != c.read) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.pair, c.read = &pair, now
		}
	}
	if c.pair == nil {
		return nil, err
	}
	return c.pair, nil
}

func modified(cert, key string) (at [2]time.Time, err error) {
	for i, path := range []string{cert, key} {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}
