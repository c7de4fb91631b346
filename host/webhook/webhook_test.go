package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/rights"
	"tether/host/webhook"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		a := r.mustSubscribe(nil)
		if !strings.HasPrefix(a.ID, "sub_") || a.Cursor == nil || *a.Cursor != "0" || a.Truncated || a.Status != nil || time.Until(a.RefreshBefore) != webhook.MaxTTL {
			t.Errorf("%+v", a)
		}
		r.journal.add(3)
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3" {
			t.Errorf("taken: %s", got)
		}
		if got := r.audit.String(); got != "webhook ann: terminal.line to agent.example.com: subscribed\n" {
			t.Errorf("audit: %s", got)
		}
	})
}

// An event that is not taken is tried again, and the next one waits. One that never is,
// is given up after some ten minutes.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(tries int, w http.ResponseWriter, r *http.Request)
		want   string
		within time.Duration
		tries  int // of e-1
	}{
		"busy once":     {func(n int, w http.ResponseWriter, _ *http.Request) { status(w, n == 1, 503) }, "e-1 e-2", 3 * time.Second, 2},
		"busy for long": {func(n int, w http.ResponseWriter, _ *http.Request) { status(w, n < 4, 500) }, "e-1 e-2", 3 * time.Minute, 4},
		"never":         {func(_ int, w http.ResponseWriter, _ *http.Request) { status(w, true, 404) }, "e-2", 13 * time.Minute, 5},
		"gone":          {func(_ int, w http.ResponseWriter, _ *http.Request) { status(w, true, 410) }, "e-2", time.Second, 1},
		"too large":     {func(_ int, w http.ResponseWriter, _ *http.Request) { status(w, true, 413) }, "e-2", time.Second, 1},
		"sends elsewhere": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(307)
		}, "e-2", 13 * time.Minute, 5},
		"hangs": {func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "e-2", 14 * time.Minute, 5},
		"an endless answer": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Write(make([]byte, 64<<20))
		}, "e-1 e-2", time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			defer r.stop()
			tries := 0
			r.receiver.answer = func(w http.ResponseWriter, req *http.Request, id string) {
				if id == "e-1" {
					tries++
					c.answer(tries, w, req)
					return
				}
				w.WriteHeader(http.StatusNoContent)
			}
			r.mustSubscribe(nil)
			r.journal.add(2)
			time.Sleep(c.within)
			if got := r.receiver.taken(); got != "verification "+c.want || tries != c.tries {
				t.Errorf("%s: taken %q after %v, %d tries", name, got, c.within, tries)
			}
		})
	}
}

// status writes a status if that is so, and 204 otherwise.
func status(w http.ResponseWriter, so bool, code int) {
	if !so {
		code = http.StatusNoContent
	}
	w.WriteHeader(code)
}

// A receiver's loss is announced, once, if the source has lost the events meanwhile.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		r.mustSubscribe(nil)
		r.receiver.now(func() {
			r.receiver.answer = func(w http.ResponseWriter, _ *http.Request, id string) { status(w, id == "e-1", 404) }
		})
		r.journal.add(5)
		synctest.Wait()
		r.journal.now(func() { r.journal.start = 3 })
		time.Sleep(13 * time.Minute)
		if got := r.receiver.taken(); got != "verification gap 3 e-4 e-5" {
			t.Errorf("taken: %s", got)
		}
	})
}

func TestVerification(t *testing.T) {
	for name, c := range map[string]struct {
		challenge func(string) string
		why       webhook.Failure
	}{
		"another challenge": {func(string) string { return `{"challenge":"x"}` }, webhook.FailureChallenge},
		"nothing":           {func(string) string { return "" }, webhook.FailureChallenge},
		"half a character":  {func(c string) string { return `{"challenge":"` + c + `","more":"\ud83d"}` }, webhook.FailureChallenge},
		"not UTF-8":         {func(c string) string { return `{"challenge":"` + c + `","more":"` + "\xe9" + `"}` }, webhook.FailureChallenge},
		"no object":         {func(c string) string { return `"` + c + `"` }, webhook.FailureChallenge},
		"a long answer":     {func(c string) string { return strings.Repeat(" ", 64<<10) + `{"challenge":"` + c + `"}` }, webhook.FailureChallenge},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			defer r.stop()
			r.receiver.challenge = c.challenge
			_, err := r.subscribe(nil)
			if e, ok := errors.AsType[*webhook.EndpointError](err); !ok || e.Why != c.why || r.hub.Count() != 0 {
				t.Errorf("%s: %v, %d subscriptions", name, err, r.hub.Count())
			}
			r.receiver.challenge = nil
			r.mustSubscribe(nil)
		})
	}
	synctest.Test(t, func(t *testing.T) { // a receiver is believed for a day, by the same principal
		r := newRig(t, "")
		defer r.stop()
		r.mustSubscribe(nil)
		r.mustSubscribe(func(q *webhook.Request) { q.Name = "terminal.exited" })
		time.Sleep(25 * time.Hour)
		r.mustSubscribe(nil)
		if got := r.receiver.taken(); got != "verification verification" {
			t.Errorf("asked: %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // nobody is made to ask receivers without end
		r := newRig(t, "")
		defer r.stop()
		r.receiver.challenge = func(string) string { return "" }
		asked := 0
		for range 100 {
			if _, err := r.subscribe(nil); !errors.Is(err, webhook.ErrTooMany) {
				asked++
			}
		}
		if asked != 10 {
			t.Errorf("asked %d times in a moment", asked)
		}
	})
}

// A second request for the same is a refresh: same id, new lifetime, both secrets sign
// for a while.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		first := r.mustSubscribe(func(q *webhook.Request) { q.TTL = time.Hour })
		r.journal.add(1)
		time.Sleep(50 * time.Minute)
		second := r.mustSubscribe(func(q *webhook.Request) {
			q.TTL, q.Secret, q.Arguments = time.Hour, secretOf("b"), json.RawMessage(` { "pattern" : "x" } `)
			q.URL = strings.Replace(target, "agent.example.com", "AGENT.example.com:443", 1)
		})
		if second.ID != first.ID || time.Until(second.RefreshBefore) != time.Hour || *second.Cursor != "1" || r.hub.Count() != 1 {
			t.Errorf("%+v, then %+v", first, second)
		}
		if s := second.Status; s == nil || !s.Active || s.LastDeliveryAt == nil || s.LastError != "" {
			t.Errorf("status: %+v", s)
		}
		r.receiver.now(func() { r.receiver.secrets = []string{secretOf("a"), secretOf("b")} })
		r.journal.add(1)
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		r.receiver.now(func() { r.receiver.secrets = []string{secretOf("b")} })
		r.journal.add(1)
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3" {
			t.Errorf("taken: %s", got)
		}
		time.Sleep(51 * time.Minute)
		r.journal.add(1)
		if got := r.receiver.taken(); r.hub.Count() != 0 || strings.Contains(got, "e-4") {
			t.Errorf("after its time: %d subscriptions, taken %s", r.hub.Count(), got)
		}
	})
}

// A subscription that is refreshed in time goes on for as long as that.
func TestRefreshedForDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		for range 5 {
			r.mustSubscribe(nil)
			time.Sleep(23 * time.Hour)
		}
		r.journal.add(1)
		if got := r.receiver.taken(); got != "verification e-1" {
			t.Errorf("taken: %s", got)
		}
	})
}

func TestUnsubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		r.mustSubscribe(nil)
		request := webhook.Request{Name: "terminal.line", Arguments: json.RawMessage(`{"pattern":"x"}`), URL: target}
		bob := r.ann
		bob.Name = "bob"
		if err := r.hub.Unsubscribe(bob, request); !errors.Is(err, webhook.ErrNotFound) {
			t.Errorf("somebody else's: %v", err)
		}
		for range 2 { // the second time it was removed lately
			check.OK(t, r.hub.Unsubscribe(r.ann, request))
		}
		r.journal.add(1)
		if got := r.receiver.taken(); got != "verification" {
			t.Errorf("taken: %s", got)
		}
		time.Sleep(11 * time.Minute)
		if err := r.hub.Unsubscribe(r.ann, request); !errors.Is(err, webhook.ErrNotFound) {
			t.Errorf("after eleven minutes: %v", err)
		}
	})
}

// The receiver is told when the right to a subscription is gone, and nothing comes after
// that.
func TestTerminated(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"withdrawn": func(r *rig) { r.journal.now(func() { r.journal.ended = true }) },
		"revoked":   func(r *rig) { r.revoke() },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			defer r.stop()
			r.mustSubscribe(nil)
			r.journal.add(1)
			synctest.Wait()
			end(r)
			synctest.Wait()
			r.journal.add(1)
			if got := r.receiver.taken(); got != "verification e-1 terminated" || r.hub.Count() != 0 {
				t.Errorf("%s: taken %s, %d subscriptions", name, got, r.hub.Count())
			}
		})
	}
}

// A receiver that takes nothing for an hour is left alone until its client comes back.
func TestSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		a := r.mustSubscribe(nil)
		tries := 0
		r.receiver.now(func() {
			r.receiver.answer = func(w http.ResponseWriter, _ *http.Request, _ string) { tries++; w.WriteHeader(410) }
		})
		r.journal.add(500)
		synctest.Wait()
		if tries != 100 {
			t.Errorf("tried %d times", tries)
		}
		r.receiver.now(func() { r.receiver.answer = nil })
		b := r.mustSubscribe(nil)
		if b.ID != a.ID || b.Status == nil || b.Status.FailedSince == nil || b.Status.LastError != string(webhook.Failure4xx) {
			t.Errorf("%+v", b.Status)
		}
		if got := r.receiver.taken(); strings.Count(got, "e-") != 400 {
			t.Errorf("taken %d", strings.Count(got, "e-"))
		}
	})
}

// Subscriptions outlive the host, with the place that they had reached.
func TestSubscriptionsOutliveTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "webhooks.json")
		r := newRig(t, file)
		r.mustSubscribe(nil)
		r.journal.add(2)
		synctest.Wait()
		r.stop()
		r.journal.add(2)
		r.start()
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3 e-4" {
			t.Errorf("taken: %s", got)
		}
		r.stop()
		r.journal.now(func() { r.journal.end, r.journal.start = 9, 7 })
		r.start()
		if got := r.receiver.taken(); !strings.HasSuffix(got, "e-4 gap 7 e-8 e-9") {
			t.Errorf("taken: %s", got)
		}
		r.stop()
		r.revoke()
		r.start()
		if r.hub.Count() != 0 {
			t.Error("a subscription of a principal that has ended is back")
		}
		r.stop()
	})
}

// A subscription lasts as long as its name: a token that was replaced does not end it,
// neither in the host where it was made nor in the next.
func TestSubscriptionsOutliveAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, filepath.Join(t.TempDir(), "webhooks.json"))
		r.stop()
		name, revokeLast := context.WithCancel(t.Context())
		r.opts.Lasting = func(rights.Principal) context.Context { return name }
		r.opts.Find = func(string, rights.Role) (rights.Principal, bool) { return r.ann, name.Err() == nil }
		r.start()
		r.mustSubscribe(nil)
		r.revoke()
		r.journal.add(1)
		synctest.Wait()
		r.stop()
		r.journal.add(1)
		r.start()
		defer func() { r.stop() }()
		if got := r.receiver.taken(); got != "verification e-1 e-2" {
			t.Errorf("taken: %s", got)
		}
		revokeLast()
		if got := r.receiver.taken(); r.hub.Count() != 0 || !strings.HasSuffix(got, "e-2 terminated") {
			t.Errorf("without a valid token: taken %s", got)
		}
	})
}

// A host that is killed while it sends an event does not know whether that was taken, and
// the next one would group its matches anew, under other ids. The receiver is told where
// it was instead. An event that was surely not taken comes again.
func TestHostKilledWhileItDelivers(t *testing.T) {
	for name, c := range map[string]struct {
		first  int           // the answer to the first attempt
		killed time.Duration // after its beginning
		kind   string        // of events' ids afterwards
		want   string
	}{
		"taken, and grouped alike":  {204, 0, "e-", "e-1 e-1 e-2"},
		"taken, and grouped anew":   {204, 0, "f-", "e-1 gap 1 f-2"},
		"taken, and written down":   {204, 1500 * time.Millisecond, "f-", "e-1 f-2"},
		"refused, and written down": {503, 1500 * time.Millisecond, "f-", "f-1 f-2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "webhooks.json")
			r := newRig(t, file)
			r.mustSubscribe(nil)
			time.Sleep(2 * time.Second) // the subscription is written down, so that the next change is at once
			var left []byte
			keep := func() {
				var err error
				if left, err = os.ReadFile(file); err != nil {
					t.Error(err)
				}
			}
			tries := 0
			r.receiver.now(func() {
				r.receiver.answer = func(w http.ResponseWriter, _ *http.Request, _ string) {
					if tries++; tries == 1 {
						keep()
						w.WriteHeader(c.first)
						return
					}
					w.WriteHeader(http.StatusNoContent)
				}
			})
			r.journal.add(1)
			synctest.Wait()
			if c.killed > 0 {
				time.Sleep(c.killed)
				keep()
			}
			r.stop()
			must.Do(t, os.WriteFile(file, left, 0o600))
			r.journal.now(func() { r.journal.kind = c.kind })
			r.start()
			r.journal.add(1)
			if got := r.receiver.taken(); got != "verification "+c.want {
				t.Errorf("%s: %s", name, got)
			}
			r.stop()
			r.start() // the gap is told once
			if got := r.receiver.taken(); got != "verification "+c.want {
				t.Errorf("%s, and started again: %s", name, got)
			}
			r.stop()
		})
	}
}

// What a receiver takes while the host ends is not sent again by the next one; one that
// hangs then is not waited for.
func TestTakenWhileTheHostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, filepath.Join(t.TempDir(), "webhooks.json"))
		r.mustSubscribe(nil)
		var tried []string
		slow := func(d time.Duration) {
			r.receiver.now(func() {
				r.receiver.answer = func(w http.ResponseWriter, req *http.Request, id string) {
					tried = append(tried, id)
					select {
					case <-time.After(d):
					case <-req.Context().Done():
					}
					w.WriteHeader(http.StatusNoContent)
				}
			})
		}
		slow(time.Second)
		r.journal.add(1)
		synctest.Wait()
		r.stop()
		slow(0)
		r.start()
		r.journal.add(1)
		if got := r.receiver.taken(); got != "verification e-1 e-2" || len(tried) != 2 {
			t.Errorf("taken: %s; tried %q", got, tried)
		}
		slow(time.Hour)
		r.journal.add(1)
		synctest.Wait()
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the end took %v", took)
		}
		r.receiver.now(func() { r.receiver.answer = nil })
		r.start()
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3" {
			t.Errorf("taken: %s", got)
		}
		r.stop()
	})
}

// An agent of the same name with another owner is another agent: the former one's
// subscriptions do not get the rights of the new one.
func TestAnotherOwnersSubscriptionsAreNotTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, filepath.Join(t.TempDir(), "webhooks.json"))
		r.ann.Owner = "p-ann"
		before := r.mustSubscribe(nil)
		r.stop()
		r.start()
		if r.hub.Count() != 1 {
			t.Error("a subscription did not outlive the host")
		}
		r.stop()
		r.ann.Owner = "p-bob"
		r.start()
		if r.hub.Count() != 0 {
			t.Error("a subscription of another owner's agent is back")
		}
		if after := r.mustSubscribe(nil); after.ID == before.ID {
			t.Error("both have the same id")
		}
		r.stop()
	})
}

// One receiver that hangs costs its own slots, and delays nobody else.
func TestHangingReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		r.receiver.now(func() {
			r.receiver.answer = func(w http.ResponseWriter, req *http.Request, _ string) {
				if req.URL.Path != "/other" {
					<-req.Context().Done()
				}
			}
		})
		for i := range webhook.MaxOfOne {
			if i%10 == 9 {
				time.Sleep(time.Minute) // the limit of challenges
			}
			r.mustSubscribe(func(q *webhook.Request) { q.Arguments = fmt.Appendf(nil, `{"n":%d}`, i) })
		}
		if _, err := r.subscribe(nil); !errors.Is(err, webhook.ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		bob := r.ann
		bob.Name = "bob"
		must.Get(r.hub.Subscribe(t.Context(), bob, webhook.Request{Name: "terminal.line", URL: "https://b.example.com/other", Secret: secretOf("a")}))(t)
		r.journal.add(1)
		if got := r.receiver.taken(); !strings.HasSuffix(got, " e-1") {
			t.Errorf("taken: %s", got)
		}
	})
}

func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		for field, change := range map[string]func(*webhook.Request){
			"delivery.url":    func(q *webhook.Request) { q.URL = "http://agent.example.com/" },
			"delivery.secret": func(q *webhook.Request) { q.Secret = "whsec_c2hvcnQ=" },
			"arguments":       func(q *webhook.Request) { q.Arguments = json.RawMessage(`[]`) },
			"arguments ":      func(q *webhook.Request) { q.Arguments = json.RawMessage(`{"pattern":"\ud83d"}`) },
			"arguments  ":     func(q *webhook.Request) { q.Arguments = json.RawMessage("{\"pattern\":\"a\xe9\"}") },
		} {
			_, err := r.subscribe(change)
			if e, ok := errors.AsType[*webhook.InvalidError](err); !ok || e.Field != strings.TrimSpace(field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		if _, err := r.subscribe(func(q *webhook.Request) { q.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("x", 20<<10) + `"}`) }); err == nil {
			t.Error("long arguments were taken")
		}
		if _, err := r.subscribe(func(q *webhook.Request) { q.Name = "unknown" }); err == nil || err.Error() != "no such event" {
			t.Errorf("what Open refuses: %v", err)
		}
		if got := r.receiver.taken(); got != "" || r.hub.Count() != 0 {
			t.Errorf("sent: %s", got)
		}
	})
}

// Lifetimes are bounded, and a wish is never refused.
func TestLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		defer r.stop()
		for wish, want := range map[time.Duration]time.Duration{0: webhook.MaxTTL, time.Second: webhook.MinTTL, time.Hour: time.Hour, 1000 * time.Hour: webhook.MaxTTL} {
			if a := r.mustSubscribe(func(q *webhook.Request) { q.TTL = wish }); time.Until(a.RefreshBefore) != want {
				t.Errorf("%v: %v", wish, time.Until(a.RefreshBefore))
			}
		}
	})
}

// The vector of Standard Webhooks.
func TestSignatures(t *testing.T) {
	for _, secret := range []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		got, err := webhook.SignaturesOf(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
			t.Errorf("%s, %v", got, err)
		}
	}
	for _, secret := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa", "whsec_****", "whsec_" + strings.Repeat("AAAA", 22)} {
		if _, err := webhook.SignaturesOf(secret, "", time.Time{}, nil); err == nil {
			t.Errorf("%q was taken", secret)
		}
	}
}
