package local_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// LogLevel makes the fake a local.Leveler.
func (d *fakeDaemon) LogLevel() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.TrimPrefix(strings.Join(d.asked, ","), "level ")
}

func (d *fakeDaemon) SetLogLevel(level string) error {
	if level == "loud" {
		return localapi.BadRequest("no such level")
	}
	return d.note("level " + level)
}

// metricLine is one line of Prometheus' text format, as far as this door writes it.
var metricLine = regexp.MustCompile(`^(# (HELP [a-z_]+ .+\.|TYPE [a-z_]+ (gauge|counter))|[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"\})? [0-9.e+-]+)$`)

func TestMetrics(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "work", State: "online", Gaps: 2, Lent: make([]vocab.Lent, 3)}, {Name: "b\"\n\\", State: "waiting"}}
	text := must.Get(w.client.Metrics(t.Context()))(t)
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if !metricLine.MatchString(lines.Text()) {
			t.Errorf("line %q", lines.Text())
		}
		if seen[lines.Text()] {
			t.Errorf("twice: %s", lines.Text())
		}
		seen[lines.Text()] = true
	}
	for _, want := range []string{
		`tether_host_up{host="work"} 1`, `tether_host_up{host="b\"\n\\"} 0`, `tether_host_gaps_total{host="work"} 2`, `tether_host_lent{host="work"} 3`,
		"# TYPE tether_host_gaps_total counter", `tether_terminals{state="running"} 0`, "# TYPE go_goroutines gauge",
	} {
		if !seen[want] {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

func TestHealth(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	if h, err := w.client.Health(t.Context()); err != nil || h.Status != "ok" {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestLogLevel(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	if l, err := w.client.LogLevel(t.Context(), "debug"); err != nil || l.Level != "debug" {
		t.Errorf("set: %+v, %v", l, err)
	}
	if l, err := w.client.LogLevel(t.Context(), ""); err != nil || l.Level != "debug" {
		t.Errorf("ask: %+v, %v", l, err)
	}
	var e *localapi.Error
	if _, err := w.client.LogLevel(t.Context(), "loud"); !errors.As(err, &e) || e.Code != localapi.CodeBadRequest {
		t.Errorf("a wrong one: %v", err)
	}
}

func TestProfiles(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	text, err := w.client.Profile(t.Context(), "goroutine", 1)
	if err != nil || !strings.HasPrefix(string(text), "goroutine profile: total ") {
		t.Errorf("goroutines: %.60q, %v", text, err)
	}
	packed, err := w.client.Profile(t.Context(), "heap", 0)
	if err != nil || !bytes.HasPrefix(packed, []byte("\x1f\x8b")) {
		t.Errorf("heap: %.10q, %v", packed, err)
	}
	var e *localapi.Error
	for _, name := range []string{"secrets", "cmdline", "symbol", "trace"} { // pprof's other endpoints are not served
		if _, err := w.client.Profile(t.Context(), name, 0); !errors.As(err, &e) || e.Code != localapi.CodeNotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := w.client.Profile(t.Context(), "heap", 3); !errors.As(err, &e) || e.Code != localapi.CodeBadRequest {
		t.Errorf("an unknown form: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+localapi.Host+"/debug/pprof/profile?seconds=60", nil) // or until the daemon ends
		if err == nil {
			var resp *http.Response
			if resp, err = w.client.HTTP().Do(req); err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
		ended <- err
	}()
	testkit.Eventually(t, patience, "it measures", func() bool { return strings.Contains(string(goroutines(t, w)), "profileTime") })
	if _, err := w.client.Profile(t.Context(), "profile", 0); !errors.As(err, &e) || e.Code != localapi.CodeLimit {
		t.Errorf("a second one: %v", err)
	}
	w.server.Drain()
	if err := <-ended; err != nil {
		t.Errorf("a profile when the daemon ends: %v", err)
	}
}

func goroutines(t *testing.T, w *world) []byte {
	t.Helper()
	return must.Get(w.client.Profile(t.Context(), "goroutine", 2))(t)
}

// Only the person at the socket sees the daemon's internals.
func TestInsideIsNotShown(t *testing.T) {
	v := serveTCP(t)
	agent := v.client.As("some")
	for path, err := range map[string]error{
		"metrics": second(agent.Metrics(t.Context())), "profile": second(agent.Profile(t.Context(), "heap", 0)),
		"level": second(agent.LogLevel(t.Context(), "")), "health": second(agent.Health(t.Context())),
	} {
		var e *localapi.Error
		if !errors.As(err, &e) || e.Code != localapi.CodeDenied {
			t.Errorf("%s for an agent: %v", path, err)
		}
	}
	for _, path := range []string{"/v1/metrics", "/debug/pprof/heap", "/v1/health", "/v1/log"} {
		resp, body := v.ask("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n\r\n")
		if resp.StatusCode != http.StatusForbidden || strings.Contains(body, "tether_") {
			t.Errorf("%s over TCP: %s %.60s", path, resp.Status, body)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The person may take an agent's terminal; an agent nobody's.
func TestPromote(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	h := must.Get(w.pool.As(term.Agent("some")).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	<-w.children
	var e *localapi.Error
	if _, err := w.client.As("some").Promote(t.Context(), string(h.ID())); !errors.As(err, &e) || e.Code != localapi.CodeDenied {
		t.Errorf("by an agent: %v", err)
	}
	if tm, err := w.client.Promote(t.Context(), string(h.ID())); err != nil || tm.Owner != "user" || !tm.Visible {
		t.Errorf("by the person: %+v, %v", tm, err)
	}
	if _, err := w.client.Promote(t.Context(), "nobody"); !errors.As(err, &e) || e.Code != localapi.CodeNoTerminal {
		t.Errorf("nobody's: %v", err)
	}
}

// A time that is not known is absent from an answer.
func TestNoAnswerHasAZeroTime(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	_, running := w.spawn("web")
	_, ended := w.spawn("done")
	ended.End(0)
	running.Print("\x1b]133;A\a$ \x1b]133;B\a\x1b]133;C\aout\r\n\x1b]133;D;0\a\x1b]133;A\a$ \x1b]133;B\a")
	testkit.Eventually(t, patience, "a command and an exit", func() bool {
		c, err := w.client.Commands(t.Context(), "web")
		x, err2 := w.client.Find(t.Context(), "done")
		return err == nil && err2 == nil && len(c.Commands) == 1 && x.Exit != nil
	})
	asked := 0
	for _, pattern := range w.server.Routes() {
		path, get := strings.CutPrefix(pattern, "GET /v1/")
		if !get || path == "mcp" {
			continue
		}
		for _, ref := range []string{"web", "done"} {
			q := map[bool]string{true: "?command=1&timeout_ms=1000", false: ""}[strings.HasSuffix(path, "/wait")]
			resp := ask(t, w, "GET /v1/"+strings.ReplaceAll(path, "{ref}", ref)+q+" HTTP/1.1\r\nHost: tether\r\n\r\n")
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if asked++; bytes.Contains(text, []byte("0001-01-01")) {
				t.Errorf("%s of %s: %s", path, ref, text)
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d answers were looked at", asked)
	}
}
