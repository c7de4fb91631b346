package agent_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

// listening is a configuration with loopback TCP.
func listening(d dirs.Dirs, address string) agent.Config {
	settings := config.Default()
	settings.Local.Listen = address
	return agent.Config{Dirs: d, Settings: &settings}
}

// statusOver asks for the status through TCP.
func statusOver(t *testing.T, address, token string) int {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/status", nil))(t)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp := must.Get(transport.RoundTrip(req))(t)
	resp.Body.Close()
	return resp.StatusCode
}

func TestTCPIsServedWhereConfigured(t *testing.T) {
	testkit.Leaks(t)
	dir := home(t)
	d := start(t, agent.Config{Dirs: dir})
	if s := d.status("no address", func(localapi.Status) bool { return true }); s.TCP != "" {
		t.Errorf("serves %s without being told", s.TCP)
	}
	for _, path := range []string{agent.AddressPath(dir), local.UserTokenPath(dir.State)} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	d.end()

	for range 2 { // the token stays
		d = start(t, listening(dir, "127.0.0.1:0"))
		s := d.status("an address", func(s localapi.Status) bool { return s.TCP != "" })
		written, err := os.ReadFile(agent.AddressPath(dir))
		if err != nil || string(written) != s.TCP+"\n" {
			t.Errorf("%s holds %q (%v), want %s", agent.AddressPath(dir), written, err, s.TCP)
		}
		token := must.Get(os.ReadFile(local.UserTokenPath(dir.State)))(t)
		for given, want := range map[string]int{"": 401, "x": 401, strings.TrimSpace(string(token)): 200} {
			if got := statusOver(t, s.TCP, given); got != want {
				t.Errorf("token %q: %d, want %d", given, got, want)
			}
		}
		shown, err := d.client.UserToken(t.Context())
		if err != nil || shown.Token+"\n" != string(token) {
			t.Errorf("shows another token than it keeps (%v)", err)
		}
		if log, err := os.ReadFile(agent.LogPath(dir)); err != nil || strings.Contains(string(log), shown.Token) {
			t.Errorf("the log holds the token (%v)", err)
		}
		d.end()
		if _, err := os.Lstat(agent.AddressPath(dir)); err == nil {
			t.Error("the address is still there")
		}
	}
}

func TestTCPFailureIsReported(t *testing.T) {
	dir := home(t)
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	degraded := func(d *daemon, cause string) {
		t.Helper()
		d.status(cause, func(s localapi.Status) bool {
			return s.TCP == "" && len(s.Degraded) == 1 && s.Degraded[0].Cause == cause && s.Degraded[0].Text != ""
		})
		d.end()
	}
	degraded(start(t, listening(dir, taken.Addr().String())), "loopback TCP")
	must.Do(t, file(local.UserTokenPath(dir.State), "no token", 0o600))
	degraded(start(t, listening(dir, "127.0.0.1:0")), "loopback TCP")
	must.Do(t, file(filepath.Join(dir.State, "tokens.json"), "{", 0o600))
	degraded(start(t, listening(dir, "127.0.0.1:0")), "tokens")
}
