package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// node is a host at an address of its own.
func node(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http", "ws", 1)
}

// silent returns an address that accepts connections and never answers, as a stopped
// process does.
func silent(t *testing.T) (url string) {
	t.Helper()
	l := must.Get(testkit.Listen())(t)
	t.Cleanup(func() { l.Close() })
	return "ws://" + l.Addr().String()
}

// A host with several addresses is reached at any of them that answers. The next
// connection begins with the one that has answered.
func TestAnotherAddressIsTried(t *testing.T) {
	testkit.Leaks(t)
	h := host.New(host.Options{})
	defer h.Close()
	var asked atomic.Int64
	good := node(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h.ServeHTTP(w, r) }))
	gone := fmt.Sprintf("ws://127.0.0.1:%d", testkit.FreePort(t))
	draining := node(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	e := client.Endpoint{URL: gone, Also: []string{draining, good}, Last: new(atomic.Pointer[string])}
	for n := range 8 {
		c := must.Get(client.Connect(t.Context(), e, client.Options{ClientID: client.NewID()}))(t)
		c.Close()
		if last := e.Last.Load(); last == nil || *last != good || asked.Load() != int64(n+1) {
			t.Fatalf("after %d connections the last address is %v, and the good one was asked %d times", n+1, last, asked.Load())
		}
	}
	e.URL, e.Also = gone, []string{draining}
	if _, err := client.Connect(t.Context(), e, client.Options{ClientID: "x"}); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("where none answers: %v", err)
	}
}

// An address that never answers takes only its part of the time.
func TestASilentAddressLeavesTimeForOthers(t *testing.T) {
	testkit.Leaks(t)
	h := host.New(host.Options{})
	defer h.Close()
	last := silent(t)
	e := client.Endpoint{URL: last, Also: []string{node(t, h)}, Last: new(atomic.Pointer[string])}
	e.Last.Store(&last)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	c := must.Get(client.Connect(ctx, e, client.Options{ClientID: "x"}))(t)
	c.Close()
}

// After an error that every node would return, no other node is asked.
func TestARefusalIsFinal(t *testing.T) {
	var asked atomic.Int64
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); w.WriteHeader(http.StatusForbidden) })
	e := client.Endpoint{URL: node(t, refuse), Also: []string{node(t, refuse)}, Token: "x"}
	if _, err := client.Connect(t.Context(), e, client.Options{ClientID: "x"}); !errors.Is(err, client.ErrUnauthorized) || asked.Load() != 1 {
		t.Errorf("%v after %d questions", err, asked.Load())
	}
}
