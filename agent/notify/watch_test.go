package notify_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/config"
	"tether/agent/notify"
	"tether/events"
	"tether/vocab"
)

// What is told, to whom, of which terminals.
func TestWatch(t *testing.T) {
	home := t.TempDir()
	terminals := map[string]notify.Terminal{
		"web":      {Name: "web", Owner: "user", Dirs: []string{filepath.Join(home, "src", "app")}},
		"attached": {Name: "attached", Owner: "user", Attached: true},
		"typed":    {Name: "typed", Owner: "user", Typed: time.Now().Add(-50 * time.Second)},
		"left":     {Name: "left", Owner: "user", Typed: time.Now().Add(-70 * time.Second)},
		"private":  {Name: "private", Owner: "user", Private: true},
		"named":    {Name: "named", Owner: "user", Private: true},
		"agent":    {Name: "agent", Owner: "agent"},
	}
	failed := func(id string) events.Event {
		return events.Event{Name: events.Exited, At: time.Now(), Data: map[string]any{"terminalId": id, "name": id, "exitCode": 1, "reason": vocab.ExitItself}}
	}
	killed := failed("web")
	killed.Data["reason"] = vocab.ExitKilled
	old := failed("web")
	old.At = time.Now().Add(-time.Hour)
	cleared := events.Event{Name: events.Problems, At: time.Now(), Data: map[string]any{"terminalId": "web", "name": "web", "new": 0, "cleared": 2, "open": 1}}
	more := events.Event{Name: events.Problems, At: time.Now(), Data: map[string]any{"terminalId": "web", "name": "web", "new": 2, "cleared": 0, "open": 3}}
	for _, c := range []struct {
		name string
		rule config.Notify
		ev   events.Event
		told bool
	}{
		{"a failure", config.Notify{To: "phone"}, failed("web"), true},
		{"attached", config.Notify{To: "phone"}, failed("attached"), false},
		{"typed a moment ago", config.Notify{To: "phone"}, failed("typed"), false},
		{"typed a while ago", config.Notify{To: "phone"}, failed("left"), true},
		{"ended by somebody", config.Notify{To: "phone"}, killed, false},
		{"before the daemon began", config.Notify{To: "phone"}, old, false},
		{"unknown", config.Notify{To: "phone"}, failed("gone"), false},
		{"private, elsewhere", config.Notify{To: "phone"}, failed("private"), false},
		{"private, elsewhere, by a pattern", config.Notify{To: "phone", Terminals: []string{"name*"}}, failed("named"), false},
		{"private, elsewhere, by name", config.Notify{To: "phone", Terminals: []string{"named"}}, failed("named"), true},
		{"private, here", config.Notify{To: "desktop"}, failed("private"), true},
		{"another name", config.Notify{To: "phone", Terminals: []string{"api"}}, failed("web"), false},
		{"the directory", config.Notify{To: "phone", Terminals: []string{"~/src"}}, failed("web"), true},
		{"another directory", config.Notify{To: "phone", Terminals: []string{"~/other"}}, failed("web"), false},
		{"another owner", config.Notify{To: "phone", Owners: []string{"user"}}, failed("agent"), false},
		{"an agent's", config.Notify{To: "phone", Owners: []string{"agent"}}, failed("agent"), true},
		{"problems that went away", config.Notify{To: "phone"}, cleared, false},
		{"new problems", config.Notify{To: "phone"}, more, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.Name, c.rule.On = "r", []string{config.NotifyFailedExit, config.NotifyNewProblem}
			got := notify.Told(c.rule, home, time.Now().Add(-time.Minute), func(id string) (notify.Terminal, bool) { x, ok := terminals[id]; return x, ok }, c.ev)
			if (len(got) == 1) != c.told {
				t.Errorf("told %q", got)
			}
		})
	}
}

// A host is away when it was not reached for a minute, once, and only if it was there.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of both
		var got []string
		lab := notify.Host{Name: "lab", Online: true}
		ctx, cancel := context.WithCancel(t.Context())
		go notify.Hosts(ctx, notify.Options{Hosts: func() []notify.Host {
			mu.Lock()
			defer mu.Unlock()
			return []notify.Host{lab, {Name: "never"}}
		}}, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, text)
		})
		told := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(got)
		}
		step := func(online bool, d time.Duration) {
			synctest.Wait()
			mu.Lock()
			lab.Online, lab.Why = online, "connection refused"
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
		}
		step(true, time.Hour)
		step(false, 40*time.Second)
		step(true, time.Minute)
		if got := told(); len(got) > 0 {
			t.Errorf("a short absence was told: %q", got)
		}
		step(false, time.Hour)
		step(true, time.Minute)
		step(false, time.Hour)
		if want := "lab: the host is away: connection refused"; !slices.Equal(told(), []string{want, want}) {
			t.Errorf("told %q", told())
		}
		cancel()
		synctest.Wait()
	})
}

// A host that is away is told to a receiver in clear text on this machine. What that does
// not take is left to the next one, which tells it.
func TestAwayAtAReceiver(t *testing.T) {
	took := make(chan string, 4)
	refuses := make(chan bool, 4)
	refuses <- true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-refuses:
			w.WriteHeader(http.StatusServiceUnavailable)
			took <- "refused"
		default:
			took <- string(body)
		}
	}))
	defer server.Close()
	receivers, err := notify.OpenReceivers(filepath.Join(t.TempDir(), "receivers.json"), &box{file: true})
	if err == nil {
		err = receivers.Put("phone", server.URL+"/topic", notify.Ntfy)
	}
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan bool, 1)
	reached <- true
	keep := filepath.Join(t.TempDir(), "notify.json")
	run := func(await string) {
		notifier := notify.New(notify.Options{
			Rules: []config.Notify{{Name: "away", On: []string{config.NotifyAway}, To: "phone"}}, Receivers: receivers, Report: func(string, string) {}, Keep: keep,
			Hosts: func() []notify.Host {
				select {
				case <-reached:
					return []notify.Host{{Name: "lab", Online: true}}
				default:
					return []notify.Host{{Name: "lab", Why: "connection refused"}}
				}
			},
		})
		notifier.AwaySoon(20 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			notifier.Run(ctx)
		}()
		if got := <-took; got != await {
			t.Errorf("it got %q, want %q", got, await)
		}
		cancel()
		<-done
	}
	run("refused")
	run("lab: the host is away: connection refused")
}
