package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// metricLine is one line of Prometheus' text format, as far as the host writes it.
var metricLine = regexp.MustCompile(`^(# (HELP [a-z_]+ .+\.|TYPE [a-z_]+ (gauge|counter))|[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"\})? [0-9.e+-]+)$`)

// metricsURL is what a host prints on standard error, with the address that it was given
// or that the system has chosen.
var metricsURL = regexp.MustCompile(`(?m)^metrics: http://(127\.0\.0\.1:[1-9][0-9]*)/metrics$`)

// scraped is the host's page of metrics.
func scraped(t *testing.T, address string) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil))(t)
	r.Close = true
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	for line := range strings.Lines(string(text)) {
		if !metricLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("line %q", line)
		}
	}
	return string(text)
}

// Each node counts what it owns, what it follows and what it sends, without any name; its
// log names the node, and the epoch of what it owns.
func TestMetrics(t *testing.T) {
	testkit.Leaks(t)
	at := func() string { return fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)) }
	lone := start(t, "--token", ownToken, "--metrics", "127.0.0.1:0")
	told := metricsURL.FindStringSubmatch(lone.stderr.String())
	if told == nil {
		t.Fatalf("it does not say where its metrics are: %s", lone.stderr.String())
	}
	alone := told[1]
	if text := scraped(t, alone); !strings.Contains(text, `tether_node_terminals{at="here"} 0`) || strings.Contains(text, "lease") {
		t.Errorf("alone:\n%s", text)
	}
	if out := failing(t, "--listen", "127.0.0.1:0", "--tokens", filepath.Join(t.TempDir(), "tokens.json"), "--metrics", alone); !strings.Contains(out, "--metrics: ") {
		t.Errorf("an address in use: %s", out)
	}
	lone.end(t)
	servers := testkit.StartJetStream(t, clusterTools)
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a", "tokens.json"), filepath.Join(dir, "b", "tokens.json")}
	addresses := []string{at(), at()}
	a := start(t, "--token", ownToken, "--tokens", files[0], "--nats", servers.URLs, "--metrics", addresses[0], "--log-level", "info")
	copyKey(t, files[0], files[1])
	b := start(t, "--token", ownToken, "--tokens", files[1], "--nats", servers.URLs, "--metrics", addresses[1])
	machine := must.Get(connect(t, a, ownToken, client.Options{ClientID: "laptops", Meta: ahp.NewClientMeta()}))(t)
	const uri = "ahp-terminal:/6d1e"
	must.Do(t, machine.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: uri, Name: "secret-name", Claim: ahp.ClientClaim("laptops"), ExecutionTarget: ahp.TargetClient}))
	observer := must.Get(connect(t, b, ownToken, client.Options{ClientID: "anns"}))(t)
	testkit.Eventually(t, patience, "who is at the other node sees the terminal", func() bool {
		r, err := observer.Subscribe(t.Context(), uri)
		return err == nil && r.Snapshot != nil
	})
	for i, want := range [][]string{
		{"tether_node_nats_up 1\n", "tether_node_peers 1\n", "tether_node_machines_owned 1\n", `tether_node_terminals{at="here"} 1`, "tether_node_terminals_followed 0\n", `tether_node_lease_age_seconds{lease="newest"} `},
		{"tether_node_machines_owned 0\n", `tether_node_terminals{at="elsewhere"} 1`, "tether_node_terminals_followed 1\n", "tether_node_resyncs_total 0\n", "tether_node_unanswered_total "},
	} {
		testkit.Eventually(t, patience, "the node counts", func() bool {
			text := scraped(t, addresses[i])
			if strings.Contains(text, "secret-name") || strings.Contains(text, "laptops") {
				t.Errorf("a name is in\n%s", text)
			}
			for _, line := range want {
				if !strings.Contains(text, line) {
					return false
				}
			}
			return !strings.Contains(text, "_bytes_total 0\n") && !strings.Contains(text, `lease="oldest"} 0`+"\n") == (i == 0)
		})
	}
	if log := a.stderr.String(); !regexp.MustCompile(`"node":"[a-z0-9]{10}".*"epoch":1.*owned here`).MatchString(log) {
		t.Errorf("the log does not name node and epoch: %s", log)
	}
	machine.Close()
}
