package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tether/ahp/client"
	"tether/internal/testkit/must"
)

// certificate makes a self-signed certificate.
func certificate(t *testing.T, name string, from, to time.Time) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "host"}, NotBefore: from, NotAfter: to, DNSNames: []string{name}}
	if ip := net.ParseIP(name); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key))(t)
	leaf := must.Get(x509.ParseCertificate(der))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// secureHost answers every request with status 418. A client that gets it has trusted the
// certificate.
func secureHost(t *testing.T, c tls.Certificate, most uint16) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c}, MaxVersion: most}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // no log of failed handshakes
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "https", "wss", 1)
}

// A pin replaces the authorities, but not the checks of names, dates and the TLS version.
// Each error says which check failed.
func TestCertificateVerification(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	good := certificate(t, "127.0.0.1", now.Add(-day), now.Add(day))
	other := certificate(t, "127.0.0.1", now.Add(-day), now.Add(day))
	expired := certificate(t, "127.0.0.1", now.Add(-2*day), now.Add(-day))
	named := certificate(t, "host.example", now.Add(-day), now.Add(day))
	for _, c := range []struct {
		name   string
		cert   tls.Certificate
		pin    client.Pin
		most   uint16
		want   string // in the error
		isPin  bool
		offers bool // the error has the certificate's pin
	}{
		{"signed by nobody", good, client.Pin{}, 0, "unknown authority", false, true},
		{"pinned", good, client.PinOf(good.Leaf), 0, "418", false, false},
		{"another key", good, client.PinOf(other.Leaf), 0, client.PinOf(good.Leaf).String(), true, false},
		{"pinned but expired", expired, client.PinOf(expired.Leaf), 0, "expired", false, false},
		{"pinned but of another name", named, client.PinOf(named.Leaf), 0, "127.0.0.1", false, false},
		{"pinned over old TLS", good, client.PinOf(good.Leaf), tls.VersionTLS11, "protocol version", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := client.Endpoint{URL: secureHost(t, c.cert, c.most), Token: "canary", Pin: c.pin}
			_, err := client.Connect(t.Context(), e, client.Options{ClientID: "x"})
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, client.ErrPin) != c.isPin || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v; want %q in it", err, c.want)
			}
			if got := client.UnverifiedPin(err); c.offers != (got == client.PinOf(c.cert.Leaf)) {
				t.Errorf("the pin it tells is %q", got)
			}
		})
	}
}

func TestParsePin(t *testing.T) {
	cert := certificate(t, "x", time.Now(), time.Now())
	pin := client.PinOf(cert.Leaf)
	text := pin.String()
	for _, form := range []string{text, strings.TrimRight(text, "="), "sha256/" + strings.NewReplacer("+", "-", "/", "_").Replace(text[7:])} {
		if got, err := client.ParsePin(form); err != nil || got != pin {
			t.Errorf("%q: %v, %v; want %v", form, got, err, pin)
		}
	}
	if got, err := client.ParsePin(""); err != nil || got != (client.Pin{}) || got.String() != "" || got.TLS("x") != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for _, form := range []string{text[7:], "sha1/" + text[7:], "sha256/", text[:40], text + "AAAA", "sha256/" + strings.Repeat("?", 43), "sha256/" + text} {
		if got, err := client.ParsePin(form); err == nil {
			t.Errorf("%q is taken for %v", form, got)
		}
	}
}

// The credential function is called before each connection, and its error is returned
// unchanged.
func TestCredentialIsAskedEachTime(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Query().Get("tkn"))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	next := "one"
	refusal := errors.New("no credential today")
	e := client.Endpoint{URL: strings.Replace(s.URL, "http", "ws", 1), Token: "not this", Credential: func(context.Context, string) (string, error) {
		if next == "" {
			return "", refusal
		}
		return next, nil
	}}
	for _, want := range []error{client.ErrUnauthorized, client.ErrUnauthorized, refusal} {
		if _, err := client.Connect(t.Context(), e, client.Options{ClientID: "x"}); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		next = map[string]string{"one": "two"}[next]
	}
	if strings.Join(seen, " ") != "one two" {
		t.Errorf("the host saw %q", seen)
	}
}
