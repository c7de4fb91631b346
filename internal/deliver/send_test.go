package deliver_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tether/internal/deliver"
	"tether/internal/testkit/must"
)

// A receiver may answer what it wants: nothing of it leads elsewhere, holds the sender
// for long, or fills its memory.
func TestSend(t *testing.T) {
	elsewhere := 0
	hang := make(chan struct{})
	mux := http.NewServeMux()
	for path, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"/taken":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"/redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"/elsewhere": func(http.ResponseWriter, *http.Request) { elsewhere++ },
		"/talks": func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, strings.NewReader(strings.Repeat("x", 1<<20)))
		},
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"/year": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"/never":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"/broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"/hangs":  func(http.ResponseWriter, *http.Request) { <-hang },
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "x")
		},
	} {
		mux.HandleFunc(path, answer)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	defer close(hang)
	client := deliver.Guard{Any: true}.Client(nil)
	for path, want := range map[string]deliver.Result{
		"/taken":     {Status: 204, Unsure: true},
		"/redirects": {Status: 302, Failure: deliver.HTTP4xx},
		"/talks":     {Status: 200, Unsure: true},
		"/busy":      {Status: 429, Failure: deliver.HTTP4xx, After: 2 * time.Minute},
		"/year":      {Status: 503, Failure: deliver.HTTP5xx, After: time.Hour},
		"/never":     {Status: 404, Failure: deliver.HTTP4xx},
		"/broken":    {Status: 502, Failure: deliver.HTTP5xx},
		"/hangs":     {Failure: deliver.Timeout, Unsure: true},
		"/cut":       {Status: 200, Failure: deliver.Refused, Unsure: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if path == "/hangs" {
			ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		}
		r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader("x")))(t)
		got := deliver.Send(client, r, 100)
		cancel()
		if len(got.Answer) > 100 || got.Status != want.Status || got.Failure != want.Failure || got.After != want.After || got.Unsure != want.Unsure {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+"/taken", nil)
	if got := deliver.Send(deliver.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}.Client(nil), r, 100); got.Failure != deliver.Refused || got.Unsure {
		t.Errorf("a name that leads to a forbidden address: %+v", got)
	}
}

func TestPause(t *testing.T) {
	for try, want := range []time.Duration{0, 2 * time.Second, 15 * time.Second, 2 * time.Minute, 8 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		if got := deliver.Pause(try, 0); got < want*8/10 || got > want*12/10 {
			t.Errorf("before attempt %d: %v, want about %v", try, got, want)
		}
	}
	if got := deliver.Pause(1, time.Minute); got != time.Minute {
		t.Errorf("a receiver asks for a minute and gets %v", got)
	}
}
