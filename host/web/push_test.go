package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/host/login"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/host/webpush"
	"tether/internal/testkit"
)

// subscribing stands in for a page's PushManager: a browser that no person uses has no
// push service. All else is the browser's own.
const subscribing = `(() => {
  const at = JSON.parse(localStorage.getItem("sub") ?? "null"), made = keys => ({toJSON: () => keys, unsubscribe: async () => { localStorage.removeItem("sub"); sub = null; return true; }});
  let sub = at && made(at);
  if (Notification.permission !== "granted") Notification.requestPermission = async () => "granted";
  PushManager.prototype.getSubscription = async () => sub;
  PushManager.prototype.subscribe = async o => {
    if (!o.userVisibleOnly || o.applicationServerKey !== KEY) throw new Error("subscribed with " + JSON.stringify(o));
    localStorage.setItem("sub", JSON.stringify(SUB));
    return sub = made(SUB);
  };
})()`

// showing stands in for what shows notifications in the service worker, in a browser
// without a desktop. Otherwise the browser does, and clicked tells the worker of a click,
// which no protocol can make.
const (
	showing = `(() => {
  if (Notification.permission === "granted") return;
  const all = [];
  ServiceWorkerRegistration.prototype.showNotification = async (title, o) => { all.push({title, ...o, close: () => all.pop()}); };
  ServiceWorkerRegistration.prototype.getNotifications = async () => all;
})()`
	shown   = `registration.getNotifications().then(all => JSON.stringify(all.map(n => [n.title, n.body, n.tag, n.data.open])))`
	clicked = `registration.getNotifications().then(([notification]) => { dispatchEvent(Object.assign(new ExtendableEvent("notificationclick"), {notification})); })`
)

// notified returns what the worker shows, as JSON.
func (b *browser) notified() (list string) {
	b.t.Helper()
	b.do("worker", args{"js": shown}, &list)
	return list
}

// pushSite is a site that notifies browsers through a push service.
type pushSite struct {
	*site
	keys   *testkit.PushBrowser
	pushed chan []byte // messages to the browser, decrypted
	before string      // script of its page
}

func newPushSite(t *testing.T) *pushSite {
	t.Helper()
	oneNode(t, "host/webhook tests notifications of nodes")
	s := &pushSite{keys: testkit.Browser(t, "", ""), pushed: make(chan []byte, 16)}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "vapid t=") {
			t.Errorf("%v, %v", r.Header, err)
		}
		s.pushed <- s.keys.Decrypt(t, body)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(service.Close)
	key, err := webpush.KeyOf([]byte("host"))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := webhook.New(webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Open: func(ctx context.Context, p rights.Principal, r webhook.Request) (webhook.Source, bool, error) {
			return webhook.OpenKinds(s.host.Agents())(ctx, p, r)
		},
		Push: &webhook.Push{SigningKey: key, Login: func(b login.Browser) (rights.Principal, bool) { return s.host.Logins().Of(b) },
			Sees: func(p rights.Principal, id string) bool { return s.host.Sees(p, id) }}})
	if err != nil {
		t.Fatal(err)
	}
	s.site = newSite(t, host.Options{Pushes: hub})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { hub.Run(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	sub, err := json.Marshal(map[string]any{"endpoint": service.URL + "/wp/x", "expirationTime": nil, "keys": s.keys.Keys()})
	if err != nil {
		t.Fatal(err)
	}
	s.before = strings.NewReplacer("KEY", `"`+key.Public()+`"`, "SUB", string(sub)).Replace(subscribing)
	return s
}

// A person chooses a terminal at the page. What happens there then reaches the browser's
// service worker, which shows it, and a click on it shows the terminal.
func TestNotifications(t *testing.T) {
	b := newBrowser(t)
	s := newPushSite(t)
	other, dev := s.lend(s.machine, "laptop", "other"), s.lend(s.machine, "laptop", "dev-server")
	b.do("open", nil, nil)
	b.do("before", args{"js": s.before}, nil)
	s.login(b)
	s.choose(b, "dev-server")
	b.wait("!document.querySelector('#bell').hidden")
	if got := b.text("document.querySelector('#bell').getAttribute('aria-pressed')"); got != "false" {
		t.Errorf("before a choice it is %s", got)
	}
	b.do("click", args{"selector": "#bell"}, nil)
	b.wait("document.querySelector('#bell').getAttribute('aria-pressed') === 'true'")
	b.do("reload", nil, nil)
	b.wait("document.querySelector('#bell').getAttribute('aria-pressed') === 'true'") // the host remembers the choice
	s.act(other, command("1", "false", "", 1, 5)...)
	s.act(dev, command("2", "make \u202etest", "boom\r\n", 2, 5)...)
	data := <-s.pushed
	b.do("worker", args{"js": showing}, nil)
	b.do("push", args{"origin": s.server.URL, "data": string(data)}, nil)
	testkit.Eventually(t, testkit.Patience, "the worker shows it", func() bool { return b.notified() != "[]" })
	id := b.text("location.hash")
	want := `[["laptop/dev-server","command finished with exit code 2 after 0s: make test","` + strings.TrimPrefix(id, "#") + ` terminal.command_finished","/` + id + `"]]`
	if got := b.notified(); got != want {
		t.Errorf("it shows %s\nwant     %s", got, want)
	}
	s.choose(b, "other")
	b.wait("document.querySelector('#facts').innerText.includes('1 watching')") // nobody reads it for notifications
	b.do("worker", args{"js": clicked}, nil)
	b.wait("location.hash === '" + id + "'")
	if got := b.notified(); got != "[]" {
		t.Errorf("after the click it shows %s", got)
	}
	b.shot("notified")
	b.do("click", args{"selector": "#notify"}, nil)
	b.shot("notifications")
	b.do("click", args{"selector": "#notices [name=of][value=none]"}, nil)
	b.do("click", args{"selector": "#notice-save"}, nil)
	b.wait("document.querySelector('#bell').getAttribute('aria-pressed') === 'false' && !document.querySelector('#notices').open")
	s.act(dev, ahp.TerminalOutput{Data: "x"})
	b.clean(s.server.URL)
}

// The browser offers to install the page.
func TestPageCanBeInstalled(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	b.do("open", nil, nil)
	s.login(b)
	var got struct {
		Errors, Installability []string
		Data                   string
	}
	b.do("manifest", nil, &got)
	got.Installability = slices.DeleteFunc(got.Installability, func(e string) bool { return e == "in-incognito" }) // as all tests are, with a whole Chromium
	if len(got.Errors)+len(got.Installability) > 0 || !strings.Contains(got.Data, `"start_url": "/"`) {
		t.Errorf("%+v", got)
	}
	b.wait("document.querySelector('#notify').hidden") // this host notifies nobody
	b.clean(s.server.URL)
}
