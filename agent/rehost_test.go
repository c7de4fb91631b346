package agent_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"tether/agent"
	"tether/agent/localapi"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestHostsAreRenamedAndChosen(t *testing.T) {
	d := home(t)
	one, two := startHost(t, "1"), startHost(t, "2")
	a := start(t, agent.Config{Dirs: d})
	for name, r := range map[string]localapi.PairRequest{"one": {URL: one, Token: "1"}, "two": {URL: two, Token: "2"}} {
		r.Name, r.Default = name, name == "one"
		must.Get(a.client.Pair(t.Context(), r))(t)
	}
	change := func(name string, c localapi.HostChange, code localapi.Code) localapi.HostStatus {
		t.Helper()
		h, err := a.client.ChangeHost(t.Context(), name, c)
		var e *localapi.Error
		if code == "" && err != nil || code != "" && (!errors.As(err, &e) || e.Code != code) {
			t.Errorf("change %q to %+v: %v, want %q", name, c, err, code)
		}
		return h
	}
	if h := change("two", localapi.HostChange{Default: true}, ""); !h.Default {
		t.Errorf("chosen: %+v", h)
	}
	if h := change("one", localapi.HostChange{Name: "first"}, ""); h.Name != "first" || h.Default || h.URL != one {
		t.Errorf("renamed: %+v", h)
	}
	change("one", localapi.HostChange{Default: true}, localapi.CodeNotPaired)
	change("first", localapi.HostChange{Name: "two"}, localapi.CodePaired)
	change("first", localapi.HostChange{Name: "a b"}, localapi.CodeBadRequest)
	change("first", localapi.HostChange{}, localapi.CodeBadRequest)

	// The default one is lent to, and keeps its name meanwhile.
	lent, err := a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/")})
	if err != nil || len(lent.LentTo) != 1 || lent.LentTo[0] != "two" {
		t.Fatalf("lent to %v, %v", lent.LentTo, err)
	}
	change("two", localapi.HostChange{Name: "second"}, localapi.CodeExists)
	must.Get(a.client.UnlendAll(t.Context(), "two"))(t)
	change("two", localapi.HostChange{Name: "second"}, "")
	if lent, err = a.client.Lend(t.Context(), lent.ID, localapi.LendRequest{}); err != nil || lent.LentTo[0] != "second" {
		t.Errorf("lent again to %v, %v", lent.LentTo, err)
	}
	a.status("both are online under their names", func(s localapi.Status) bool {
		return s.Hosts[0].State == "online" && s.Hosts[1].State == "online" && s.Hosts[0].Name+s.Hosts[1].Name != "onetwo"
	})
	a.end()
	a = start(t, agent.Config{Dirs: d})
	a.status("so they are after a restart", func(s localapi.Status) bool {
		names := map[string]bool{}
		for _, h := range s.Hosts {
			names[h.Name] = h.Default
		}
		return len(names) == 2 && names["second"] && !names["first"] && s.Hosts[0].State == "online"
	})
}

func TestPinsAreCheckedAtPairing(t *testing.T) {
	a := start(t, agent.Config{Dirs: home(t)})
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that come to nothing
	s.StartTLS()
	defer s.Close()
	url, right := strings.Replace(s.URL, "https", "wss", 1), client.PinOf(s.Certificate()).String()
	for _, try := range []func(localapi.PairRequest) error{
		func(r localapi.PairRequest) error { _, err := a.client.Pair(t.Context(), r); return err },
		func(r localapi.PairRequest) error { _, err := a.client.Offer(t.Context(), r); return err },
	} {
		err := try(localapi.PairRequest{URL: url})
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != localapi.CodeRefused || !strings.Contains(e.Message, "not trusted") || !strings.Contains(e.Hint, right) {
			t.Errorf("a certificate that nobody knows: %+v", err)
		}
		err = try(localapi.PairRequest{URL: url, Pin: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != localapi.CodeRefused || !strings.Contains(e.Message, "pinned") {
			t.Errorf("another pin: %+v", err)
		}
	}
	if o, err := a.client.Offer(t.Context(), localapi.PairRequest{URL: url, Pin: right}); err != nil || o.ID != "" {
		t.Errorf("the right pin: %+v, %v", o, err)
	}
	const pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for _, r := range []localapi.PairRequest{{URL: "wss://host.example", Pin: "sha256/short"}, {URL: "ws://127.0.0.1:1", Pin: pin}} {
		_, err := a.client.Pair(t.Context(), r)
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != localapi.CodeBadRequest {
			t.Errorf("%+v: %v, want %s", r, err, localapi.CodeBadRequest)
		}
	}
}

// A link that waits, here for minutes because it was refused, tries again when the person
// says so.
func TestAHostIsTriedAgainAtOnce(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	d := home(t)
	h := host.New(host.Options{})
	t.Cleanup(h.Close)
	var refuses atomic.Bool
	var tried atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			tried.Add(1)
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a := start(t, agent.Config{Dirs: d})
	request := localapi.PairRequest{Name: "lab", URL: "ws" + strings.TrimPrefix(server.URL, "http")}
	must.Get(a.client.Pair(t.Context(), request))(t)
	refuses.Store(true)
	h.Close()
	for n := range 10 { // by itself it would take half an hour
		before := tried.Load()
		testkit.Eventually(t, testkit.Patience, fmt.Sprint("attempt ", n), func() bool {
			refused := tried.Load() > 0 // before it is asked how the link is: then it has been down
			if s, err := a.client.ChangeHost(t.Context(), "lab", localapi.HostChange{Retry: true}); err != nil || s.State == "online" && refused {
				t.Fatalf("%+v, %v", s, err)
			}
			return tried.Load() > before
		})
	}
	a.end()
}
