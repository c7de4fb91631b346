package notify_test

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/notify"
)

// Text of programs is neither markup nor a mention, in any form.
func TestForms(t *testing.T) {
	m := notify.Message{Rule: "r", Title: "tether: r on büro", Text: "web: <!channel> @everyone **x** [a](http://b) & `c`", At: time.Unix(1, 0).UTC(), Count: 2}
	for form, want := range map[notify.Form]string{
		notify.JSON:       `{"rule":"r","title":"tether: r on büro","text":"web: <!channel> @everyone **x** [a](http://b) & ` + "`c`" + `","time":"1970-01-01T00:00:01Z","count":2}`,
		notify.Slack:      `{"text":"tether: r on büro\nweb: &lt;!channel&gt; @everyone **x** [a](http://b) &amp; ` + "`c`" + `"}`,
		notify.Discord:    `{"allowed_mentions":{"parse":[]},"content":"tether: r on büro\nweb: \\<!channel\\> @everyone \\*\\*x\\*\\* \\[a\\](http://b) & \\` + "`c\\\\`" + `","flags":4}`,
		notify.Mattermost: "{\"text\":\"tether: r on büro\\nweb: \\\\<!channel\\\\> @\u200beveryone \\\\*\\\\*x\\\\*\\\\* \\\\[a\\\\](http://b) & \\\\`c\\\\`\"}",
		notify.Ntfy:       m.Text,
	} {
		q, err := notify.Request(t.Context(), m, "https://example.com/hook", form)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(q.Body)
		if got := strings.TrimSpace(string(body)); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", form, err, got, want)
		}
		title, kind := q.Header.Get("Title"), q.Header.Get("Content-Type")
		decoded, err := new(mime.WordDecoder).DecodeHeader(title)
		if form == notify.Ntfy && (err != nil || decoded != m.Title || !strings.HasPrefix(kind, "text/plain")) {
			t.Errorf("ntfy's title is %q, its type %q", title, kind)
		}
		if form != notify.Ntfy && (kind != "application/json" || !json.Valid(body) || title != "") {
			t.Errorf("%s: type %q, title %q", form, kind, title)
		}
	}
}

func TestGuess(t *testing.T) {
	for url, want := range map[string]notify.Form{
		"https://ntfy.sh/topic": notify.Ntfy, "https://ntfy.example.org/topic": notify.Ntfy, "https://hooks.slack.com/services/T/B/x": notify.Slack,
		"https://discord.com/api/webhooks/1/x": notify.Discord, "https://chat.example.org/hooks/x": notify.JSON, "http://127.0.0.1:8080/": notify.JSON,
	} {
		if got := notify.Guess(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// box is a keyring.
type box struct {
	all    map[string]string
	closed error
	file   bool // there is none
}

func (b *box) Seal(name, text string) (bool, error) {
	if b.file || b.closed != nil {
		return false, b.closed
	}
	b.all[name] = text
	return true, nil
}

func (b *box) Unseal(name string) (string, error) { return b.all[name], b.closed }
func (b *box) Forget(name string) error           { delete(b.all, name); return b.closed }

// A URL is kept in the keyring, or in a file of the user's alone; no error tells it.
func TestReceivers(t *testing.T) {
	for _, file := range []bool{true, false} {
		b := &box{all: map[string]string{}, file: file}
		path := filepath.Join(t.TempDir(), "receivers.json")
		open := func() *notify.Receivers {
			s, err := notify.OpenReceivers(path, b)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		if err := s.Put("phone", " https://Example.com/canary-url \n", ""); err != nil {
			t.Fatal(err)
		}
		url, err := open().URL("phone")
		data, _ := os.ReadFile(path)
		if url != "https://example.com/canary-url" || err != nil || strings.Contains(string(data), "canary-url") != file || b.all["notify/phone"] != "" == file {
			t.Errorf("file %t: the URL is %q, %v; the file %s, the keyring %v", file, url, err, data, b.all)
		}
		for _, c := range []struct{ name, url, form string }{
			{"", "https://example.com/canary-url", ""}, {"desktop", "https://example.com/canary-url", ""}, {"a b", "https://example.com/canary-url", ""},
			{"x", "http://example.com/canary-url", ""}, {"x", "https://me:canary-url@example.com/", ""}, {"x", "canary-url", ""}, {"x", "", ""},
			{"x", "https://example.com/canary-url", "xml"}, {"x", "https://exa mple.com/canary-url", ""}, {"x", "https://example.com/" + strings.Repeat("canary-url", 300), ""},
		} {
			if err := s.Put(c.name, c.url, notify.Form(c.form)); err == nil || strings.Contains(err.Error(), "canary-url") {
				t.Errorf("%+v: %v", c, err)
			}
		}
		b.closed = errors.New("locked")
		if err := s.Put("other", "https://example.com/canary-url", ""); err == nil {
			t.Error("kept although the keyring is locked")
		}
		b.closed = nil
		if err := s.Remove("phone"); err != nil || len(b.all) > 0 {
			t.Errorf("remove: %v, the keyring %v", err, b.all)
		}
		if _, err := open().URL("phone"); err == nil {
			t.Error("the next daemon has the URL again")
		}
	}
	path := filepath.Join(t.TempDir(), "receivers.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := notify.OpenReceivers(path, &box{})
	if err == nil || s.Put("phone", "https://example.com/", "") == nil {
		t.Errorf("a damaged file is overwritten; %v", err)
	}
}
