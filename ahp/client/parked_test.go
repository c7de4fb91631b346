package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/ahp/client"
)

// A host's own interface answers with the terminal, or with the reason why not. Any other
// answer is an error, and a redirect gets no token.
func TestParkedText(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked elsewhere: %s", r.URL) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/terminals/kept/state":
			io.WriteString(w, `{"resource":"x:/1","fromSeq":1,"state":{"title":"web","content":[{"type":"unclassified","value":"ready\r\n"}]}}`)
		case "/terminals/strange/state":
			io.WriteString(w, `{"state":[]}`)
		case "/terminals/elsewhere/state":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	e := client.Endpoint{URL: "ws" + strings.TrimPrefix(server.URL, "http") + "/ahp", Token: "secret"}
	if s, err := e.ParkedText(t.Context(), "kept"); err != nil || s.Title != "web" || len(s.Content) != 1 || s.Content[0].Text() != "ready\r\n" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := e.ParkedText(t.Context(), "../gone"); !errors.Is(err, client.ErrNotKept) {
		t.Errorf("one that is not kept: %v", err)
	}
	for _, id := range []string{"strange", "elsewhere"} {
		if s, err := e.ParkedText(t.Context(), id); err == nil {
			t.Errorf("%s: %+v", id, s)
		}
	}
	e.Token = "wrong"
	if _, err := e.ParkedText(t.Context(), "kept"); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a wrong token: %v", err)
	}
}

// One node of a host keeps the text. A node that never answers leaves time for the
// others. Only if every node has answered is it certain that no node keeps the text.
func TestParkedTextOfNodes(t *testing.T) {
	keeps := node(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"resource":"x:/1","fromSeq":1,"state":{"title":"web","content":[]}}`)
	}))
	mute, lacks := silent(t), node(t, http.NotFoundHandler())
	for name, c := range map[string]struct {
		first, second string
		want          error
	}{
		"the second keeps it":  {lacks, keeps, nil},
		"the first is silent":  {mute, keeps, nil},
		"one is not reached":   {mute, lacks, client.ErrUnreachable},
		"one is not reached 2": {lacks, mute, client.ErrUnreachable},
		"none keeps it":        {lacks, lacks, client.ErrNotKept},
	} {
		t.Run(name, func(t *testing.T) {
			e := client.Endpoint{URL: c.first, Also: []string{c.second}, Last: new(atomic.Pointer[string])}
			e.Last.Store(&c.first)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			if s, err := e.ParkedText(ctx, "1"); !errors.Is(err, c.want) || err == nil && s.Title != "web" {
				t.Errorf("%+v, %v, want %v", s, err, c.want)
			}
		})
	}
}
