package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tether/host/conform"
	"tether/internal/testkit"
)

// Without a token the error tells how to give one.
func TestLinkWithoutAToken(t *testing.T) {
	r := start(t)
	var stderr testkit.Output
	if status := run(t.Context(), []string{"link", "--url", r.url}, io.Discard, &stderr); status != exitFailure || !strings.Contains(stderr.String(), "--token-file FILE") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

// A host's text reaches the person's terminal without sequences that make it act.
func TestAHostSaysNothingToTheTerminal(t *testing.T) {
	const evil = "\x1b]0;evil\a\u009b2J\u202e"
	for what, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+evil, http.StatusTeapot) },
		"a link": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"path": "/launch" + evil})
		},
	} {
		s := httptest.NewServer(answer)
		var stdout, stderr testkit.Output
		status := run(t.Context(), []string{"link", "--url", s.URL}, &stdout, &stderr)
		s.Close()
		if all := stdout.String() + stderr.String(); status != exitFailure || strings.ContainsAny(all, "\x1b\a\u009b\u202e") || !strings.Contains(all, "the host answered") {
			t.Errorf("%s: status %d, %q", what, status, all)
		}
	}
	var stdout testkit.Output
	report := &conform.Report{Server: "host " + evil, Version: evil, Results: []conform.Result{{Verdict: conform.Fail, Why: "it says " + evil}}}
	if printReport(&stdout, report); strings.ContainsAny(stdout.String(), "\x1b\a\u009b\u202e") {
		t.Errorf("a report: %q", stdout.String())
	}
}
