package main

import (
	"crypto/ed25519"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/internal/testkit/must"
)

// TestRoutesBesideTheHost requests paths of the doors beside the host's own.
func TestRoutesBesideTheHost(t *testing.T) {
	at := filepath.Join(t.TempDir(), "pending.json")
	tokens := must.Get(access.Open(access.OwnFile(filepath.Join(t.TempDir(), "tokens.json"))))(t)
	_, key, _ := ed25519.GenerateKey(nil)
	door := must.Get(devices.New(devices.Options{Key: key, Tokens: tokens, Pending: access.OwnFile(at)}))(t)
	h := host.New(host.Options{Token: "secret"})
	defer h.Close()
	all := route(t.Context(), h, door, nil, nil)
	for _, c := range []struct {
		method, path, upgrade string
		want                  int
	}{
		{"GET", "/healthz", "", 200}, {"HEAD", "/readyz", "", 200}, {"POST", "/healthz", "", 401}, {"GET", "/healthz/x", "", 401}, {"GET", "/healthz", "websocket", 401},
		{"GET", "/device/v1/identity", "", 200}, {"GET", "/below/another/device/v1/identity", "", 200}, {"GET", "//device/v1/identity", "", 200}, {"POST", "/device/v1/begin", "", 400}, {"GET", "/device/v1/none", "", 404},
		{"GET", "/device/v1/identity", "websocket", 401}, {"GET", "/login/oidc", "", 401},
	} {
		r := httptest.NewRequest(c.method, "http://127.0.0.1:9187/", nil)
		r.URL.Path = c.path
		if c.upgrade != "" {
			r.Header.Set("Upgrade", c.upgrade)
		}
		answer := httptest.NewRecorder()
		if all.ServeHTTP(answer, r); answer.Code != c.want {
			t.Errorf("%s %s %s: %d %q, want %d", c.method, c.path, c.upgrade, answer.Code, answer.Body, c.want)
		}
	}
}
