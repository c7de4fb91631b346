package oidc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/rs/zerolog"

	"tether/host/oidc"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// logoutToken is a logout token that the provider's key or another one has signed.
func logoutToken(other bool, kid string, change map[string]any) string {
	key, forged := keys()
	if other {
		key = forged
	}
	says := map[string]any{"iss": issuer, "aud": client, "iat": time.Now().Unix(), "exp": time.Now().Add(2 * time.Minute).Unix(), "jti": kid,
		"sub": "248289761001", "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}
	maps.Copy(says, change)
	text, _ := json.Marshal(says) // texts, numbers and maps of them
	return oidctest.SignIDToken(key, kid, "RS256", string(text))
}

// logout sends a logout token and returns the status.
func (r *rig) logout(from, token string) int {
	q := httptest.NewRequest(http.MethodPost, public+oidc.Path+"/logout", strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.RemoteAddr = from + ":1"
	w := httptest.NewRecorder()
	r.provider.ServeHTTP(w, q)
	return w.Code
}

// slowly makes a path of the provider take long, and counts its requests.
func (f *fakeProvider) slowly(path string, takes time.Duration, only func(*http.Request) bool) (requests *int) {
	requests = new(int)
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path || only != nil && !only(r) {
			return false
		}
		*requests++
		f.mu.Unlock() // others are answered meanwhile
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
		}
		f.mu.Lock()
		return false
	}
	return requests
}

// Logout tokens that strangers invent keep nobody from logging in, also while the
// provider's keys take long and change, nor from being logged out. They cost the provider
// one request for its keys in ten seconds.
func TestForgedLogoutsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.browser().login()
		var asked *int
		r.fake.now(func() { asked = r.fake.slowly("/keys", 5*time.Second, nil) })
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var strangers sync.WaitGroup
		statuses := make(chan int, 1<<12)
		for i := range 40 {
			forged := logoutToken(true, fmt.Sprint("unknown-", i), nil)
			strangers.Go(func() {
				for ctx.Err() == nil {
					statuses <- r.logout(fmt.Sprintf("203.0.113.%d", i), forged)
					time.Sleep(time.Second)
				}
			})
		}
		login := func() {
			for range 8 {
				b := r.browser()
				back := b.begin()
				strangers.Go(func() {
					if in := b.get(back); in.StatusCode != http.StatusOK {
						t.Errorf("a login after %v: %s", time.Since(began), in.Status)
					}
				})
			}
		}
		time.Sleep(time.Second)
		login()
		time.Sleep(time.Second)
		// The provider signs by a new key, which it has published just after it was asked
		// for its keys.
		_, newer := keys()
		time.Sleep(5 * time.Second)
		r.fake.now(func() {
			r.fake.PublicKeys = append(r.fake.PublicKeys, oidctest.PublicKey{PublicKey: newer.Public(), KeyID: "2", Algorithm: "RS256"})
			r.fake.sign = func(claims string) string { return oidctest.SignIDToken(newer, "2", "RS256", claims) }
		})
		login()
		time.Sleep(20 * time.Second)
		if got := r.logout("192.0.2.1", logoutToken(false, "1", map[string]any{"sub": "somebody"})); got != http.StatusOK {
			t.Errorf("the provider's logout: %d", got)
		}
		cancel()
		strangers.Wait()
		close(statuses)
		count := map[int]int{}
		for status := range statuses {
			count[status]++
		}
		if count[http.StatusOK] != 0 || count[http.StatusBadRequest] == 0 || count[http.StatusBadRequest]+count[http.StatusServiceUnavailable] < 40 {
			t.Errorf("answers to strangers: %v", count)
		}
		if most := int(time.Since(began)/(10*time.Second)) + 1; *asked == 0 || *asked > most {
			t.Errorf("%d requests for the keys in %v", *asked, time.Since(began))
		}
	})
}

// What a stranger's logout token says is checked before anything is requested for it.
func TestImplausibleLogoutsCostNothing(t *testing.T) {
	r := newRig(t, nil) // the provider was not asked for anything yet
	asked := 0
	r.fake.answer = func(http.ResponseWriter, *http.Request) bool { asked++; return false }
	for name, change := range map[string]map[string]any{
		"another issuer": {"iss": "https://evil.example.com"}, "another audience": {"aud": []string{"another"}}, "no audience": {"aud": 7}, "expired": {"exp": time.Now().Add(-time.Minute).Unix()},
		"no expiry": {"exp": nil}, "a nonce": {"nonce": ""}, "no event": {"events": nil}, "no id": {"jti": ""}, "a long id": {"jti": strings.Repeat("x", 300)}, "nobody": {"sub": ""}, "no text": {"sub": 7},
	} {
		if got := r.logout("192.0.2.1", logoutToken(true, "unknown", change)); got != http.StatusBadRequest || asked != 0 {
			t.Errorf("%s: %d, and %d requests to the provider", name, got, asked)
		}
	}
	if got := r.logout("192.0.2.1", logoutToken(true, "unknown", map[string]any{"aud": []string{"x", client}})); got != http.StatusBadRequest || asked != 2 {
		t.Errorf("one that might be good: %d, and %d requests to the provider, want its configuration and its keys", got, asked)
	}
}

// Codes that strangers invent take some of the slots to a slow provider. Others log in,
// and logins are renewed.
func TestInventedCodesKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go r.provider.Run(ctx)
		p, _ := r.provider.Known(r.browser().login())
		r.fake.now(func() {
			r.fake.slowly("/token", 9*time.Second, func(r *http.Request) bool { return r.PostFormValue("code") == "invented" })
		})
		began, busy := time.Now(), make(chan int, 1<<15)
		var strangers sync.WaitGroup
		for range 40 {
			strangers.Go(func() {
				for time.Since(began) < 40*time.Minute {
					b := r.browser()
					b.from = "203.0.113.7"
					to, err := b.get(public + oidc.Path).Location()
					if err != nil {
						t.Error(err)
						return
					}
					busy <- b.get(public + oidc.Path + "/callback?code=invented&state=" + to.Query().Get("state")).StatusCode
					time.Sleep(10 * time.Second)
				}
			})
		}
		time.Sleep(20 * time.Minute)
		for range 10 {
			r.browser().login()
		}
		strangers.Wait()
		close(busy)
		count := map[int]int{}
		for status := range busy {
			count[status]++
		}
		if count[http.StatusForbidden] == 0 || count[http.StatusServiceUnavailable] == 0 || len(count) != 2 {
			t.Errorf("answers to strangers: %v", count)
		}
		if p.Live.Err() != nil {
			t.Errorf("the login was not renewed: %v", context.Cause(p.Live))
		}
	})
}

// Requests that strangers invent fill neither the log nor the record.
func TestRefusedLoginsFillNoLog(t *testing.T) {
	log := &testkit.Output{}
	logger := zerolog.New(log)
	left, records := 10, 0
	r := newRig(t, func(o *oidc.Options) {
		o.Logger, o.Audit = &logger, func(rights.AuditEvent) { records++ }
		o.Noted = func(*http.Request) bool { left--; return left >= 0 }
	})
	for i := range 50 {
		if in := r.browser().get(public + oidc.Path + "/callback?code=x&state=x"); in.StatusCode != http.StatusForbidden {
			t.Fatal(in.Status)
		}
		if got := r.logout("192.0.2.1", fmt.Sprint("x", i)); got != http.StatusBadRequest {
			t.Fatal(got)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 10 || records != 5 {
		t.Errorf("100 refusals are %d lines in the log and %d in the record", lines, records)
	}
}

// Only a login for which the provider says that the person has just logged in there
// proves that the person is there.
func TestProofOfALogin(t *testing.T) {
	for name, c := range map[string]struct {
		again bool
		ago   any
		want  rights.Proof
	}{
		"asked, just now":            {true, 5 * time.Second, rights.ProofNow},
		"asked, a minute ago":        {true, time.Minute, rights.ProofNow},
		"asked, longer ago":          {true, 61 * time.Second, rights.ProofMissing},
		"asked, nothing said":        {true, nil, rights.ProofMissing},
		"asked, no time":             {true, "yesterday", rights.ProofMissing},
		"asked, an impossible time":  {true, -250 * 365 * 24 * time.Hour, rights.ProofMissing},
		"not asked, just now":        {false, time.Duration(0), rights.ProofNone},
		"not asked, nothing is said": {false, nil, rights.ProofNone},
	} {
		r := newRig(t, nil)
		r.fake.person["auth_time"] = time.Now().Unix() // what it says of the person besides the ID token does not count
		delete(r.fake.person, "email")
		r.fake.forge = func(token map[string]any) {
			switch ago := c.ago.(type) {
			case time.Duration:
				token["auth_time"] = token["iat"].(int64) - int64(ago/time.Second)
			case nil:
				delete(token, "auth_time")
			default:
				token["auth_time"] = ago
			}
		}
		b, path := r.browser(), public+oidc.Path
		if c.again {
			path += "?again"
		}
		to := b.get(path)
		u := must.Get(url.Parse(to.Header.Get("Location")))(t)
		if q := u.Query(); c.again != (q.Get("prompt") == "login") || c.again != (q.Get("max_age") == "0") {
			t.Errorf("%s: the provider is asked %v", name, q)
		}
		in := b.get(r.fake.login(to.Header.Get("Location")))
		if got := rights.Proof(in.Header.Get("Proof")); in.StatusCode != http.StatusOK || got != c.want {
			t.Errorf("%s: %s, proof %q, want %q", name, in.Status, got, c.want)
		}
	}
}
