package oidc_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/oidc"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// post sends a form of one of the provider's pages.
func (b *browser) post(to, origin string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, to, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	w := httptest.NewRecorder()
	b.provider.ServeHTTP(w, r)
	return w
}

// ask is a request of the command line's.
func ask[T any](r *rig, what, token string, body any) (answer T, status int) {
	r.t.Helper()
	text := must.Get(json.Marshal(body))(r.t)
	req := httptest.NewRequest(http.MethodPost, public+pairing.LoginPath+"/"+what, strings.NewReader(string(text)))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	r.provider.ServeHTTP(w, req)
	if w.Code == http.StatusOK {
		must.Do(r.t, json.Unmarshal(w.Body.Bytes(), &answer))
	}
	return answer, w.Code
}

var hidden = regexp.MustCompile(`name="id" value="([^"]+)"`)

// through goes from a link of tether login through the provider to the question, and
// returns the question's page and id.
func (b *browser) through(link string) (page, id string) {
	b.t.Helper()
	to := b.get(link)
	if to.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("the way to the provider: %s", to.Status)
	}
	page = read(b.t, b.get(b.fake.login(to.Header.Get("Location"))))
	if m := hidden.FindStringSubmatch(page); m != nil {
		id = m[1]
	}
	return page, id
}

func read(t *testing.T, r *http.Response) string {
	t.Helper()
	var b strings.Builder
	must.Get(io.Copy(&b, r.Body))(t)
	return b.String()
}

const verifier = "a verifier that never leaves the command line"

// The browser brings a code to the loopback address; only who began the login can make
// anything of it, once.
func TestLoopbackLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		b := r.browser()
		page, id := b.through(public + pairing.LoginPath + "?port=4711&state=mine&challenge=" + pairing.LoginChallenge(verifier))
		if !strings.Contains(page, "ann@example.com") || r.provider.Count() != 0 {
			t.Fatalf("the question:\n%s", page)
		}
		for _, origin := range []string{"", "https://evil.example.com", "null"} {
			if w := b.post(public+pairing.LoginPath+"/allow", origin, url.Values{"id": {id}}); w.Code != http.StatusForbidden {
				t.Errorf("allowed by a page of %q: %d", origin, w.Code)
			}
		}
		w := b.post(public+pairing.LoginPath+"/allow", public, url.Values{"id": {id}})
		m := regexp.MustCompile(`url=http://127\.0\.0\.1:4711/\?code=([A-Z2-7]+)&amp;state=mine"`).FindStringSubmatch(w.Body.String())
		if w.Code != http.StatusOK || m == nil {
			t.Fatalf("%d:\n%s", w.Code, w.Body)
		}
		if w := b.post(public+pairing.LoginPath+"/allow", public, url.Values{"id": {id}}); w.Code != http.StatusForbidden {
			t.Errorf("allowed twice: %d", w.Code)
		}
		if in, status := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{Code: m[1], Verifier: verifier}); status != http.StatusOK || in.Person != "ann" || in.ExpiresMs <= 0 {
			t.Errorf("%d: %+v", status, in)
		} else if p, ok := r.provider.Known(in.Token); !ok || p.Name != "ann" || p.Role != rights.RoleObserver {
			t.Errorf("the token is %+v's", p)
		}
		if _, status := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{Code: m[1], Verifier: verifier}); status != http.StatusForbidden {
			t.Errorf("exchanged twice: %d", status)
		}
	})
}

// A code is good for two minutes, for nobody without the verifier, and a wrong verifier
// uses it up.
func TestLoopbackCodes(t *testing.T) {
	for name, c := range map[string]struct {
		verifier string
		wait     time.Duration
	}{"another verifier": {"another", 0}, "late": {verifier, pairing.LoginCodeOK}} {
		synctest.Test(t, func(t *testing.T) {
			b := newRig(t, nil).browser()
			_, id := b.through(public + pairing.LoginPath + "?port=1&challenge=" + pairing.LoginChallenge(verifier))
			w := b.post(public+pairing.LoginPath+"/allow", public, url.Values{"id": {id}})
			_, code, _ := strings.Cut(w.Body.String(), "?code=")
			code, _, _ = strings.Cut(code, "&")
			time.Sleep(c.wait)
			for _, v := range []string{c.verifier, verifier} {
				if _, status := ask[pairing.LoggedIn](b.rig, "token", "", pairing.LoginClaim{Code: code, Verifier: v}); status != http.StatusForbidden {
					t.Errorf("%s: %d", name, status)
				}
			}
		})
	}
}

// A person types the code that the command line shows, in any browser.
func TestTypedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		begun, status := ask[pairing.LoginBegun](r, "begin", "", pairing.LoginBegin{Challenge: pairing.LoginChallenge(verifier)})
		if status != http.StatusOK || !regexp.MustCompile(`^[A-Z]{4}-[A-Z]{4}$`).MatchString(begun.Code) {
			t.Fatalf("%d: %+v", status, begun)
		}
		b := r.browser()
		if form := read(t, b.get(public+pairing.LoginPath)); !strings.Contains(form, `name="code"`) {
			t.Errorf("the form:\n%s", form)
		}
		if w, _ := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{ID: begun.ID, Verifier: verifier}); w != (pairing.LoggedIn{}) {
			t.Errorf("before anybody has typed it: %+v", w)
		}
		if page, id := b.through(public + pairing.LoginPath + "?code=bcdf-ghjk"); id != "" || !strings.Contains(page, "no command line waits") {
			t.Errorf("another code:\n%s", page)
		}
		page, id := b.through(public + pairing.LoginPath + "?code=" + url.QueryEscape(" "+strings.ToLower(begun.Code)))
		if !strings.Contains(page, begun.Code) || !strings.Contains(page, "192.0.2.1") {
			t.Errorf("the question:\n%s", page)
		}
		if w := b.post(public+pairing.LoginPath+"/allow", public, url.Values{"id": {id}}); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "ann") {
			t.Errorf("%d:\n%s", w.Code, w.Body)
		}
		if _, status := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{ID: begun.ID, Verifier: "another"}); status != http.StatusForbidden {
			t.Errorf("another verifier: %d", status)
		}
		in, status := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{ID: begun.ID, Verifier: verifier})
		if status != http.StatusOK || in.Person != "ann" {
			t.Fatalf("%d: %+v", status, in)
		}
		if _, status := ask[pairing.LoggedIn](r, "token", "", pairing.LoginClaim{ID: begun.ID, Verifier: verifier}); status != http.StatusForbidden {
			t.Errorf("claimed twice: %d", status)
		}
		if page, _ := b.through(public + pairing.LoginPath + "?code=" + begun.Code); !strings.Contains(page, "no command line waits") {
			t.Errorf("the code again:\n%s", page)
		}
		if _, status := ask[struct{}](r, "logout", in.Token, struct{}{}); status != http.StatusOK {
			t.Errorf("logout: %d", status)
		}
		synctest.Wait()
		if _, ok := r.provider.Known(in.Token); ok {
			t.Error("the token is good after the logout")
		}
	})
}

// One place cannot use up the waiting logins; codes are forgotten after ten minutes.
func TestTypedLoginsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		taken := 0
		for range 100 {
			if _, status := ask[pairing.LoginBegun](r, "begin", "", pairing.LoginBegin{Challenge: pairing.LoginChallenge(verifier)}); status == http.StatusOK {
				taken++
			}
		}
		if taken != 8 {
			t.Errorf("%d logins of one place wait", taken)
		}
		time.Sleep(pairing.LoginTime)
		if _, status := ask[pairing.LoginBegun](r, "begin", "", pairing.LoginBegin{Challenge: pairing.LoginChallenge(verifier)}); status != http.StatusOK {
			t.Errorf("after ten minutes: %d", status)
		}
	})
}

// A machine of a person who is logged in is admitted as theirs; requests of other clients
// are not.
func TestApprove(t *testing.T) {
	var asked []string
	r := newRig(t, func(o *oidc.Options) {
		o.Approve = func(p rights.Principal, code, name string) error {
			asked = append(asked, p.Name+" "+code+" "+name)
			if code != "123456" {
				return errors.New("no machine waits with this code")
			}
			return nil
		}
	})
	token := r.browser().login()
	for _, c := range []struct {
		token, code string
		status      int
	}{{token, "123456", 200}, {token, "654321", 403}, {"", "123456", 401}, {"tetherlogin_guessed", "123456", 401}} {
		if _, status := ask[struct{}](r, "approve", c.token, pairing.LoginApprove{Code: c.code, Name: "laptop"}); status != c.status {
			t.Errorf("%+v: %d", c, status)
		}
	}
	if strings.Join(asked, ", ") != "ann 123456 laptop, ann 654321 laptop" {
		t.Errorf("asked: %v", asked)
	}
}

// Bad requests get a clear answer and change nothing.
func TestBadCLIRequests(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		path, kind, origin, body string
		status                   int
	}{
		"from a page":      {"/begin", "application/json", public, `{}`, 400},
		"a form":           {"/begin", "application/x-www-form-urlencoded", "", `{}`, 400},
		"no JSON":          {"/begin", "application/json", "", `{`, 400},
		"half a character": {"/begin", "application/json", "", `{"challenge":"` + pairing.LoginChallenge("") + `","machine":"\ud83d"}`, 400},
		"not UTF-8":        {"/begin", "application/json", "", `{"challenge":"` + pairing.LoginChallenge("") + `","machine":"` + "\xe9" + `"}`, 400},
		"too long":         {"/begin", "application/json", "", `{"challenge":"` + strings.Repeat("x", 1<<20) + `"}`, 400},
		"short challenge":  {"/begin", "application/json", "", `{"challenge":"x"}`, 400},
		"unknown login":    {"/token", "application/json", "", `{"id":"x","verifier":"y"}`, 403},
		"unknown code":     {"/token", "application/json", "", `{"code":"x","verifier":"y"}`, 403},
		"unknown request":  {"/x", "application/json", "", `{}`, 404},
		"no login to end":  {"/logout", "application/json", "", `{}`, 401},
		"no question":      {"/allow", "application/x-www-form-urlencoded", public, `id=x`, 403},
		"many parts below": {"/begin/x", "application/json", "", `{}`, 404},
	} {
		req := httptest.NewRequest(http.MethodPost, public+pairing.LoginPath+c.path, strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.kind)
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		r.provider.ServeHTTP(w, req)
		if w.Code != c.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, query := range []string{"port=x&challenge=" + pairing.LoginChallenge(""), "port=70000&challenge=" + pairing.LoginChallenge(""), "port=1&challenge=x",
		"port=1&challenge=" + pairing.LoginChallenge("") + "&state=" + strings.Repeat("x", 100)} {
		if in := r.browser().get(public + pairing.LoginPath + "?" + query); in.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", query, in.Status)
		}
	}
}
