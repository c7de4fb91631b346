package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

func TestConform(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	t.Setenv("SHELL", "/bin/sh")
	dir := filepath.Join(t.TempDir(), "private")
	must.Do(t, secret.Dir(dir))
	own, tokens := filepath.Join(dir, "own"), filepath.Join(dir, "tokens.json")
	r := start(t, "--token-file", own, "--tokens", tokens)
	watcher := filepath.Join(dir, "watcher")
	must.Do(t, secret.WriteFile(watcher, []byte(command(t, exitOK, "token", "create", "w", "--role", "observer", "--tokens", tokens))))
	said := command(t, exitOK, "conform", r.url, "--token-file", own, "--observer-token-file", watcher, "--timeout", "2m")
	if strings.Contains(said, "FAIL") || !strings.Contains(said, "0 failed") || !strings.Contains(said, "executionTarget client") {
		t.Errorf("it said\n%s", said)
	}
	var report struct {
		Server  string
		Results []struct{ Rule, Verdict string }
	}
	text := command(t, exitOK, "conform", r.url, "--token-file", own, "--plain", "--json", "--timeout", "2m")
	if err := json.Unmarshal([]byte(text), &report); err != nil || !strings.HasPrefix(report.Server, "tether-host") || len(report.Results) < 20 {
		t.Errorf("%v in %s", err, text)
	}
	for _, r := range report.Results { // the host runs shells, so that all rules apply
		if r.Verdict != "pass" {
			t.Errorf("%s: %s", r.Rule, r.Verdict)
		}
	}
	command(t, exitFailure, "conform", r.url, "--timeout", "2m")
	command(t, exitUsage, "conform")
	command(t, exitUsage, "conform", "ftp://host.example")
}
