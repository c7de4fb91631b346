package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// loginAt logs in at a host with a token, as the form does, and returns the cookie.
func loginAt(t *testing.T, address, token string) string {
	t.Helper()
	return loginWith(t, address, url.Values{"token": {token}})
}

// loginWith is loginAt for a form with a token or with a link's code.
func loginWith(t *testing.T, address string, form url.Values) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/login", strings.NewReader(form.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+address)
	answer := visitPage(t, r)
	if all := answer.Cookies(); answer.StatusCode == http.StatusSeeOther && len(all) == 1 {
		return all[0].Name + "=" + all[0].Value
	}
	t.Fatalf("the login is answered %d", answer.StatusCode)
	return ""
}

// pageWith is the status of the page for a browser with a cookie.
func pageWith(t *testing.T, method, address, path, cookie string) int {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil))(t)
	r.Header.Set("Cookie", cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return visitPage(t, r).StatusCode
}

func visitPage(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true}}
	answer := must.Get(client.Do(r))(t)
	answer.Body.Close()
	return answer
}

// A browser stays logged in when the host is killed and started again, for as long as its
// token is good and it has not logged out.
func TestBrowsersStayLoggedIn(t *testing.T) {
	s := newStage(t)
	state := filepath.Join(s.dir, "state")
	tokens := filepath.Join(state, "tokens.json")
	server, address := s.host(t, "127.0.0.1:0")
	ann := s.do(t, "tether-host", "token", "create", "ann", "--role", "observer", "--tokens", tokens)
	own := must.Get(os.ReadFile(filepath.Join(s.dir, "own.token")))(t)
	stays, leaves := loginAt(t, address, ann), loginAt(t, address, ann)
	owner := loginAt(t, address, strings.TrimSpace(string(own)))
	if status := pageWith(t, http.MethodPost, address, "/logout", leaves); status != http.StatusSeeOther {
		t.Fatalf("logging out: %d", status)
	}
	restart := func() {
		t.Helper()
		_ = server.Process.Kill()
		_ = server.Wait()
		server, address = s.host(t, address)
	}
	expect := func(when string, want map[string]int) {
		t.Helper()
		for cookie, status := range want {
			if got := pageWith(t, http.MethodGet, address, "/plain", cookie); got != status {
				t.Errorf("%s: %d, want %d", when, got, status)
			}
		}
	}
	restart()
	expect("after a restart", map[string]int{stays: http.StatusOK, owner: http.StatusOK, leaves: http.StatusUnauthorized})

	s.do(t, "tether-host", "token", "revoke", "ann", "--tokens", tokens)
	testkit.Eventually(t, patience, "the revoked token's browser is logged out", func() bool {
		return pageWith(t, http.MethodGet, address, "/plain", stays) == http.StatusUnauthorized
	})
	logins := filepath.Join(state, "tokens-logins.json")
	testkit.Eventually(t, patience, "its login is in the file no more", func() bool {
		data, err := os.ReadFile(logins)
		return err == nil && !strings.Contains(string(data), "ann")
	})
	if info, err := os.Stat(logins); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want 0600", info, err)
	}
	expect("after the revocation", map[string]int{owner: http.StatusOK})
	restart()
	expect("after another restart", map[string]int{stays: http.StatusUnauthorized, owner: http.StatusOK})

	if err := os.Remove(filepath.Join(s.dir, "own.token")); err != nil { // the next start makes another
		t.Fatal(err)
	}
	restart()
	expect("with another token of the host's own", map[string]int{owner: http.StatusUnauthorized})
}

// A browser that was logged in by a token which is made for this run is of no use to the
// next one.
func TestLoginsOfARunAreNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "tokens.json")
	r := start(t, "--tokens", file)
	var link string
	testkit.Eventually(t, patience, "the link is shown", func() bool {
		_, rest, _ := strings.Cut(r.stderr.String(), "see them in a browser (once): ")
		line, _, whole := strings.Cut(rest, "\n")
		link = line
		return whole
	})
	u := must.Get(url.Parse(link))(t)
	loginWith(t, u.Host, url.Values{"code": {u.Fragment}})
	if data, err := os.ReadFile(strings.TrimSuffix(file, ".json") + "-logins.json"); err == nil {
		t.Errorf("a login of this run was kept: %s", data)
	}
}
