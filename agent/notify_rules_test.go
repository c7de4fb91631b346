package agent_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/platform/dirs"
	"tether/platform/pty"
)

// told is a receiver, over TLS, with the bodies that it took, by path.
type told struct {
	mu  sync.Mutex
	all map[string][]string
	url string
	tls *tls.Config
}

func newTold(t *testing.T) *told {
	r := &told{all: map[string][]string{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.HasPrefix(q.URL.Path, "/gone") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.all[q.URL.Path] = append(r.all[q.URL.Path], string(body))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	r.url, r.tls = server.URL, &tls.Config{RootCAs: pool}
	return r
}

// await waits until a message with want arrived at a path.
func (r *told) await(t *testing.T, path, want string) {
	t.Helper()
	var got []string
	testkit.Eventually(t, patience, path+" is told "+want, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		got = slices.Clone(r.all[path])
		return strings.Contains(strings.Join(got, "\n"), want)
	})
}

// Each kind of news reaches the person in the form of the service, masked, and nothing
// shows the URL.
func TestThePersonIsTold(t *testing.T) {
	children := map[string]*testkit.Child{}
	var mu sync.Mutex
	child := func(name string) (c *testkit.Child) {
		testkit.Eventually(t, patience, name+" runs", func() bool {
			mu.Lock()
			defer mu.Unlock()
			c = children[name]
			return c != nil
		})
		return c
	}
	settings := config.Default()
	settings.Terminal = []config.Declared{{Name: "service", Command: []string{"service"}, Ready: config.Ready{Pattern: "listens"}}}
	receivers := []string{"json", "ntfy", "slack", "discord", "mattermost", "pattern", "gone"}
	for i, on := range []string{config.NotifyFailedExit, config.NotifyFailedCommand, config.NotifyLongCommand, config.NotifyNewProblem, config.NotifyReady, config.NotifyPattern} {
		settings.Notify = append(settings.Notify, config.Notify{Name: "r-" + on, On: []string{on}, To: receivers[i]})
	}
	settings.Notify[2].LongerThan, settings.Notify[5].Pattern = config.Duration(time.Second), "MATCH"
	settings.Notify = append(settings.Notify, config.Notify{Name: "gone", On: []string{config.NotifyPattern}, Pattern: "MATCH", To: "gone"},
		config.Notify{Name: "none", On: []string{config.NotifyReady}, To: "nowhere"})
	receiver := newTold(t)
	dir := home(t)
	d := start(t, agent.Config{Dirs: dir, Settings: &settings, NotifyTLS: receiver.tls, Terminals: term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) {
		mu.Lock()
		defer mu.Unlock()
		name := c.Args[0]
		children[name] = testkit.NewChild()
		return children[name], nil
	}}})
	for _, name := range receivers {
		form := name
		if name == "pattern" || name == "gone" {
			form = "json"
		}
		if _, err := d.client.AddReceiver(t.Context(), name, localapi.ReceiverRequest{URL: receiver.url + "/" + name + "/canary-path", Form: form}); err != nil {
			t.Fatal(err)
		}
	}
	d.status("the missing URL", func(s localapi.Status) bool { return has(s, "notify nowhere", "which has no URL") })

	ids := map[string]string{}
	for _, name := range []string{"exits", "shell", "slow", "tsc", "matches", "watched"} {
		tm, err := d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{name}, Name: name, Cwd: testkit.Abs("/src")})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = tm.ID
	}
	const command = "\x1b]133;A\x07$ \x1b]133;B\x07make %s\r\n\x1b]133;C\x07"
	child("slow").Print(fmt.Sprintf(command, "all"))
	began := time.Now()
	attached, err := d.client.Attach(t.Context(), ids["watched"], localclient.AttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer attached.Close()
	testkit.Eventually(t, patience, "the person is attached", func() bool {
		tm, err := d.client.Find(t.Context(), ids["watched"])
		return err == nil && tm.Attached == 1
	})
	child("watched").Print("MATCH while somebody looks\r\n")
	child("exits").Print("the key AKIAIOSFODNN7EXAMPLE is wrong\r\n")
	child("exits").End(3)
	child("shell").Print(fmt.Sprintf(command, "<test>") + "failed\r\n\x1b]133;D;2\x07")
	child("tsc").Print("src/cart.ts(17,9): error TS2322: no.\r\n")
	child("service").Print("listens\r\n")
	child("matches").Print("a MATCH\r\n")
	testkit.Eventually(t, patience, "the slow command has taken a second", func() bool { return time.Since(began) > 1100*time.Millisecond })
	child("slow").Print("done\r\n\x1b]133;D;0\x07")

	for path, want := range map[string]string{
		"/json":       `exits: exited with code 3; last line: the key AKIA**************** is wrong"`,
		"/ntfy":       `shell: command finished with exit code 2 after`,
		"/slack":      `slow: command finished with exit code 0 after `,
		"/discord":    `tsc: 1 new problems, 0 cleared, 1 open; first:`,
		"/mattermost": `service: ready`,
		"/pattern":    `matches: a MATCH`,
	} {
		receiver.await(t, path+"/canary-path", want)
	}
	s := d.status("the receiver that refuses", func(s localapi.Status) bool { return has(s, "notify gone", "status 404") })
	receiver.mu.Lock()
	if all := fmt.Sprint(receiver.all); strings.Contains(all, "AKIAIOSF") || strings.Contains(all, "somebody looks") {
		t.Errorf("they are told %s", all)
	}
	receiver.mu.Unlock()

	n, err := d.client.Notifications(t.Context(), true)
	if err != nil || len(n.Receivers) != len(receivers) || len(n.Rules) != len(settings.Notify) || slices.ContainsFunc(n.Receivers, func(r localapi.NotifyReceiver) bool { return r.Problem != "" }) {
		t.Errorf("the list is %+v, %v", n, err)
	}
	if err := d.client.TestReceiver(t.Context(), "json"); err != nil {
		t.Error(err)
	}
	receiver.await(t, "/json/canary-path", "tether notify test json")
	refused := d.client.TestReceiver(t.Context(), "gone")
	if refused == nil || !strings.Contains(refused.Error(), "status 404") {
		t.Errorf("a test of what refuses gives %v", refused)
	}
	agentsTryNotifications(t, d)
	seen, _ := json.Marshal([]any{s, n, fmt.Sprint(refused)})
	for _, file := range []string{agent.LogPath(dir), agent.AuditPath(dir)} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, data...)
	}
	if strings.Contains(string(seen), "canary") {
		t.Error("a URL is shown somewhere")
	}
	if err := d.client.RemoveReceiver(t.Context(), "json"); err != nil {
		t.Error(err)
	}
	d.status("the removed URL", func(s localapi.Status) bool { return has(s, "notify json", "which has no URL") })
	d.end()
	leftMessages(t, dir)
}

// has reports whether status has a fault.
func has(s localapi.Status, cause, text string) bool {
	return slices.ContainsFunc(s.Degraded, func(d localapi.Degraded) bool { return d.Cause == cause && strings.Contains(d.Text, text) })
}

// leftMessages wants the message that was refused to be kept for the next daemon.
func leftMessages(t *testing.T, dir dirs.Dirs) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir.State, "notify.json"))
	if err != nil || !strings.Contains(string(data), `"gone": [`) || strings.Contains(string(data), "canary") {
		t.Errorf("kept for the next daemon: %s, %v", data, err)
	}
}

// agentsTryNotifications tries each of the person's operations as an agent.
func agentsTryNotifications(t *testing.T, d *daemon) {
	t.Helper()
	bob := d.client.As("bob")
	_, list := bob.Notifications(t.Context(), false)
	_, add := bob.AddReceiver(t.Context(), "json", localapi.ReceiverRequest{URL: "https://example.com/"})
	for what, err := range map[string]error{"list": list, "add": add, "remove": bob.RemoveReceiver(t.Context(), "json"), "test": bob.TestReceiver(t.Context(), "json")} {
		if e := new(localapi.Error); !errors.As(err, &e) || e.Code != localapi.CodeDenied {
			t.Errorf("%s by an agent: %v", what, err)
		}
	}
	s, err := bob.Status(t.Context())
	if text, _ := json.Marshal(s); err != nil || strings.Contains(string(text), "notify") {
		t.Errorf("an agent's status is %s, %v", text, err)
	}
}

// A program that waits for an answer is told. That the daemon ends it is no news.
func TestThePersonIsToldOfAQuestion(t *testing.T) {
	testkit.Unix(t, "it needs a terminal whose program can be seen to wait")
	settings := config.Default()
	settings.Notify = []config.Notify{{Name: "waits", On: []string{config.NotifyAwaitingInput}, To: "desktop"}, {Name: "asks", On: []string{config.NotifyAwaitingInput}, To: "phone"}, {Name: "fails", On: []string{config.NotifyFailedExit}, To: "desktop"}}
	texts := make(chan string, 16)
	c := agent.Config{Dirs: home(t), Settings: &settings, Notify: func(_ context.Context, title, body string) error { texts <- title + "\n" + body; return nil }}
	receiver := newTold(t)
	c.NotifyTLS = receiver.tls
	d := start(t, c)
	if _, err := d.client.AddReceiver(t.Context(), "phone", localapi.ReceiverRequest{URL: receiver.url + "/phone"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "printf 'Continue? '; read x"}, Name: "asks", Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	if got := <-texts; !strings.HasPrefix(got, "tether: waits on ") || !strings.HasSuffix(got, "\nasks: waits for input: Continue?") {
		t.Errorf("told %q", got)
	}
	receiver.await(t, "/phone", `"text":"asks: waits for input: Continue?"`)
	d.end() // which ends the terminal: that is no news
	if len(texts) > 0 {
		t.Errorf("told %q", <-texts)
	}
}
