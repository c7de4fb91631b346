package oidc_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"tether/host/access"
	"tether/host/oidc"
	"tether/host/rights"
)

func TestLogin(t *testing.T) {
	r := newRig(t, func(o *oidc.Options) { o.Domains, o.Groups = []string{"example.com"}, []string{"ops"} })
	b := r.browser()
	in := b.get(b.begin())
	if in.StatusCode != http.StatusOK || in.Header.Get("Logged-In") != "ann" || len(b.cookies) != 0 {
		t.Fatalf("%s, logged in %q, left cookies %v", in.Status, in.Header.Get("Logged-In"), b.cookies)
	}
	p, ok := r.provider.Authenticate(in.Header.Get("Token"))
	if !ok || p.Name != "ann" || p.Role != rights.RoleObserver || p.Live.Err() != nil {
		t.Errorf("the token is %+v's, %t", p, ok)
	}
	if i := r.people.last(); i.Issuer != issuer || i.Subject != "248289761001" || i.Wanted != "Ann" || strings.Join(i.Groups, " ") != "web ops" {
		t.Errorf("the host was told of %+v", i)
	}
	if _, ok := r.provider.Authenticate("tetherlogin_guessed"); ok {
		t.Error("a guessed token was taken")
	}
}

// Cookies of a login cannot be set from a name below the host's domain, and no script
// reads them.
func TestLoginCookie(t *testing.T) {
	b := newRig(t, nil).browser()
	b.begin()
	c := b.cookies["__Host-tether_login"]
	if c == nil || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookies: %v", b.cookies)
	}
}

// A browser that returns without having been sent to the provider logs nobody in: not
// with another browser's code, nor twice, nor late.
func TestForeignWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		victim, attacker := r.browser(), r.browser()
		code := attacker.begin()
		for name, in := range map[string]*http.Response{
			"without a login of its own": victim.get(code),
			"with a login of its own":    func() *http.Response { victim.begin(); return victim.get(code) }(),
			"without a state":            func() *http.Response { victim.begin(); return victim.get(public + oidc.Path + "/callback?code=x") }(),
			"forged cookie": func() *http.Response {
				b := r.browser()
				b.cookies["x"] = &http.Cookie{Name: "__Host-tether_login", Value: base64.RawURLEncoding.EncodeToString([]byte(`{"s":"x"}`))}
				return b.get(public + oidc.Path + "/callback?code=x&state=x")
			}(),
		} {
			if in.StatusCode != http.StatusForbidden || in.Header.Get("Token") != "" {
				t.Errorf("%s: %s", name, in.Status)
			}
		}
		if in := attacker.get(code); in.Header.Get("Token") == "" {
			t.Errorf("the one who began: %s", in.Status)
		}
		if in := attacker.get(code); in.StatusCode != http.StatusForbidden {
			t.Errorf("a second time: %s", in.Status)
		}
		late := r.browser()
		back := late.begin()
		time.Sleep(11 * time.Minute)
		if in := late.get(back); in.StatusCode != http.StatusForbidden {
			t.Errorf("after eleven minutes: %s", in.Status)
		}
	})
}

// No ID token but one that the provider has just made for this login counts.
func TestForgedTokens(t *testing.T) {
	_, other := keys()
	sign := func(alg string) func(string) string {
		return func(claims string) string {
			enc := base64.RawURLEncoding.EncodeToString
			return enc([]byte(`{"alg":"`+alg+`","kid":"1"}`)) + "." + enc([]byte(claims)) + "." + enc([]byte("x"))
		}
	}
	set := func(claim string, value any) func(map[string]any) {
		return func(token map[string]any) {
			if token[claim] = value; value == nil {
				delete(token, claim)
			}
		}
	}
	for name, c := range map[string]struct {
		forge func(map[string]any)
		sign  func(string) string
	}{
		"algorithm none":         {sign: sign("none")},
		"no signature":           {sign: func(s string) string { return strings.TrimSuffix(sign("none")(s), "eA") }},
		"the secret as the key":  {sign: sign("HS256")},
		"another key":            {sign: func(s string) string { return oidctest.SignIDToken(other, "1", "RS256", s) }},
		"an unknown key":         {sign: func(s string) string { return oidctest.SignIDToken(other, "2", "RS256", s) }},
		"another issuer":         {forge: set("iss", "https://evil.example.com")},
		"issuer with a slash":    {forge: set("iss", issuer+"/")},
		"another audience":       {forge: set("aud", "another")},
		"no audience":            {forge: set("aud", nil)},
		"several audiences":      {forge: set("aud", []string{client, "another"})},
		"another party":          {forge: set("azp", "another")},
		"another login's nonce":  {forge: set("nonce", "another")},
		"no nonce":               {forge: set("nonce", nil)},
		"expired":                {forge: set("exp", time.Now().Add(-time.Minute).Unix())},
		"no expiry":              {forge: set("exp", nil)},
		"not yet":                {forge: set("nbf", time.Now().Add(time.Hour).Unix())},
		"another access token":   {forge: set("at_hash", "MTIzNDU2Nzg5MDEyMzQ1Ng")},
		"nobody":                 {forge: set("sub", "")},
		"a long subject":         {forge: set("sub", strings.Repeat("s", 300))},
		"another than the infos": {forge: func(token map[string]any) { token["sub"] = "another"; delete(token, "groups") }},
		"no JSON":                {sign: func(string) string { key, _ := keys(); return oidctest.SignIDToken(key, "1", "RS256", `[1]`) }},
		"no token":               {sign: func(string) string { return "" }},
		"no form of a token":     {sign: func(string) string { return strings.Repeat("a.", 1<<12) }},
	} {
		r := newRig(t, nil)
		r.fake.forge, r.fake.sign = c.forge, c.sign
		b := r.browser()
		in := b.get(b.begin())
		if in.StatusCode != http.StatusForbidden || in.Header.Get("Token") != "" || r.provider.Count() != 0 || len(r.people.seen) != 0 {
			t.Errorf("%s: %s, told of %v", name, in.Status, r.people.seen)
		}
	}
}

// Only verified addresses of the right domains, and members of the right groups.
func TestAdmission(t *testing.T) {
	domains := func(o *oidc.Options) { o.Domains = []string{"example.com"} }
	groups := func(o *oidc.Options) { o.Groups = []string{"ops"} }
	for name, c := range map[string]struct {
		opts   func(*oidc.Options)
		person map[string]any
		ok     bool
	}{
		"the right domain":       {domains, nil, true},
		"in capitals":            {domains, map[string]any{"email": "ann@EXAMPLE.com"}, true},
		"verified, as a string":  {domains, map[string]any{"email_verified": "true"}, true},
		"not verified":           {domains, map[string]any{"email_verified": false}, false},
		"nothing said of it":     {domains, map[string]any{"email_verified": nil}, false},
		"another domain":         {domains, map[string]any{"email": "ann@example.org"}, false},
		"a domain below":         {domains, map[string]any{"email": "ann@sub.example.com"}, false},
		"two signs":              {domains, map[string]any{"email": "ann@evil.org@example.com"}, false},
		"no address":             {domains, map[string]any{"email": nil}, false},
		"the right group":        {groups, nil, true},
		"one group, not a list":  {groups, map[string]any{"groups": "ops"}, true},
		"another group":          {groups, map[string]any{"groups": []string{"web"}}, false},
		"no groups":              {groups, map[string]any{"groups": nil}, false},
		"groups that are none":   {groups, map[string]any{"groups": 7}, false},
		"groups that look alike": {groups, map[string]any{"groups": []string{"ops/x", " ops", "Ops", "оps"}}, false},
		"anybody":                {nil, map[string]any{"email": nil, "groups": nil}, true},
	} {
		r := newRig(t, c.opts)
		for claim, value := range c.person {
			if r.fake.person[claim] = value; value == nil {
				delete(r.fake.person, claim)
			}
		}
		b := r.browser()
		in := b.get(b.begin())
		if ok := in.Header.Get("Token") != ""; ok != c.ok || ok != (in.StatusCode == http.StatusOK) {
			t.Errorf("%s: %s", name, in.Status)
		}
	}
}

// A provider that is down, slow, or answers without end costs a login, and the next one
// works.
func TestProviderTrouble(t *testing.T) {
	paths := []string{"/.well-known/openid-configuration", "/token", "/keys", "/userinfo"}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"down": func(w http.ResponseWriter, _ *http.Request) { w.(*httptest.ResponseRecorder).Code = 0 },
		"slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"10 MB": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(make([]byte, 10<<20))
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"elsewhere": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(http.StatusFound)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
	} {
		for _, path := range paths {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				delete(r.fake.person, "groups") // so that it is asked for the person
				broken := false
				r.fake.answer = func(w http.ResponseWriter, asked *http.Request) bool {
					if broken && asked.URL.Path == path {
						answer(w, asked)
						return true
					}
					return false
				}
				b := r.browser()
				broken = path == paths[0]
				if first := b.get(public + oidc.Path); broken {
					if first.StatusCode != http.StatusBadGateway {
						t.Errorf("%s at %s: %s", name, path, first.Status)
					}
				} else {
					broken = true
					if in := b.get(r.fake.login(first.Header.Get("Location"))); in.StatusCode < 400 || in.Header.Get("Token") != "" {
						t.Errorf("%s at %s: %s", name, path, in.Status)
					}
				}
				broken = false
				time.Sleep(10 * time.Second)
				b.login()
			})
		}
	}
}

// The provider is asked again within ten minutes, and its answer then counts.
func TestRenewal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rig)
		ends   bool
		within time.Duration
	}{
		"nothing has changed":     {func(*rig) {}, false, 3 * time.Hour},
		"another address":         {func(r *rig) { r.fake.person["email"] = "ann.lee@example.com" }, false, time.Hour},
		"another name":            {func(r *rig) { r.fake.person["preferred_username"] = "eve" }, false, time.Hour},
		"the person has left":     {func(r *rig) { clear(r.fake.refreshes) }, true, 10 * time.Minute},
		"another domain":          {func(r *rig) { r.fake.person["email"] = "ann@example.org" }, true, 10 * time.Minute},
		"not in the group":        {func(r *rig) { r.fake.person["groups"] = []string{"web"} }, true, 10 * time.Minute},
		"somebody else":           {func(r *rig) { r.fake.person["sub"] = "another" }, true, 10 * time.Minute},
		"ended by administrators": {func(r *rig) { r.people.ended["248289761001"] = true }, true, 10 * time.Minute},
		"the provider is down": {func(r *rig) {
			r.fake.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true }
		}, true, 45 * time.Minute},
		"down for a while": {func(r *rig) {
			begun := time.Now()
			r.fake.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				down := time.Since(begun) < 20*time.Minute
				if down {
					w.WriteHeader(503)
				}
				return down
			}
		}, false, 2 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(o *oidc.Options) { o.Domains, o.Groups = []string{"example.com"}, []string{"ops"} })
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go r.provider.Run(ctx)
			token := r.browser().login()
			p, _ := r.provider.Known(token)
			r.people.mu.Lock()
			r.fake.now(func() { c.change(r) })
			r.people.mu.Unlock()
			time.Sleep(c.within)
			synctest.Wait()
			if ended := p.Live.Err() != nil; ended != c.ends {
				t.Errorf("%s: after %v ended is %t: %v", name, c.within, ended, context.Cause(p.Live))
			}
			if _, ok := r.provider.Known(token); ok == c.ends {
				t.Errorf("%s: the token is good: %t", name, ok)
			}
		})
	}
}

// Groups that change are told to the host within ten minutes.
func TestGroupsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go r.provider.Run(ctx)
		r.browser().login()
		r.fake.now(func() { r.fake.person["groups"] = []string{"design", "no group/", "web"} })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := strings.Join(r.people.last().Groups, " "); got != "design web" {
			t.Errorf("groups are %q", got)
		}
	})
}

// Without a refresh token a login lasts ten minutes, in any case twelve hours.
func TestSessionsEnd(t *testing.T) {
	for _, offline := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.fake.offline = offline
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go r.provider.Run(ctx)
			p, _ := r.provider.Known(r.browser().login())
			most := 12 * time.Hour
			if !offline {
				most = 10 * time.Minute
			}
			time.Sleep(most / 2)
			if p.Live.Err() != nil {
				t.Errorf("offline %t: ended before its time", offline)
			}
			time.Sleep(most / 2)
			synctest.Wait()
			if p.Live.Err() == nil || r.provider.Count() != 0 {
				t.Errorf("offline %t: did not end", offline)
			}
		})
	}
}

// An administrator's end takes effect at once, and so does a logout at the provider.
// Others stay.
func TestEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		p, _ := r.provider.Known(r.browser().login())
		r.people.cancel(errors.New("ended"))
		synctest.Wait()
		if p.Live.Err() == nil || r.provider.Count() != 0 {
			t.Error("the session of a person who was ended goes on")
		}

		ann := r.browser().login()
		r.fake.person["sub"] = "bob"
		bob := r.browser().login()
		logout := func(change map[string]any) int {
			r.fake.forge = func(token map[string]any) {
				clear(token)
				for claim, value := range map[string]any{"iss": issuer, "aud": client, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "jti": "1",
					"sub": "248289761001", "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}} {
					token[claim] = value
				}
				for claim, value := range change {
					token[claim] = value
				}
			}
			form := url.Values{"logout_token": {r.fake.idToken("")}}
			req := httptest.NewRequest(http.MethodPost, public+oidc.Path+"/logout", strings.NewReader(form.Encode()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			r.provider.ServeHTTP(w, req)
			synctest.Wait()
			return w.Code
		}
		for name, change := range map[string]map[string]any{
			"another audience": {"aud": "another"}, "another issuer": {"iss": "https://evil.example.com"}, "expired": {"exp": time.Now().Add(-time.Minute).Unix()},
			"an ID token": {"nonce": "x"}, "no event": {"events": map[string]any{}}, "no id": {"jti": ""}, "nobody": {"sub": "", "sid": ""},
		} {
			if status := logout(change); status != http.StatusBadRequest {
				t.Errorf("%s: %d", name, status)
			}
		}
		if _, ok := r.provider.Known(ann); !ok {
			t.Fatal("a logout that was refused has ended a session")
		}
		if status := logout(nil); status != http.StatusOK {
			t.Fatalf("logout: %d", status)
		}
		if _, ok := r.provider.Known(ann); ok {
			t.Error("the session goes on after the logout")
		}
		if _, ok := r.provider.Known(bob); !ok {
			t.Error("somebody else was logged out")
		}
		if status := logout(nil); status != http.StatusBadRequest {
			t.Errorf("the same logout again: %d", status)
		}
	})
}

// Sessions outlive the host. The file holds no token of ours.
func TestSessionsOutliveTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "logins.json")
		r := newRig(t, func(o *oidc.Options) { o.Sessions = access.OwnFile(path) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.provider.Run(ctx); close(done) }()
		token := r.browser().login()
		time.Sleep(time.Hour)
		cancel()
		<-done
		data, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(data), token) {
			t.Fatalf("%v: %s", err, data)
		}
		r.start()
		ctx, cancel = context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go r.provider.Run(ctx)
		p, ok := r.provider.Known(token)
		if !ok || p.Name != "ann" {
			t.Fatalf("after a restart: %v, %t", p, ok)
		}
		r.fake.now(func() { clear(r.fake.refreshes) }) // the person leaves
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if p.Live.Err() == nil {
			t.Error("the session is not renewed after a restart")
		}
		r.start()
		if _, ok := r.provider.Known(token); ok {
			t.Error("a session that has ended is back")
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		first := r.browser().login()
		for range oidc.MaxOfOne {
			time.Sleep(time.Second)
			r.browser().login()
		}
		synctest.Wait()
		if _, ok := r.provider.Known(first); ok || r.provider.Count() != oidc.MaxOfOne {
			t.Errorf("one person has %d sessions, with the first: %t", r.provider.Count(), ok)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	good := newRig(t, nil).opts
	for name, change := range map[string]func(*oidc.Options){
		"http":                func(o *oidc.Options) { o.Issuer = "http://id.example.com" },
		"no issuer":           func(o *oidc.Options) { o.Issuer = "" },
		"issuer with a query": func(o *oidc.Options) { o.Issuer = issuer + "?x" },
		"public http":         func(o *oidc.Options) { o.PublicURL = "http://host.example.com" },
		"no secret":           func(o *oidc.Options) { o.Secret = "" },
		"no people":           func(o *oidc.Options) { o.People = nil },
	} {
		o := good
		change(&o)
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
