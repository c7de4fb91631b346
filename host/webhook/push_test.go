package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"tether/events"
	"tether/host/access"
	"tether/host/leader"
	"tether/host/login"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/host/webpush"
	"tether/internal/testkit"
)

// pushRig is a hub that notifies browsers, with its push service, in a bubble.
type pushRig struct {
	t    *testing.T
	opts webhook.Options
	hub  *webhook.Hub
	stop func()

	mu      sync.Mutex
	all     []webhook.Event
	changed chan struct{}
	over    map[string]bool // logins, by name of the browser, and people's tokens
	hidden  map[string]bool // terminals that nobody may see
	status  int             // the service's answer
	keys    map[string]*testkit.PushBrowser
	got     []string // "browser: title: text", as the browser reads it
	bodies  []string
	record  []string
}

func newPushRig(t *testing.T) *pushRig {
	t.Helper()
	key, err := webpush.KeyOf([]byte("the host"))
	if err != nil {
		t.Fatal(err)
	}
	r := &pushRig{t: t, changed: make(chan struct{}), over: map[string]bool{}, hidden: map[string]bool{}, keys: map[string]*testkit.PushBrowser{}, status: http.StatusCreated}
	r.opts = webhook.Options{Open: r.open, Place: access.OwnFile(filepath.Join(t.TempDir(), "pushes.json")),
		Audit: func(ev rights.AuditEvent) {
			r.now(func() { r.record = append(r.record, ev.Type+" "+ev.Name+": "+ev.Detail) })
		},
		Push: &webhook.Push{SigningKey: key, Contact: "https://host.example", Login: r.login, Sees: func(p rights.Principal, terminal string) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return !r.hidden[terminal]
		}}}
	r.start()
	return r
}

func (r *pushRig) start() {
	r.t.Helper()
	hub, err := webhook.New(r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	hub.SetTransport(r)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { hub.Run(ctx); close(done) }()
	r.hub, r.stop = hub, func() { cancel(); <-done }
	synctest.Wait()
}

func (r *pushRig) now(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// login is that of a host: a browser's name is in its cookie, and the person's too.
func (r *pushRig) login(b login.Browser) (rights.Principal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rights.Principal{Name: b.Name, Role: rights.RoleObserver, Owner: "p-" + b.Name}, !r.over[string(b.Cookie)] && !r.over[b.Name]
}

// open is Options.Open: events from now on.
func (r *pushRig) open(_ context.Context, _ rights.Principal, q webhook.Request) (webhook.Source, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &pushSource{r, q, len(r.all)}, false, nil
}

type pushSource struct {
	r  *pushRig
	q  webhook.Request
	at int
}

func (s *pushSource) Cursor() *string { return nil }
func (s *pushSource) Close()          {}

func (s *pushSource) Next(ctx context.Context) (webhook.Event, error) {
	for {
		s.r.mu.Lock()
		changed := s.r.changed
		for s.at < len(s.r.all) {
			ev := s.r.all[s.at]
			s.at++
			has := func(text string) bool { return strings.Contains(string(ev.Body), `"`+text+`"`) }
			if slices.ContainsFunc(s.q.Kinds, has) && (s.q.Terminals == nil || slices.ContainsFunc(s.q.Terminals, has)) {
				s.r.mu.Unlock()
				return ev, nil
			}
		}
		s.r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return webhook.Event{}, ctx.Err()
		}
	}
}

// happen makes something happen in a terminal.
func (r *pushRig) happen(kind, terminal string, more map[string]any) {
	r.t.Helper()
	data := map[string]any{"terminalId": terminal, "name": "laptop/" + terminal, "machine": "laptop"}
	for key, value := range more {
		data[key] = value
	}
	body, err := json.Marshal(events.Event{ID: "x-1", Name: kind, Data: data})
	if err != nil {
		r.t.Fatal(err)
	}
	r.now(func() {
		r.all = append(r.all, webhook.Event{ID: "x-1", Body: body})
		close(r.changed)
		r.changed = make(chan struct{})
	})
	synctest.Wait()
}

// RoundTrip is the push service, and the browser behind it.
func (r *pushRig) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil || len(body) > 4096 {
		r.t.Errorf("%d bytes, %v", len(body), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.TrimPrefix(q.URL.Path, "/")
	text := r.keys[name].Decrypt(r.t, body)
	var n struct{ Title, Text, Tag, Open string }
	if err := json.Unmarshal(text, &n); err != nil {
		r.t.Errorf("%v in %s", err, text)
	}
	if r.status < 300 {
		r.got, r.bodies = append(r.got, name+": "+n.Title+": "+n.Text), append(r.bodies, string(text))
	}
	w := httptest.NewRecorder()
	w.WriteHeader(r.status)
	return w.Result(), nil
}

// browser returns a browser of a person's, with the same keys each time.
func (r *pushRig) browser(person, name string) page.PushBrowser {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys[name] == nil {
		r.keys[name] = testkit.Browser(r.t, "", "")
	}
	return page.PushBrowser{Login: login.Browser{Name: person, Cookie: []byte("cookie " + person + name), Until: time.Now().Add(12 * time.Hour)},
		To: webpush.Subscription{Endpoint: "https://push.example.com/" + name, Keys: webpush.Keys(r.keys[name].Keys())}}
}

// choose chooses kinds of events of all terminals, or of some.
func (r *pushRig) choose(person, name string, kinds []string, terminals ...string) {
	r.t.Helper()
	c := page.PushChoice{All: terminals == nil, Terminals: terminals, Kinds: kinds}
	if _, err := r.hub.Choose(r.t.Context(), r.browser(person, name), &c); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// taken returns what browsers have shown since the last call.
func (r *pushRig) taken() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.got = nil }()
	return strings.Join(r.got, "; ")
}

// present returns a browser's choice, as the page asks for it.
func (r *pushRig) present(person, name string) string {
	r.t.Helper()
	c, err := r.hub.Choose(r.t.Context(), r.browser(person, name), nil)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(c.All, c.Terminals, len(c.Kinds))
}

var failed = map[string]any{"exitCode": 1, "lastLine": "boom"}

// Browsers get what was chosen, and nothing else.
func TestPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "phone", page.PushKinds())
		r.choose("bob", "desk", []string{events.Exited}, "dev")
		for kind, more := range map[string]map[string]any{events.Exited: failed, events.Problems: {"new": 0, "cleared": 1}, events.MachineAway: nil} {
			r.happen(kind, "dev", more)
		}
		got := strings.Split(r.taken(), "; ")
		slices.Sort(got)
		if want := "desk: laptop/dev: exited with code 1; last line: boom; phone: laptop/dev: exited with code 1; last line: boom"; strings.Join(got, "; ") != strings.Join(sorted(want), "; ") {
			t.Errorf("got %q\nwant %q", got, want)
		}
		r.happen(events.Exited, "web", failed)
		r.happen(events.AwaitingInput, "dev", map[string]any{"kind": "awaiting_secret"})
		r.happen(events.Problems, "dev", map[string]any{"new": 2, "cleared": 0, "open": 2, "first": []any{map[string]any{"file": "a.go", "line": 3, "message": "undefined: x"}}})
		if got, want := r.taken(), "phone: laptop/web: exited with code 1; last line: boom; phone: laptop/dev: waits for a secret, such as a password; "+
			"phone: laptop/dev: 2 new problems, 0 cleared, 2 open; first: a.go:3: undefined: x"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r.choose("ann", "phone", nil)
		r.happen(events.Exited, "web", failed)
		if got := r.taken(); got != "" || r.hub.Count() != 1 {
			t.Errorf("after it was switched off: %s, %d subscriptions", got, r.hub.Count())
		}
		if got := strings.Join(r.record, "; "); got != "push ann: push to push.example.com: subscribed; push bob: push to push.example.com: subscribed; push_ended ann: push to push.example.com: switched off" {
			t.Errorf("recorded: %s", got)
		}
	})
}

func sorted(list string) []string {
	all := strings.Split(list, "; ")
	slices.Sort(all)
	return all
}

// A notification's text is short and visible, whatever a program prints, and leads to its
// terminal.
func TestPushedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "phone", []string{events.Exited})
		for _, line := range []string{strings.Repeat("😀\"<\\", 1000), "\x1b[31mred\u202e\x00\u200b", strings.Repeat("x", 9000)} {
			r.happen(events.Exited, "dev", map[string]any{"name": line + "a", "exitCode": 1, "lastLine": line})
		}
		if got := r.taken(); strings.ContainsAny(got, "\x1b\u202e\x00\u200b") || len(r.bodies) != 3 {
			t.Errorf("%d: %q", len(r.bodies), got)
		}
		for _, body := range r.bodies {
			var n struct{ Title, Text, Tag, Open string }
			if err := json.Unmarshal([]byte(body), &n); err != nil || utf8.RuneCountInString(n.Text) > 500 || utf8.RuneCountInString(n.Title) > 100 || n.Open != "/#dev" || n.Tag != "dev terminal.exited" {
				t.Errorf("%v: %d characters, %d in the title, %q, %q", err, utf8.RuneCountInString(n.Text), utf8.RuneCountInString(n.Title), n.Open, n.Tag)
			}
		}
	})
}

// Who may not see a terminal when a notification is sent gets none, also when it is
// repeated.
func TestPushedRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "phone", []string{events.Exited})
		r.now(func() { r.hidden["dev"] = true })
		r.happen(events.Exited, "dev", failed)
		r.now(func() { r.status = http.StatusServiceUnavailable })
		r.happen(events.Exited, "web", failed) // is tried again
		r.now(func() { r.status, r.hidden["web"] = http.StatusCreated, true })
		time.Sleep(time.Hour)
		if got := r.taken(); got != "" || r.hub.Count() != 1 {
			t.Errorf("without the right: %s, %d subscriptions", got, r.hub.Count())
		}
		r.happen(events.Exited, "api", failed)
		if got := r.taken(); got != "phone: laptop/api: exited with code 1; last line: boom" {
			t.Errorf("of another terminal: %s", got)
		}
	})
}

// A subscription ends with its login, at once for what is sent, and within a minute.
func TestPushesEndWithTheLogin(t *testing.T) {
	for name, over := range map[string]string{"logout": "cookie annphone", "a revoked token": "ann"} {
		for _, happens := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newPushRig(t)
				defer r.stop()
				r.choose("ann", "phone", []string{events.Exited})
				r.choose("bob", "desk", []string{events.Exited})
				r.now(func() { r.over[over] = true })
				if happens {
					r.happen(events.Exited, "dev", failed)
				} else {
					time.Sleep(time.Minute + time.Second)
				}
				if got := r.taken(); strings.Contains(got, "phone") || happens != strings.Contains(got, "desk") || r.hub.Count() != 1 {
					t.Errorf("%s: %q, %d subscriptions", name, got, r.hub.Count())
				}
				if got := strings.Join(r.record, "; "); !strings.HasSuffix(got, "push_ended ann: push to push.example.com: the login is over") {
					t.Errorf("%s: recorded %s", name, got)
				}
			})
		}
	}
}

// A subscription lasts 30 days after its last use, whatever the services' answers.
func TestPushesAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "phone", []string{events.Exited})
		for range 3 {
			time.Sleep(29 * 24 * time.Hour)
			if got := r.present("ann", "phone"); got != "true [] 1" {
				t.Fatalf("within 30 days: %s", got)
			}
		}
		r.happen(events.Exited, "dev", failed)
		if got := r.taken(); got == "" {
			t.Error("after 87 days of use nothing is sent")
		}
		time.Sleep(30*24*time.Hour + time.Minute)
		r.happen(events.Exited, "dev", failed)
		if got := r.taken() + r.present("ann", "phone"); got != "false [] 0" {
			t.Errorf("after 30 days: %s", got)
		}
	})
}

// What a push service says ends a subscription, or an attempt.
func TestPushServices(t *testing.T) {
	for status, c := range map[int]struct {
		left   int  // subscriptions
		repeat bool // the message comes later
	}{404: {0, false}, 410: {0, false}, 400: {1, false}, 403: {1, false}, 413: {1, false}, 429: {1, true}, 500: {1, true}, 307: {1, true}} {
		synctest.Test(t, func(t *testing.T) {
			r := newPushRig(t)
			defer r.stop()
			r.choose("ann", "phone", []string{events.Exited})
			r.now(func() { r.status = status })
			r.happen(events.Exited, "dev", failed)
			r.now(func() { r.status = http.StatusCreated })
			time.Sleep(time.Hour)
			if got := r.taken(); (got != "") != c.repeat || r.hub.Count() != c.left {
				t.Errorf("%d: %q, %d subscriptions", status, got, r.hub.Count())
			}
		})
	}
}

// A host that starts again goes on, with the choice, but not with what it has missed.
func TestPushesOutliveTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		r.choose("ann", "phone", []string{events.Exited}, "dev")
		r.choose("bob", "desk", []string{events.Exited})
		r.stop()
		r.happen(events.Exited, "dev", failed)
		r.now(func() { r.over["bob"] = true })
		r.start()
		defer func() { r.stop() }()
		if got := r.present("ann", "phone"); got != "false [dev] 1" || r.hub.Count() != 1 {
			t.Errorf("after the start: %s, %d subscriptions", got, r.hub.Count())
		}
		r.happen(events.Exited, "dev", failed)
		if got := r.taken(); got != "phone: laptop/dev: exited with code 1; last line: boom" {
			t.Errorf("after the start: %s", got)
		}
	})
}

// A browser notifies the person who has logged in there last, and a person has only so
// many browsers.
func TestPushesOfPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "shared", []string{events.Exited}, "dev")
		if got := r.present("bob", "shared"); got != "false [] 0" || r.hub.Count() != 0 {
			t.Errorf("somebody else's browser now: %s, %d", got, r.hub.Count())
		}
		r.choose("bob", "desk", []string{events.Exited})
		for i := range webhook.MaxBrowsers + 1 {
			time.Sleep(time.Second)
			r.choose("ann", fmt.Sprint("phone", i), []string{events.Exited})
		}
		if got := r.present("ann", "phone0") + r.present("ann", "phone1") + r.present("bob", "desk"); got != "false [] 0true [] 1true [] 1" || r.hub.Count() != webhook.MaxBrowsers+1 {
			t.Errorf("%s, %d subscriptions", got, r.hub.Count())
		}
	})
}

// A terminal that fails again and again does not call all the time.
func TestPushesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		r.choose("ann", "phone", []string{events.CommandFinished})
		for range 600 {
			r.happen(events.CommandFinished, "dev", map[string]any{"exitCode": 1, "line": "make"})
			time.Sleep(time.Second)
		}
		if n := strings.Count(r.taken(), "phone"); n < 30 || n > 45 {
			t.Errorf("%d notifications in ten minutes", n)
		}
	})
}

func TestBadPushRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		defer r.stop()
		for name, change := range map[string]func(*page.PushBrowser){
			"a private address": func(b *page.PushBrowser) { b.To.Endpoint = "https://10.0.0.1/x" },
			"this machine":      func(b *page.PushBrowser) { b.To.Endpoint = "https://127.0.0.1/x" },
			"no TLS":            func(b *page.PushBrowser) { b.To.Endpoint = "http://push.example.com/x" },
			"a script":          func(b *page.PushBrowser) { b.To.Endpoint = "javascript:alert(1)" },
			"no key":            func(b *page.PushBrowser) { b.To.Keys.P256dh = "" },
			"a login that ended": func(b *page.PushBrowser) {
				r.now(func() { r.over["cookie annx"] = true })
			},
		} {
			b := r.browser("ann", "x")
			change(&b)
			_, err := r.hub.Choose(t.Context(), b, &page.PushChoice{All: true, Kinds: page.PushKinds()})
			if _, ok := errors.AsType[*page.PushRefused](err); !ok || r.hub.Count() != 0 {
				t.Errorf("%s: %v", name, err)
			}
			r.now(func() { clear(r.over) })
		}
	})
}

// Browsers ask any node; one delivers, also after it was replaced.
func TestPushesOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPushRig(t)
		r.stop()
		place := access.File(filepath.Join(t.TempDir(), "state", "pushes"))
		nodes := testkit.NewNodes(t, "push.example.com")
		shared := map[string]*webhook.SharedPushes{}
		for _, name := range []string{"a", "b"} {
			one, err := webhook.NewSharedPushes(leader.Shared{Nodes: testkit.Node{Nodes: nodes, Name: name}, Place: place, Key: []byte(strings.Repeat("k", 32))}, r.opts.Push.SigningKey,
				func(kept access.Place) (*webhook.Hub, error) {
					o := r.opts
					o.Place = kept
					hub, err := webhook.New(o)
					if err == nil {
						hub.SetTransport(r)
					}
					return hub, err
				})
			if err != nil {
				t.Fatal(err)
			}
			shared[name] = one
			ctx, cancel := context.WithCancel(t.Context())
			go one.Run(ctx)
			t.Cleanup(func() { cancel(); synctest.Wait() })
		}
		synctest.Wait()
		nodes.Lead("a")
		synctest.Wait()
		if shared["a"].Key() != shared["b"].Key() {
			t.Error("the nodes have different keys")
		}
		b := r.browser("ann", "phone")
		if _, err := shared["b"].Choose(t.Context(), b, &page.PushChoice{All: true, Kinds: []string{events.Exited}}); err != nil {
			t.Fatal(err)
		}
		bad := b
		bad.To.Endpoint = "https://10.0.0.1/"
		if _, err := shared["b"].Choose(t.Context(), bad, nil); err == nil || !strings.Contains(err.Error(), "push service") {
			t.Errorf("a wrong request at the node that does not lead: %v", err)
		}
		synctest.Wait()
		r.happen(events.Exited, "dev", failed)
		if got := r.taken(); strings.Count(got, "phone") != 1 {
			t.Errorf("at one node: %s", got)
		}
		nodes.Lead("b")
		synctest.Wait()
		nodes.Stop("a")
		r.happen(events.Exited, "dev", failed)
		if got := r.taken(); strings.Count(got, "phone") != 1 {
			t.Errorf("at the next one: %s", got)
		}
		if kept, err := place.Read(); err != nil || strings.Contains(string(kept), "example.com") || len(kept) < 100 {
			t.Errorf("what is kept can be read: %.100q, %v", kept, err)
		}
	})
}
