package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// visit is one request and its answer.
type visit struct {
	method, path, host, origin, site, token, cookie, form string

	mode, dest string // Sec-Fetch-Mode and Sec-Fetch-Dest
}

// ask makes a request, without following redirects.
func ask(t *testing.T, url string, v visit) (*http.Response, string) {
	t.Helper()
	if v.method == "" {
		v.method = http.MethodGet
	}
	r := must.Get(http.NewRequestWithContext(t.Context(), v.method, "http"+strings.TrimPrefix(url, "ws")+v.path, strings.NewReader(v.form)))(t)
	for name, value := range map[string]string{"Origin": v.origin, "Sec-Fetch-Site": v.site, "Sec-Fetch-Mode": v.mode, "Sec-Fetch-Dest": v.dest, "Cookie": v.cookie} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if v.host != "" {
		r.Host = v.host
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer := must.Get(client.Do(r))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(io.LimitReader(answer.Body, 1<<20)))(t)
	return answer, string(body)
}

func TestWhoGetsThePage(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "observer-o", "agent-b"), Origins: []string{"host.example"}})
	own := "http" + strings.TrimPrefix(url, "ws")
	for name, c := range map[string]struct {
		v    visit
		want int
	}{
		"nobody":                     {visit{path: "/"}, http.StatusUnauthorized},
		"nobody, the list":           {visit{path: "/events"}, http.StatusUnauthorized},
		"nobody, a terminal":         {visit{path: "/terminals/pty-a.txt"}, http.StatusUnauthorized},
		"nobody, problems":           {visit{path: "/terminals/pty-a/problems"}, http.StatusUnauthorized},
		"an agent, problems":         {visit{path: "/terminals/pty-a/problems", token: "agent-b"}, http.StatusForbidden},
		"a machine, problems":        {visit{path: "/terminals/pty-a/problems", token: "machine-a"}, http.StatusForbidden},
		"another site, problems":     {visit{path: "/terminals/pty-a/problems", site: "cross-site", token: "observer-o"}, http.StatusForbidden},
		"no terminal, problems":      {visit{path: "/terminals/pty-a/problems", token: "observer-o"}, http.StatusNotFound},
		"neither text nor problems":  {visit{path: "/terminals/pty-a.txt/problems", token: "observer-o"}, http.StatusNotFound},
		"nobody, the plain page":     {visit{path: "/plain"}, http.StatusUnauthorized},
		"an observer's token":        {visit{path: "/plain", token: "observer-o"}, http.StatusOK},
		"an agent's token":           {visit{path: "/plain", token: "agent-b"}, http.StatusForbidden},
		"a machine's token":          {visit{path: "/plain", token: "machine-a"}, http.StatusForbidden},
		"a wrong cookie":             {visit{path: "/plain", cookie: "tether_host_80=x"}, http.StatusUnauthorized},
		"a rebound name":             {visit{path: "/plain", host: "evil.example"}, http.StatusForbidden},
		"an allowed name":            {visit{path: "/plain", host: "host.example"}, http.StatusUnauthorized},
		"another site's request":     {visit{path: "/plain", site: "cross-site", token: "observer-o"}, http.StatusForbidden},
		"another site's origin":      {visit{path: "/plain", origin: "http://evil.example", token: "observer-o"}, http.StatusForbidden},
		"files are nobody's secret":  {visit{path: "/assets/app.js"}, http.StatusOK},
		"no such file":               {visit{path: "/assets/../web.go"}, http.StatusNotFound},
		"no way out of the files":    {visit{path: "/assets/%2e%2e/%2e%2e/host.go"}, http.StatusNotFound},
		"no such terminal":           {visit{path: "/terminals/pty-a.txt", token: "observer-o"}, http.StatusNotFound},
		"a post where there is none": {visit{method: http.MethodPost, path: "/plain", token: "observer-o"}, http.StatusMethodNotAllowed},
		"a link without a token":     {visit{method: http.MethodPost, path: "/launch"}, http.StatusUnauthorized},
		"a link for an agent":        {visit{method: http.MethodPost, path: "/launch", token: "agent-b"}, http.StatusForbidden},
		"a link's page":              {visit{path: "/launch"}, http.StatusOK},
		"a forged link":              {pressing(url, "/launch#AAAA"), http.StatusForbidden},
		"a login from elsewhere":     {visit{method: http.MethodPost, path: "/login", form: "token=observer-o", origin: "http://evil.example"}, http.StatusForbidden},
		"a login from nowhere":       {visit{method: http.MethodPost, path: "/login", form: "token=observer-o"}, http.StatusForbidden},
		"a login":                    {visit{method: http.MethodPost, path: "/login", form: "token=observer-o", origin: own}, http.StatusSeeOther},
		"a login of an agent":        {visit{method: http.MethodPost, path: "/login", form: "token=agent-b", origin: own}, http.StatusForbidden},
		"a huge login":               {visit{method: http.MethodPost, path: "/login", form: "token=" + strings.Repeat("x", 1<<16), origin: own}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := ask(t, url, c.v)
			if r.StatusCode != c.want {
				t.Errorf("status %d, want %d: %.200s", r.StatusCode, c.want, body)
			}
			policy := r.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "default-src 'none'") || r.Header.Get("X-Content-Type-Options") != "nosniff" ||
				r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("headers %v", r.Header)
			}
			if strings.Contains(body, "<script>") || strings.Contains(body, "onclick=") {
				t.Error("there is script in the page itself")
			}
		})
	}
}

// A host that was built without Node shows its plain page to a browser that follows a
// link, and one with all scripts the page.
func TestPageWithoutNode(t *testing.T) {
	h, url := serve(t, host.Options{Token: secret})
	v := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	v.create(uri)
	v.output(uri, "ready\r\n", -1)
	v.ping()
	cookie := launchedAs(t, h, url, rights.Principal{Name: "ann", Role: rights.RoleObserver})
	h.BuiltWith(false)
	r, body := ask(t, url, visit{path: "/", cookie: cookie})
	_, rest, listed := strings.Cut(body, `href="/terminals/`)
	if r.StatusCode != http.StatusOK || !listed || !strings.Contains(body, "<h2>laptop</h2>") || !strings.Contains(body, ">build</a>") || !strings.Contains(body, "running") || strings.Contains(body, "<script") {
		t.Fatalf("without Node at build time: %d\n%s", r.StatusCode, body)
	}
	path, _, _ := strings.Cut(rest, `"`)
	if r, text := ask(t, url, visit{path: "/terminals/" + path, cookie: cookie}); r.StatusCode != http.StatusOK || strings.TrimSpace(text) != "ready" {
		t.Errorf("its text: %d %q", r.StatusCode, text)
	}
	h.BuiltWith(true)
	if r, body := ask(t, url, visit{path: "/", cookie: cookie}); r.StatusCode != http.StatusOK || !strings.Contains(body, `src="/assets/app.js"`) {
		t.Errorf("with it: %d\n%s", r.StatusCode, body)
	}
}

// pressing is the request of the button at a link's page.
func pressing(url, link string) visit {
	_, code, _ := strings.Cut(link, "#")
	return visit{method: http.MethodPost, path: "/login", form: "code=" + code, origin: "http" + strings.TrimPrefix(url, "ws")}
}

// launchedAs logs in by a link and returns the cookie.
func launchedAs(t *testing.T, h *host.Host, url string, p rights.Principal) string {
	t.Helper()
	r, _ := ask(t, url, pressing(url, h.Page().Launch(p)))
	all := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || len(all) != 1 || !all[0].HttpOnly || all[0].SameSite != http.SameSiteStrictMode || all[0].Secure != strings.HasPrefix(all[0].Name, "__Host-") {
		t.Fatalf("status %d, cookies %v", r.StatusCode, all)
	}
	return all[0].Name + "=" + all[0].Value
}

// Where browsers come by https, also to a proxy in front, the cookie goes along by https
// alone, whether it was given for a link or a token.
func TestCookiesGoByHTTPSAlone(t *testing.T) {
	for name, c := range map[string]struct {
		o    host.Options
		tls  bool
		want bool
	}{
		"http":                  {host.Options{}, false, false},
		"https":                 {host.Options{}, true, true},
		"a proxy that does TLS": {host.Options{Secure: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Token = secret
			h := testHost(t, c.o)
			s := httptest.NewUnstartedServer(h)
			if c.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			client := s.Client()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			_, code, _ := strings.Cut(h.Page().Launch(rights.Principal{}), "#")
			for by, value := range map[string]string{"code": code, "token": secret} {
				r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/login", strings.NewReader(url.Values{by: {value}}.Encode())))(t)
				r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {s.URL}}
				answer := must.Get(client.Do(r))(t)
				answer.Body.Close()
				all := answer.Cookies()
				if len(all) != 1 || all[0].Secure != c.want || !all[0].HttpOnly || all[0].SameSite != http.SameSiteStrictMode || all[0].Domain != "" {
					t.Errorf("by a %s: status %d, cookies %v", by, answer.StatusCode, all)
				}
			}
		})
	}
}

func TestSessionsOfThePage(t *testing.T) {
	live, end := context.WithCancelCause(context.Background())
	h, url := serve(t, host.Options{Token: secret})
	cookie := launchedAs(t, h, url, rights.Principal{Name: "ann", Role: rights.RoleObserver, Live: live})
	status := func(v visit) int { r, _ := ask(t, url, v); return r.StatusCode }
	if got := status(visit{path: "/plain", cookie: cookie}); got != http.StatusOK {
		t.Errorf("with the cookie: %d", got)
	}
	if got := status(visit{path: "/plain", cookie: cookie, host: "evil.example"}); got != http.StatusForbidden {
		t.Errorf("with the cookie under another name: %d", got)
	}
	// The page's own connection: an observer's, from this origin alone.
	dialAs := func(origin string) error {
		header := http.Header{"Cookie": {cookie}, "Origin": {origin}}
		c, err := wsconn.Dial(t.Context(), url+"/ahp", wsconn.Options{HTTPHeader: header, ReadLimit: 1 << 20})
		if err != nil {
			return err
		}
		v := newViewer(t, c, "page")
		defer v.close()
		v.initialize(viewOptions{})
		return v.call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/a", "page"), nil)
	}
	if err := dialAs("http" + strings.TrimPrefix(url, "ws")); code(err) != int64(ahp.CodePermissionDenied) {
		t.Errorf("lending by the page: %v", err)
	}
	if err := dialAs("http://evil.example"); err == nil || code(err) > 0 {
		t.Errorf("a page of another origin with the cookie: %v", err)
	}
	end(errors.New("revoked"))
	if got := status(visit{path: "/plain", cookie: cookie}); got != http.StatusUnauthorized {
		t.Errorf("after the token was revoked: %d", got)
	}
	cookie = launchedAs(t, h, url, rights.Principal{})
	c := must.Get(wsconn.Dial(t.Context(), url+"/ahp", wsconn.Options{HTTPHeader: http.Header{"Cookie": {cookie}}}))(t)
	page := newViewer(t, c, "another-page")
	t.Cleanup(page.close)
	page.initialize(viewOptions{})
	if got := status(visit{method: http.MethodPost, path: "/logout", cookie: cookie, site: "cross-site"}); got != http.StatusForbidden {
		t.Errorf("logged out by another site: %d", got)
	}
	if got := status(visit{method: http.MethodPost, path: "/logout", cookie: cookie}); got != http.StatusSeeOther {
		t.Errorf("logged out: %d", got)
	}
	if got := status(visit{path: "/plain", cookie: cookie}); got != http.StatusUnauthorized {
		t.Errorf("after logging out: %d", got)
	}
	select {
	case <-page.done:
	case <-time.After(patience):
		t.Error("what was opened before goes on after logging out")
	}
	r, body := ask(t, url, visit{method: http.MethodPost, path: "/launch", token: secret})
	var link struct{ Path string }
	if err := json.Unmarshal([]byte(body), &link); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("a link by token: %d %s", r.StatusCode, body)
	}
	if got := status(pressing(url, link.Path)); got != http.StatusSeeOther {
		t.Errorf("following it: %d", got)
	}
	if got := status(pressing(url, link.Path)); got != http.StatusForbidden {
		t.Errorf("following it again: %d", got)
	}
}

// Previews of chats and scanners of mails open a link before its person does. They get no
// cookie, and the link works on; its code is in no request but that of the button.
func TestALinkThatOthersOpenFirst(t *testing.T) {
	h, url := serve(t, host.Options{Token: secret})
	link := h.Page().Launch(rights.Principal{Name: "ann", Role: rights.RoleObserver})
	_, code, _ := strings.Cut(link, "#")
	if !strings.HasPrefix(link, "/launch#") || len(code) < 26 {
		t.Fatalf("the link is %s", link)
	}
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		for _, path := range []string{"/launch", "/launch?code=" + code, "/login?code=" + code} {
			r, body := ask(t, url, visit{method: method, path: path})
			if len(r.Cookies()) != 0 || strings.Contains(body, code) || path == "/launch" && r.StatusCode != http.StatusOK {
				t.Errorf("%s %s: %d, cookies %v", method, path, r.StatusCode, r.Cookies())
			}
		}
	}
	followed := visit{path: "/launch", site: "cross-site", mode: "navigate", dest: "document"} // from a chat in the browser
	if r, body := ask(t, url, followed); r.StatusCode != http.StatusOK || !strings.Contains(body, `method="post" action="/login"`) || !strings.Contains(body, `name="code"`) {
		t.Errorf("the link's page: %d\n%s", r.StatusCode, body)
	}
	for name, v := range map[string]visit{"another site": {origin: "http://evil.example"}, "nowhere": {}} {
		v.method, v.path, v.form = http.MethodPost, "/login", "code="+code
		if r, _ := ask(t, url, v); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
			t.Errorf("the button pressed by %s: %d", name, r.StatusCode)
		}
	}
	r, _ := ask(t, url, pressing(url, link))
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("the person's button: %d", r.StatusCode)
	}
	again := pressing(url, link)
	again.cookie = r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
	if r, _ := ask(t, url, again); r.StatusCode != http.StatusSeeOther {
		t.Errorf("pressed twice: %d", r.StatusCode)
	}
}

func TestListOfThePage(t *testing.T) {
	_, base := serve(t, host.Options{Token: secret})
	laptop := dial(t, base+"?tkn="+secret, "laptop", viewOptions{resume: true})
	const uri = "ahp-terminal:/a"
	laptop.create(uri)
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(base, "ws")+"/events", nil))(t)
	r.Header.Set("Authorization", "Bearer "+secret)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	type row struct {
		ID, Machine, Name, Title, Cwd, Running, State, Claim string
		ExitCode                                             *int
	}
	var last row
	until := func(what string, ok func(row) bool) {
		t.Helper()
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var got struct{ Rows []row }
			must.Do(t, json.Unmarshal([]byte(data), &got))
			if len(got.Rows) == 1 {
				if last = got.Rows[0]; ok(last) {
					return
				}
			}
		}
		t.Fatalf("%s: the list ends with %+v, %v", what, last, lines.Err())
	}
	until("listed", func(r row) bool {
		return r.State == "running" && r.Machine == "laptop" && r.Name == "build" && r.Claim == "laptop" && r.Cwd == "/src"
	})
	laptop.dispatch(uri, commandExecuted(1))
	until("a command", func(r row) bool { return r.Running == "make" })
	laptop.dispatch(uri, commandFinished(1))
	until("its end", func(r row) bool { return r.Running == "" })
	laptop.dispatch(uri, ahp.TerminalTitleChanged{Title: "vim"})
	until("a title", func(r row) bool { return r.Title == "vim" && r.Name == "build" })
	laptop.close()
	until("a machine that is away", func(r row) bool { return r.State == "away" })
	again := dial(t, base+"?tkn="+secret, "laptop", viewOptions{resume: true})
	again.create(uri)
	until("that is back", func(r row) bool { return r.State == "running" })
	three := int64(3)
	again.dispatch(uri, ahp.TerminalExited{ExitCode: &three})
	until("the exit", func(r row) bool { return r.State == "exited" && r.ExitCode != nil && *r.ExitCode == 3 })
	_, text := ask(t, base, visit{path: "/terminals/" + url.PathEscape(last.ID) + ".txt", token: secret})
	if text != "" {
		t.Errorf("text %q of a terminal that printed nothing", text)
	}
}

// Problems are looked for in what is printed within ten minutes after the page last
// asked, and are known when the output is gone.
func TestPageMatchesForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Token: secret, Scrollback: 16 << 10})
		laptop := connect(t, h, "laptop", viewOptions{})
		laptop.create(uri)
		print := func(text string) { // and so much more that it is gone
			for _, text := range []string{text, strings.Repeat("compiled\r\n", 2<<10)} {
				laptop.output(uri, text, -1)
				laptop.ping()
				synctest.Wait()
			}
		}
		ask := func() string {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(h.TextPath(uri), ".txt")+"/problems", nil)
			r.Header.Set("Authorization", "Bearer "+secret)
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			var a agenttools.ProblemsAnswer
			if err := json.Unmarshal(answer.Body.Bytes(), &a); err != nil {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			var files []string
			for _, p := range a.Problems {
				files = append(files, path.Base(p.File))
			}
			return strings.Join(files, " ")
		}
		if got := ask(); got != "" {
			t.Errorf("before anything is printed: %s", got)
		}
		time.Sleep(10*time.Minute - time.Second)
		print("a.c:1: error: x\r\n")
		if got := ask(); got != "a.c" {
			t.Errorf("nearly ten minutes after the question: %q", got)
		}
		time.Sleep(10*time.Minute + time.Second)
		print("b.c:1: error: x\r\n")
		if got := ask(); got != "a.c" {
			t.Errorf("more than ten minutes after the question: %q", got)
		}
	})
}
