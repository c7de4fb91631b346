package fetch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"tether/agent/fetch"
	"tether/internal/testkit/must"
)

// to returns a Dial of a server, and its port.
func to(t *testing.T, server *httptest.Server) (fetch.Dial, int) {
	t.Helper()
	addr := server.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) }, must.Get(strconv.Atoi(port))(t)
}

func serve(t *testing.T, h http.HandlerFunc) (fetch.Dial, int) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return to(t, server)
}

// A page comes with its status, also that of an error, and nothing of whoever asks but
// the allowed headers crosses.
func TestGet(t *testing.T) {
	dial, port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != fmt.Sprintf("localhost:%d", r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).Port) || r.Header.Get("Cookie")+r.Header.Get("Authorization") != "" || r.Header.Get("X-Requested-With") != "me" {
			t.Errorf("asked %s with %v", r.Host, r.Header)
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, r.URL.RequestURI())
	})
	p := must.Get(fetch.Get(t.Context(), dial, fetch.Request{Port: port, Path: "/a%20b?c=d", Headers: map[string]string{"x-requested-with": "me"}}))(t)
	if p.Status != 500 || p.Text() != "/a%20b?c=d" || !p.Whole || p.Size != 10 || p.Type != "text/plain" || len(p.Hash) != 64 || p.FirstByte <= 0 || p.Took < p.FirstByte {
		t.Errorf("%+v", p)
	}
	if p := must.Get(fetch.Get(t.Context(), dial, fetch.Request{Port: port, Most: 3, Headers: map[string]string{"X-Requested-With": "me"}, Path: "/long"}))(t); string(p.Body) != "/lo" || p.Size != 5 {
		t.Errorf("%q of %d", p.Body, p.Size)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secure") }))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	dial, port := to(t, server)
	if p := must.Get(fetch.Get(t.Context(), dial, fetch.Request{Port: port}))(t); p.Text() != "secure" || !strings.HasPrefix(p.URL, "https://localhost:") {
		t.Errorf("%s: %s", p.URL, p.Text())
	}
}

// Requests that would act, show other files, or reach another server are refused before a
// connection is made, however they are written.
func TestRefused(t *testing.T) {
	dial := func(context.Context) (net.Conn, error) {
		t.Error("connected")
		return nil, errors.New("refused")
	}
	try := func(r fetch.Request) {
		t.Helper()
		if r.Port == 0 {
			r.Port = 5173
		}
		r.Dirs = []string{"/home/me/app"}
		var refused fetch.Error
		if _, err := fetch.Get(t.Context(), dial, r); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for line := range strings.Lines(string(must.Get(os.ReadFile("refused.txt"))(t))) {
		words := strings.Fields(line)
		switch {
		case len(words) < 3 || words[0] == "#":
		case words[0] == "path":
			p := strings.TrimSuffix(words[1], "*")
			for _, path := range []string{p, strings.ToUpper(p), p + "?file=a", strings.Replace(p, "/", "//", 1)[1:], "/%2" + fmt.Sprintf("f%%%02x", p[1]) + p[2:], "/%25" + fmt.Sprintf("%02x", p[1]) + p[2:]} {
				if strings.HasPrefix(path, "/") {
					try(fetch.Request{Path: path})
				}
			}
		case words[0] == "query":
			for _, query := range []string{words[1] + "=yes", "a;" + words[1], "%zz&" + words[1], strings.Replace(words[1], "_", "%5f", 1)} {
				try(fetch.Request{Path: "/?" + query})
			}
		default:
			t.Errorf("refused.txt: %s", line)
		}
	}
	for _, path := range []string{
		"http://other.example/", "//other.example/", `/\other.example/`, "other", "*", "/a b", "/a\r\nHost: other", "/\x00", "/%zz", "/" + strings.Repeat("a", 5000), "/a/../b", "/a/%2e%2e/b", "/a/%252e%252e/b", "/..",
		"/@fs/etc/passwd", "/@fs//etc/passwd", "/@fs/home/me/app/../other", "/@fs/home/me/app%2f..%2f..%2fother", "/@fs/home/me/apple", "/@FS/etc/passwd", "/base/@fs/etc/passwd", "/a/b/@fs/etc/passwd", "/@fs/home/me/app/@fs/etc/passwd", "/%40fs/etc/passwd", "/@fs/C:/Users/me", "/app/__open-in-editor?file=x", "/__nextjs_original-stack-frames", "/.env.local", "/console/x",
	} {
		try(fetch.Request{Path: path})
	}
	for _, port := range []int{-1, 1, 80, 1023, 65536} {
		try(fetch.Request{Port: port})
	}
	for _, method := range []string{"POST", "get", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:"} {
		try(fetch.Request{Method: method})
	}
	for name, value := range map[string]string{"Cookie": "a", "Authorization": "a", "Host": "a", "Origin": "http://a", "X-Forwarded-For": "a", "Connection": "upgrade", "Upgrade": "websocket", "Accept": "a\r\nCookie: b", "Range": strings.Repeat("a", 2000), "": ""} {
		try(fetch.Request{Headers: map[string]string{name: value}})
	}
	try(fetch.Request{Most: -1})
	try(fetch.Request{Most: fetch.MaxBody + 1})
}

// What belongs to the page is not refused.
func TestAllowed(t *testing.T) {
	dial, port := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	for _, path := range []string{"", "/", "/@vite/client", "/src/main.ts?t=1", "/node_modules/.vite/deps/vue.js?v=1", "/@fs/home/me/app/src/a.ts", "/@fs/home/me/app", "/_nuxt/@fs/home/me/app/src/a.ts", "/consoles", "/console-log.js", "/a..b/c", "/reloading", "/?q=http://other.example/", "/%E2%82%AC", "/users/@me"} {
		if p, err := fetch.Get(t.Context(), dial, fetch.Request{Port: port, Path: path, Dirs: []string{"/home/me/app"}}); err != nil || p.Text() != "ok" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// With Write a request may change something, and show what is refused otherwise. After
// it a redirect is read.
func TestWrite(t *testing.T) {
	dial, port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			http.Redirect(w, r, "/read", http.StatusSeeOther)
		}
		fmt.Fprint(w, r.Method, r.URL)
	})
	for want, r := range map[string]fetch.Request{"GET/read": {Method: "POST", Path: "/form"}, "DELETE/a": {Method: "DELETE", Path: "/a"}, "GET/console": {Path: "/console"}} {
		r.Port, r.Write = port, true
		if p, err := fetch.Get(t.Context(), dial, r); err != nil || p.Text() != want {
			t.Errorf("%+v: %v, %v", r, p, err)
		}
	}
	for _, method := range []string{"CONNECT", "TRACE", "post", "X"} {
		if p, err := fetch.Get(t.Context(), dial, fetch.Request{Port: port, Write: true, Method: method}); err == nil {
			t.Errorf("%s: %+v", method, p)
		}
	}
}

// A redirect is followed within the server, and otherwise told.
func TestRedirects(t *testing.T) {
	dial, port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		if to == "" {
			fmt.Fprint(w, r.URL.Path)
			return
		}
		w.Header().Set("Location", strings.ReplaceAll(to, "PORT", strconv.Itoa(r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).Port)))
		w.WriteHeader(http.StatusFound)
	})
	ask := func(to string) (*fetch.Page, error) {
		return fetch.Get(t.Context(), dial, fetch.Request{Port: port, Path: "/start?to=" + url.QueryEscape(to)})
	}
	for _, to := range []string{"/there", "there", "http://localhost:PORT/there", "http://127.0.0.1:PORT/there", "http://[::1]:PORT/there"} {
		if p, err := ask(to); err != nil || p.Text() != "/there" || p.Elsewhere != "" {
			t.Errorf("%s: %+v %v", to, p, err)
		}
	}
	for _, to := range []string{"http://169.254.169.254/latest/meta-data/", "//other.example/", "http://localhost:1/", "https://localhost:PORT/", "file:///etc/passwd", "http://me@localhost:PORT/", "http://localhost.other.example:PORT/", "javascript:alert(1)", "http://a b/"} {
		if p, err := ask(to); err != nil || p.Elsewhere == "" || p.Status != http.StatusFound || strings.Contains(p.Text(), "there") {
			t.Errorf("%s: %+v %v", to, p, err)
		}
	}
	var refused fetch.Error
	if _, err := ask("/__open-in-editor?file=a"); !errors.As(err, &refused) {
		t.Errorf("a redirect to what is refused: %v", err)
	}
	if _, err := ask("/start?to=" + url.QueryEscape("/start?to=/start")); err != nil {
		t.Errorf("two redirects: %v", err)
	}
	loop, port := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	if _, err := fetch.Get(t.Context(), loop, fetch.Request{Port: port}); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a loop: %v", err)
	}
}

// Servers that answer without end, with garbage, or with bombs cost a bounded amount.
func TestHostileServers(t *testing.T) {
	raw := func(answer func(net.Conn)) fetch.Dial {
		return func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
					return // it tries TLS
				}
				answer(theirs)
			}()
			return ours, nil
		}
	}
	get := func(d fetch.Dial) (*fetch.Page, error) {
		return fetch.Get(t.Context(), d, fetch.Request{Port: 5173})
	}
	for name, answer := range map[string]string{"garbage": "\x00\x01SSH-2.0-nonsense\r\n", "nothing": "", "no end of headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 200), "a header without a colon": "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"} {
		if p, err := get(raw(func(c net.Conn) { io.WriteString(c, answer) })); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	p := must.Get(get(raw(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort") })))(t)
	if p.Text() != "short" || p.Trouble == "" || p.Whole || p.Hash != "" {
		t.Errorf("a body that is cut off: %+v", p)
	}
	p = must.Get(get(raw(func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for piece := bytes.Repeat([]byte("a"), 64<<10); ; {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})))(t)
	if len(p.Body) != fetch.MaxBody || p.Size != 8<<20 || p.Whole || p.Trouble == "" {
		t.Errorf("an endless body: %d of %d, %s", len(p.Body), p.Size, p.Trouble)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 16 {
		z.Write(zeros)
	}
	z.Close()
	p = must.Get(get(raw(func(c net.Conn) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", bomb.Len(), bomb.Bytes())
	})))(t)
	if len(p.Body) != fetch.MaxBody || p.Size != 8<<20 {
		t.Errorf("a bomb: %d of %d", len(p.Body), p.Size)
	}
	refusal := errors.New("another program has the port")
	if _, err := get(func(context.Context) (net.Conn, error) { return nil, refusal }); !errors.Is(err, refusal) {
		t.Errorf("the door's refusal: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hung := raw(func(net.Conn) { cancel(); <-ctx.Done() })
	if _, err := fetch.Get(ctx, hung, fetch.Request{Port: 5173}); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that hangs: %v", err)
	}
}

func TestReadable(t *testing.T) {
	page := fetch.Page{Type: "text/html", Body: []byte(`<!doctype html><html><head><title>The
  shop</title><style>p{}</style><script>alert(1)</script></head><body><h1>Hello <b>you</b></h1><p>One,
two<br>three &amp; <a href="/next?a=1&amp;b=2">the next <i>page</i></a>.</p><ul><li>first<li>second</ul><pre>a
  b</pre><form method=POST action=/login><input name=user value=ann><input type=password name=pw value=secret><input type=checkbox name=stay checked><select name=size><option>S<option>M</select><button>Log in</button></form>
<noscript>needs scripts</noscript><img src=x alt="a cat"><div hidden>unseen</div><table><tr><td>1<td>2</table>`)}
	want := `title: The shop
# Hello you
One, two
three & [the next page](/next?a=1&b=2).
- first
- second
a
  b
[form post /login]
[field user=ann] [field password pw] [field checkbox stay checked] [field select size] S M [button Log in]
needs scripts [image a cat]
| 1 | 2
`
	if got := page.Readable(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	deep := fetch.Page{Type: "text/html", Body: []byte(strings.Repeat("<div>", 100_000) + "end")}
	if got := deep.Readable(); !strings.Contains(got, "end") {
		t.Errorf("deep: %.100q", got)
	}
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"/", "/@fs/etc/passwd", "/%2e%2e/", "//a", "/a?b=c&__debugger__=yes", "/\\a"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		var asked string
		dial := func(context.Context) (net.Conn, error) {
			asked = path
			return nil, errors.New("not needed")
		}
		_, _ = fetch.Get(t.Context(), dial, fetch.Request{Port: 5173, Path: path})
		decoded, err := url.PathUnescape(asked)
		if err == nil && (strings.HasPrefix(strings.ToLower(decoded), "/@fs/") || strings.HasPrefix(decoded, "//") || strings.ContainsAny(asked, "\r\n ")) {
			t.Errorf("%q was asked for", asked)
		}
	})
}
