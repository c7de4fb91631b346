package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/host"
	"tether/host/ports"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// serves is a dev server on a port of its own, whose number it writes to a file.
func serves(name string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_ = os.WriteFile(name+".new", []byte(strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), 0o600)
	_ = os.Rename(name+".new", name)
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			fmt.Println("src/main.c:3:5: error: no value")
			http.Error(w, "<h1>broken</h1>", http.StatusInternalServerError)
		case "/events":
			fmt.Fprintln(w, "event")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprintln(w, r.Method, r.URL, r.Host, r.Header.Get("Cookie"))
		}
	}))
}

// A lent port is asked through the host: a page, and a stream that ends with the lending.
// Other ports, and this one afterwards, are not.
func TestLentPorts(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	h := host.New(host.Options{Token: "right", Grace: time.Minute})
	url := serveHTTP(t, h)
	t.Cleanup(h.Close)
	settings := config.Default()
	where := home(t)
	d := start(t, agent.Config{Dirs: where, Settings: &settings})
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "right", Name: "lab"}))(t)
	file := filepath.Join(t.TempDir(), "port")
	id := must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{must.Get(os.Executable())(t), "serves", file}, Env: os.Environ(), Cwd: testkit.Abs("/"), LendTo: []string{"lab"}}))(t).ID
	port := 0
	testkit.Eventually(t, patience, "the server", func() bool {
		text, _ := os.ReadFile(file)
		port, _ = strconv.Atoi(string(text))
		return port > 0
	})
	must.Get(d.client.Lend(t.Context(), id, localapi.LendRequest{Host: "lab", Ports: []string{strconv.Itoa(port)}}))(t)
	var way http.RoundTripper
	testkit.Eventually(t, patience, "the host has the port", func() (ok bool) {
		lent := h.Terminals().NodeChanges(t.Context(), 0, 10).Entries
		if len(lent) == 0 {
			return false
		}
		if _, err := h.Ports().Way(rights.Principal{}, lent[0].URI, port+1); !errors.Is(err, ports.ErrNotLent) && !errors.Is(err, ports.ErrAway) {
			t.Errorf("a port that is not lent: %v", err)
		}
		var err error
		way, err = h.Ports().Way(rights.Principal{}, lent[0].URI, port)
		return err == nil
	})
	ask := func(method, path string) (*http.Response, error) {
		r := must.Get(http.NewRequestWithContext(t.Context(), method, "http://preview.example"+path, nil))(t)
		r.Header.Set("Cookie", "own=1")
		return way.RoundTrip(r)
	}
	text := func(resp *http.Response, err error) string {
		must.Do(t, err)
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	if got, want := text(ask("GET", "/a?b=c")), fmt.Sprintf("200 GET /a?b=c localhost:%d own=1\n", port); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := text(ask("POST", "/a")); !strings.HasPrefix(got, "403 ") {
		t.Errorf("POST: %q", got)
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	far := must.Get(c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: "http" + strings.TrimPrefix(url, "ws") + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer("right")}, MaxRetries: -1}, nil))(t)
	defer far.Close()
	if got := toolText(t, far, "fetch_page", `{"terminalId":"`+h.Lent()[0].ID+`","path":"/broken"}`); !strings.Contains(got, `"status":500`) || !strings.Contains(got, "<h1>broken</h1>") || !strings.Contains(got, "src/main.c:3:5: error: no value") {
		t.Errorf("an agent at the host gets %s", got)
	}
	resp, err := ask("GET", "/events")
	must.Do(t, err)
	defer resp.Body.Close()
	must.Get(io.ReadFull(resp.Body, make([]byte, 6)))(t)
	must.Get(d.client.UnlendPorts(t.Context(), id, "lab", []string{strconv.Itoa(port)}))(t)
	ended := make(chan error, 1)
	go func() { _, err := resp.Body.Read(make([]byte, 1)); ended <- err }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-ended:
		if err == nil || err == io.EOF {
			t.Errorf("the stream ends as if it were whole: %v", err)
		}
	case <-ctx.Done():
		t.Error("the stream goes on")
	}
	again, err := ask("GET", "/")
	if !errors.Is(err, ports.ErrNotLent) { // the host may not know it yet, and its machine refuses
		if got := text(again, err); !strings.HasPrefix(got, "403 ") {
			t.Errorf("afterwards: %q", got)
		}
	}
	log, err := os.ReadFile(agent.AuditPath(where))
	check.OK(t, err)
	if !strings.Contains(string(log), fmt.Sprint("asks port ", port)) {
		t.Errorf("the audit log does not say who has asked:\n%s", log)
	}
}
