package agent_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/roam"
	"tether/platform/secret"
)

// silentHost accepts connections and says nothing.
func silentHost(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, c := range conns {
			c.Close()
		}
	})
	return "ws://" + l.Addr().String()
}

// pairedWith writes the store of a daemon that has these hosts, by name.
func pairedWith(t *testing.T, state string, urls map[string]string) {
	t.Helper()
	type host struct {
		Name     string `json:"name"`
		URL      string `json:"url"`
		ClientID string `json:"client_id"`
		Default  bool   `json:"default"`
	}
	var all []host
	for name, url := range urls {
		all = append(all, host{Name: name, URL: url, ClientID: "laptop-" + name, Default: name == "silent"})
	}
	data := must.Get(json.Marshal(map[string]any{"version": 1, "hosts": all}))(t)
	must.Do(t, secret.Dir(state))
	must.Do(t, secret.WriteFile(filepath.Join(state, "hosts.json"), data))
}

// In any state of the network, status asks nobody: it answers within 200 ms, and shows
// the true state of a link.
func TestStatusIsQuickAndTrue(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	d := home(t)
	pairedWith(t, d.State, map[string]string{"silent": silentHost(t), "closed": "ws://127.0.0.1:1", "nowhere": "wss://nowhere.invalid"})
	a := start(t, agent.Config{Dirs: d})
	for range 2 {
		must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "while :; do echo flood; done"}, Env: os.Environ(), Cwd: testkit.Abs("/")}))(t)
	}
	s := a.status("failures of those that fail at once, and output that waits", func(s localapi.Status) bool {
		failed, waits := 0, false
		for _, h := range s.Hosts {
			if h.Error != "" && !h.NextRetry.IsZero() {
				failed++
			}
			waits = waits || h.Name == "silent" && h.Unacked > 0
		}
		return failed >= 1 && waits && s.Logs.Bytes > 0
	})
	for _, h := range s.Hosts {
		if h.State == "online" || h.Server != "" || h.Protocol != "" || h.DownSince.IsZero() {
			t.Errorf("%s, which nobody reaches, is shown as %+v", h.Name, h)
		}
	}
	if s.Logs.MaxBytes != int64(config.Default().Terminals.TotalLogBytes) {
		t.Errorf("the output kept is %+v", s.Logs)
	}
	testkit.Eventually(t, patience, "status takes less than 200 ms", func() bool { // the slow ones are the machine's
		began := time.Now()
		must.Get(a.client.Status(t.Context()))(t)
		return time.Since(began) < 200*time.Millisecond
	})
}

// Configured values arrive where they have an effect.
func TestSettings(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	d := home(t)
	c := config.Default()
	c.Terminals.TotalLogBytes, c.Terminals.LogBytes, c.Terminals.MaxRunning = 32<<20, 64<<10, 1
	a := start(t, agent.Config{Dirs: d, Settings: &c})
	spawn := func() (localapi.Terminal, error) {
		return a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "head -c 1000000 /dev/zero; exec sleep 1000"}, Env: os.Environ(), Cwd: testkit.Abs("/")})
	}
	one := must.Get(spawn())(t)
	if _, err := spawn(); err == nil {
		t.Error("a second terminal was started, one is allowed")
	}
	s := a.status("a log that is full", func(s localapi.Status) bool { return s.Logs.Bytes >= 64<<10 })
	if s.Logs.MaxBytes != 32<<20 {
		t.Errorf("the bound is %d", s.Logs.MaxBytes)
	}
	testkit.Eventually(t, patience, "everything printed", func() bool {
		i, err := a.client.Find(t.Context(), one.ID)
		return err == nil && i.Bytes == 1000000 && i.Retained == 64<<10
	})
}

// The machine's moves reach the links: a host that is back is found at once.
func TestMovesReachTheLinks(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	pairedWith(t, d.State, map[string]string{"lab": "ws://127.0.0.1:1"}) // nobody is there
	moves := make(chan roam.Change)
	a := start(t, agent.Config{Dirs: d, Watch: func(ctx context.Context, moved func(roam.Change)) error {
		for {
			select {
			case c := <-moves:
				moved(c)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}})
	before := a.status("a failure", func(s localapi.Status) bool { return s.Hosts[0].State == "waiting" }).Hosts[0]
	for range 3 { // each begins an attempt at once
		moves <- roam.Moved
		a.status("another attempt", func(s localapi.Status) bool {
			h := s.Hosts[0]
			again := h.State == "waiting" && h.Since.After(before.Since)
			if again {
				before = h
			}
			return again
		})
	}
}

// The clock is compared with the time in the host's answer; a host without one is not
// taken to be in 1970.
func TestStatusReportsClockSkew(t *testing.T) {
	d := home(t)
	urls := map[string]string{}
	dates := map[string]func() string{
		"ahead":  func() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) },
		"same":   func() string { return time.Now().UTC().Format(http.TimeFormat) },
		"broken": func() string { return "soon" },
	}
	for name, date := range dates {
		h := host.New(host.Options{Token: "t", Grace: time.Minute})
		t.Cleanup(h.Close)
		urls[name] = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", date())
			h.ServeHTTP(w, r)
		}))
	}
	a := start(t, agent.Config{Dirs: d})
	for name, url := range urls {
		must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "t", Name: name}))(t)
	}
	s := a.status("all online", func(s localapi.Status) bool {
		return len(s.Hosts) == len(urls) && !slices.ContainsFunc(s.Hosts, func(h localapi.HostStatus) bool { return h.State != "online" })
	})
	for _, h := range s.Hosts {
		if ahead := time.Duration(h.ClockSkew) * time.Second; (h.Name == "ahead") != (ahead > 30*time.Minute) || h.Name == "broken" && ahead != 0 {
			t.Errorf("%s is %v ahead", h.Name, ahead)
		}
	}
}
