package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// freePort is one that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// identityProvider starts the example server of github.com/zitadel/oidc, which knows one
// person, and returns its issuer.
func identityProvider(t *testing.T, redirect string) string {
	t.Helper()
	path := must.Get(filepath.Abs("../../bin/tools/oidc-provider"))(t)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no identity provider; make test installs one")
	}
	port := freePort(t)
	c := exec.Command(path)
	c.Env = append(os.Environ(), "PORT="+port, "REDIRECT_URI="+redirect)
	must.Do(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	issuer := "http://localhost:" + port + "/"
	testkit.Eventually(t, patience, "the identity provider answers", func() bool {
		answer, err := http.Get(issuer + ".well-known/openid-configuration")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return issuer
}

// person is a person with a browser.
type person struct {
	t      *testing.T
	client *http.Client
	origin string // of the host
}

func newPerson(t *testing.T, origin string) *person {
	jar := must.Get(cookiejar.New(nil))(t)
	return &person{t, &http.Client{Jar: jar}, origin}
}

// visit follows a link, with redirects, and returns where that led and the page.
func (p *person) visit(link string) (at *url.URL, status int, page string) {
	p.t.Helper()
	return p.read(p.client.Get(link))
}

func (p *person) read(r *http.Response, err error) (*url.URL, int, string) {
	p.t.Helper()
	must.Do(p.t, err)
	defer r.Body.Close()
	page := must.Get(io.ReadAll(r.Body))(p.t)
	return r.Request.URL, r.StatusCode, string(page)
}

// logIn goes to a page of the host that leads to the provider, logs in there, and returns
// the host's page.
func (p *person) logIn(link, password string) (int, string) {
	p.t.Helper()
	at, _, page := p.visit(link)
	id := at.Query().Get("authRequestID")
	if id == "" {
		p.t.Fatalf("%s led to %s:\n%s", link, at, page)
	}
	_, status, page := p.read(p.client.PostForm(at.Scheme+"://"+at.Host+"/login/username", url.Values{"id": {id}, "username": {"test-user@localhost"}, "password": {password}}))
	return status, page
}

// A person logs in by a provider that others have made: in a browser, and at the command
// line, with which they pair a machine and watch. Then an administrator ends that.
func TestPeopleLogIn(t *testing.T) {
	s := newStage(t)
	port := freePort(t)
	origin, link := "http://127.0.0.1:"+port, "ws://127.0.0.1:"+port
	issuer := identityProvider(t, origin+"/login/oidc/callback")
	secretFile, tokens := filepath.Join(s.dir, "client.secret"), filepath.Join(s.dir, "state", "tokens.json")
	must.Do(t, os.WriteFile(secretFile, []byte("secret\n"), 0o600))
	start(t, "--listen", "127.0.0.1:"+port, "--tokens", tokens, "--public-url", origin, "--oidc-issuer", issuer, "--oidc-client-id", "web",
		"--oidc-secret-file", secretFile, "--oidc-domain", "zitadel.ch")
	ann := newPerson(t, origin)
	if _, status, page := ann.visit(origin + "/"); status != http.StatusUnauthorized || !strings.Contains(page, `href="/login/oidc"`) {
		t.Fatalf("the login page: %d\n%s", status, page)
	}
	if _, page := ann.logIn(origin+"/login/oidc", "wrong"); strings.Contains(page, "Continue") {
		t.Fatal("a wrong password logs in")
	}
	if status, page := ann.logIn(origin+"/login/oidc", "verysecure"); status != http.StatusOK || !strings.Contains(page, "Continue") {
		t.Fatalf("logged in: %d\n%s", status, page)
	}
	if _, status, _ := ann.visit(origin + "/plain"); status != http.StatusOK {
		t.Errorf("the page after the login: %d", status)
	}

	if _, _, entries := ann.visit(origin + "/people/entries"); !strings.Contains(entries, `"fresh":false,"unproven":false`) || !strings.Contains(entries, "/login/oidc?again") {
		t.Errorf("a login that may have come from one at the provider: %.200s", entries)
	}
	if status, page := ann.logIn(origin+"/login/oidc?again", "verysecure"); status != http.StatusOK || !strings.Contains(page, "Continue") {
		t.Fatalf("logged in again: %d\n%s", status, page)
	}
	if _, _, entries := ann.visit(origin + "/people/entries"); !strings.Contains(entries, `"fresh":true`) {
		t.Errorf("a login that the provider was asked for: %.200s", entries)
	}

	login := s.command("tether", "login", link, "--code")
	out := must.Get(login.StdoutPipe())(t)
	must.Do(t, login.Start())
	lines := bufio.NewScanner(out)
	said := func(prefix string) string {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), prefix) {
			t.Fatalf("tether login says %q, want %s", lines.Text(), prefix)
		}
		return strings.TrimSpace(strings.TrimPrefix(lines.Text(), prefix))
	}
	page, code := said("open"), said("code")
	status, question := ann.logIn(page+"?code="+url.QueryEscape(code), "verysecure")
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(question)
	if status != http.StatusOK || id == nil || !strings.Contains(question, code) || !strings.Contains(question, "test-user@zitadel.ch") {
		t.Fatalf("the question: %d\n%s", status, question)
	}
	r := must.Get(http.NewRequest(http.MethodPost, origin+"/login/oidc/cli/allow", strings.NewReader(url.Values{"id": {id[1]}}.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	if _, status, page := ann.read(ann.client.Do(r)); status != http.StatusOK || !strings.Contains(page, "logged in as") {
		t.Fatalf("allowed: %d\n%s", status, page)
	}
	said("logged in to")
	must.Do(t, login.Wait())

	if out, err := s.command("tether", "pair", link).CombinedOutput(); err != nil || !strings.Contains(string(out), "approved as a machine of test-user") {
		t.Fatalf("pair: %v\n%s", err, out)
	}
	if out := s.do(t, "tether-host", "token", "ls", "--tokens", tokens); !strings.Contains(out, "test-user") {
		t.Errorf("the machine has another owner:\n%s", out)
	}
	s.do(t, "tether", "run", "--detach", "--name", "clock", "--", "sleep", "1000")
	testkit.Eventually(t, patience, "the person sees their terminal", func() bool {
		out, err := s.command("tether", "watch", link, "--list").CombinedOutput()
		return err == nil && strings.Contains(string(out), "clock")
	})

	s.do(t, "tether-host", "people", "rm", "test-user", "--tokens", tokens)
	testkit.Eventually(t, patience, "the person is out", func() bool {
		_, status, _ := ann.visit(origin + "/plain")
		return status == http.StatusUnauthorized
	})
	if status, page := ann.logIn(origin+"/login/oidc", "verysecure"); status != http.StatusForbidden || !strings.Contains(page, "ended your access") {
		t.Errorf("logging in again: %d\n%s", status, page)
	}
	if out, err := s.command("tether", "watch", link, "--list").CombinedOutput(); err == nil {
		t.Errorf("the command line is still logged in:\n%s", out)
	}
}

// Flags that do not fit together are refused before anything starts.
func TestIdentityProviderFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "private", "secret")
	must.Do(t, secret.Dir(filepath.Dir(file)))
	whole := []string{"--public-url", "https://host.example", "--oidc-issuer", "https://id.example.com", "--oidc-client-id", "x", "--oidc-secret-file", file}
	for want, args := range map[string][]string{
		"need --oidc-issuer":         {"--oidc-domain", "example.com"},
		"needs --oidc-client-id":     whole[:4],
		"needs --public-url":         whole[2:],
		"cannot be combined":         append([]string{"--without-token"}, whole...),
		"is no domain":               append([]string{"--oidc-domain", "a@b"}, whole...),
		"--oidc-group":               append([]string{"--oidc-group", "a b"}, whole...),
		"--oidc-secret-file":         whole,
		"use https (http only on a ": append([]string{"--oidc-issuer", "http://id.example.com"}, append(whole[:2:2], whole[4:]...)...),
	} {
		if want[0] == 'u' {
			must.Do(t, secret.WriteFile(file, []byte("x")))
		} else {
			_ = os.Remove(file)
		}
		status, _, stderr := tool(t, append([]string{"--listen", "127.0.0.1:0", "--tokens", filepath.Join(t.TempDir(), "state", "tokens.json")}, args...)...)
		if status == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %s", args, status, stderr)
		}
	}
}
