package lentports_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/lentports"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// What a host asks for beyond the lending reaches no server.
func TestRefusals(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
		must.Do(t, w.h.ChangeAudience("lab", loans.AudienceChange{Deny: []string{"eve"}}))
		refused := func(name string, status int, r *http.Request) {
			t.Helper()
			resp := must.Get(w.link.RoundTrip(r))(t)
			body := text(resp)
			if resp.StatusCode != status || resp.Header.Get(ahp.PortsError) == "" || !strings.HasSuffix(body, resp.Header.Get(ahp.PortsError)+"\n") {
				t.Errorf("%s: %q, %v; want %d", name, body, resp.Header, status)
			}
		}
		for name, c := range map[string]struct {
			status  int
			headers []string
		}{
			"no port":                       {400, []string{ahp.PortsPort, ""}},
			"a port that is none":           {400, []string{ahp.PortsPort, "+3000"}},
			"a port of the system":          {400, []string{ahp.PortsPort, "22"}},
			"port 65536":                    {400, []string{ahp.PortsPort, "65536"}},
			"port 0":                        {400, []string{ahp.PortsPort, "0"}},
			"another port":                  {403, []string{ahp.PortsPort, "3001"}},
			"nobody":                        {403, []string{ahp.PortsReader, ""}},
			"no JSON":                       {400, []string{ahp.PortsReader, "bob"}},
			"a name that is none":           {400, []string{ahp.PortsReader, `{"names":["a b"]}`}},
			"a long reader":                 {400, []string{ahp.PortsReader, `{"names":["bob"],"x":"` + strings.Repeat("x", ahp.MaxPortsReader) + `"}`}},
			"somebody else":                 {403, []string{ahp.PortsReader, `{"names":["ann"]}`}},
			"who is denied":                 {403, []string{ahp.PortsReader, `{"names":["bob","eve"],"owner":true}`}},
			"a guest":                       {403, []string{ahp.PortsReader, `{"names":["bob"],"owner":true,"guest":"abcdefgh"}`}},
			"another tool":                  {400, []string{ahp.PortsCall, "kill_terminal"}},
			"fetch with GET":                {400, []string{ahp.PortsCall, "fetch"}},
			"another protocol":              {400, []string{ahp.PortsUpgrade, "h2c"}},
			"another origin":                {403, []string{"Origin", "http://evil.example"}},
			"no origin":                     {403, []string{"Origin", "null"}},
			"another port's page":           {403, []string{"Origin", "http://localhost:3001"}},
			"the origin with TLS":           {403, []string{"Origin", "https://localhost:3000"}},
			"a WebSocket of another origin": {403, []string{"Origin", "http://evil.example", ahp.PortsUpgrade, "websocket"}},
		} {
			refused(name, c.status, w.request("GET", "/", nil, c.headers...))
		}
		twice := w.request("GET", "/", nil)
		twice.Header.Add(ahp.PortsPort, "3001")
		refused("two ports", 400, twice)
		twice = w.request("GET", "/", nil, "Origin", "http://localhost:3000")
		twice.Header.Add("Origin", "http://evil.example")
		refused("two origins", 403, twice)
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "PROPFIND"} {
			refused(method, 403, w.request(method, "/", nil))
		}
		refused("POST for a WebSocket", 400, w.request("POST", "/", nil, ahp.PortsUpgrade, "websocket"))
		for _, path := range []string{"/__open-in-editor?file=a", "/@fs/etc/passwd", "/a/%2e%2e/b", "/?__debugger__=yes", "//evil.example/", "/" + strings.Repeat("a", 17<<10)} {
			refused(path, 403, w.request("GET", path, nil))
		}
		must.Do(t, w.h.DropPorts("lab", 3000))
		refused("after unlend", 403, w.request("GET", "/", nil))
		must.Do(t, w.h.Unlend("lab"))
		refused("a terminal that is not lent", 404, w.request("GET", "/", nil))
		if n := w.dials.Load(); n != 0 {
			t.Errorf("%d connections", n)
		}
	})
}

// A guest asks the port that the link is for, while the link is.
func TestGuests(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
		share := func(id string, port int, within time.Duration) {
			must.Do(t, w.h.LendTo("lab", loans.Change{Share: &loans.Share{ID: id, Port: port, Until: time.Now().Add(within)}}))
		}
		share("forporta", 3000, time.Hour)
		share("forterma", 0, time.Hour)
		share("forother", 3001, time.Hour)
		w.serve = handles(func(rw http.ResponseWriter, r *http.Request) {
			fmt.Fprint(rw, "page")
			if r.URL.Path == "/long" {
				rw.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		})
		ask := func(id, path string) *http.Response {
			return w.ask("GET", path, ahp.PortsReader, `{"guest":"`+id+`"}`)
		}
		for id, want := range map[string]string{"forporta": "page", "forterma": "403 ", "forother": "403 ", "unknowna": "403 "} {
			if got := text(ask(id, "/")); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %s", id, got, want)
			}
		}
		must.Do(t, w.h.LendTo("lab", loans.Change{Ports: []vocab.LentPort{{Port: 3000, Guests: true}}}))
		if got := text(w.ask("GET", "/")); !strings.HasPrefix(got, "403 ") {
			t.Errorf("the audience, of a port for guests alone: %q", got)
		}
		long := ask("forporta", "/long")
		synctest.Wait()
		time.Sleep(time.Hour + time.Minute)
		if got := text(long); got != "page reset" {
			t.Errorf("the link's time is over: %q", got)
		}
		if got := text(ask("forporta", "/")); !strings.HasPrefix(got, "403 ") {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// With --write other methods and paths cross, with their bodies, but for those that are
// no server's.
func TestWrite(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{Write: true}, func(t *testing.T, w *world) {
		w.serve = handles(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(rw, r.Method, " ", r.URL, " ", string(body), " ", r.ContentLength)
		})
		for _, body := range []io.Reader{strings.NewReader("a=b"), io.MultiReader(strings.NewReader("a=b"))} {
			got := text(must.Get(w.link.RoundTrip(w.request("POST", "/console", body)))(t))
			if want := fmt.Sprint("POST /console a=b ", map[bool]int{true: 3, false: -1}[strings.HasSuffix(got, "3")]); got != want {
				t.Errorf("%q", got)
			}
		}
		for _, method := range []string{"TRACE", "CONNECT"} {
			r := w.request(method, "/", nil)
			if resp, err := w.link.RoundTrip(r); err == nil && resp.StatusCode != 403 && resp.StatusCode != 400 {
				t.Errorf("%s: %s", method, resp.Status)
			}
		}
	})
}

// A hostile host's request is one request to the server, whatever it contains.
func TestOneRequestArrives(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{Write: true}, func(t *testing.T, w *world) {
		got := make(chan string, 1)
		w.serve = func(conn net.Conn, in *bufio.Reader) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			rest, _ := io.ReadAll(in)
			got <- fmt.Sprintf("%s %s %s %q %q", r.Method, r.Host, r.RequestURI, body, rest)
		}
		const second = "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"
		for name, change := range map[string]func(r *http.Request){
			"a length and chunks": func(r *http.Request) {
				r.Header["Content-Length"], r.Header["Transfer-Encoding"], r.TransferEncoding = []string{"4"}, []string{"chunked"}, []string{"chunked"}
			},
			"a wrong length": func(r *http.Request) { r.Header["Content-Length"] = []string{"0"} },
			"another host":   func(r *http.Request) { r.Host = "evil.example"; r.Header["Host"] = []string{"evil.example"} },
			"headers of the hop": func(r *http.Request) {
				r.Header["Connection"] = []string{"Host, upgrade"}
				r.Header["Upgrade"] = []string{"h2c"}
			},
			"a path with a line":   func(r *http.Request) { r.RequestURI = "/ HTTP/1.1\r\nX: y\r\n\r\n" + second },
			"an absolute path":     func(r *http.Request) { r.RequestURI = "http://evil.example/a" },
			"a header with a line": func(r *http.Request) { r.Header["X"] = []string{"a\r\n\r\n" + second} },
			"a name with a line":   func(r *http.Request) { r.Header["X: y\r\n"] = []string{"a"} },
			"a method with a line": func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" },
			"a trailer":            func(r *http.Request) { r.Trailer = http.Header{"Content-Length": {"9"}} },
		} {
			for len(got) > 0 {
				<-got
			}
			r := w.request("POST", "/a", nil)
			r.Body, r.ContentLength, r.RequestURI = io.NopCloser(strings.NewReader(second)), int64(len(second)), "/a"
			change(r)
			rec := httptest.NewRecorder()
			w.handler(rec, r)
			synctest.Wait()
			arrived := ""
			for len(got) > 0 {
				if one := <-got; !strings.HasPrefix(one, "HEAD ") { // asks in what the server speaks
					arrived += one
				}
			}
			want := fmt.Sprintf("POST localhost:3000 /a %q \"\"", second)
			if arrived != want && !(arrived == "" && rec.Code >= 400) || arrived == "" && strings.Contains("a wrong length another host headers of the hop", name) {
				t.Errorf("%s: %d, the server has got %q", name, rec.Code, arrived)
			}
		}
	})
}

// Whatever ends the lending ends an answer in its middle, and the connection to the
// server, also of a reader who takes nothing.
func TestTheEndOfTheLending(t *testing.T) {
	for name, end := range map[string]func(w *world) error{
		"the port":     func(w *world) error { return w.h.DropPorts("lab", 3000) },
		"the terminal": func(w *world) error { return w.h.Unlend("lab") },
		"the reader":   func(w *world) error { return w.h.ChangeAudience("lab", loans.AudienceChange{Drop: []string{"bob"}}) },
		"the program":  func(w *world) error { w.child.End(0); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
				gone, begin := make(chan struct{}, 2), make(chan struct{})
				w.serve = func(conn net.Conn, in *bufio.Reader) {
					if strings.Contains(head(in), "/flood") {
						_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
						<-begin
						for err == nil {
							_, err = conn.Write(make([]byte, 64<<10))
						}
					} else {
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nhello")
						_, _ = in.ReadByte()
					}
					gone <- struct{}{}
				}
				resp, flood := w.ask("GET", "/"), w.ask("GET", "/flood")
				hello := make([]byte, 5)
				must.Get(io.ReadFull(resp.Body, hello))(t)
				synctest.Wait() // see TestStreams
				close(begin)
				synctest.Wait()
				check.OK(t, end(w))
				synctest.Wait() // no time passes
				if len(gone) != 2 {
					t.Errorf("%d of 2 connections to the server are closed", len(gone))
				}
				if n, err := resp.Body.Read(hello); n != 0 || err == nil || err == io.EOF {
					t.Errorf("the answer goes on: %d, %v", n, err)
				}
				if _, err := io.Copy(io.Discard, flood.Body); err == nil {
					t.Error("an answer that nobody read ends as if it were whole")
				}
				resp.Body.Close()
				flood.Body.Close()
			})
		})
	}
}

// fetch_page is carried out for readers of a lent port, with what the host says in range.
func TestFetch(t *testing.T) {
	called, answer := "", ahp.FetchResult{Answer: []byte(`{"status":200}`)}
	var w *world
	o := lentports.Options{Fetch: func(ctx context.Context, host string, id term.ID, port vocab.LentPort, q ahp.FetchParams) ahp.FetchResult {
		called = fmt.Sprint(host, " ", id == w.h.ID(), " ", port.Port, " ", port.Write, " ", string(q.Arguments), " ", q.Shows)
		if strings.Contains(called, "/hang") {
			<-ctx.Done()
		}
		return answer
	}}
	run(t, o, vocab.LentPort{Write: true}, func(t *testing.T, is *world) {
		w = is
		call := func(body string, headers ...string) string {
			t.Helper()
			return text(must.Get(w.link.RoundTrip(w.request("POST", "/", strings.NewReader(body), append(headers, ahp.PortsCall, "fetch")...)))(t))
		}
		if got := call(`{"arguments":{"path":"/"},"shows":9}`); got != `{"answer":{"status":200}}` || called != `lab true 3000 true {"path":"/"} 9` {
			t.Errorf("%q, called with %s", got, called)
		}
		if loan, _ := w.h.Loan("lab"); loan.Ports[0].Fetched != 1 {
			t.Errorf("counted %+v", loan.Ports)
		}
		called = ""
		for name, got := range map[string]string{
			"no JSON":         call("x"),
			"too long":        call(`{"arguments":"` + strings.Repeat("x", 40<<10) + `"}`),
			"shows below 0":   call(`{"arguments":{},"shows":-1}`),
			"somebody else's": call(`{"arguments":{}}`, ahp.PortsReader, `{"names":["ann"]}`),
		} {
			if !strings.HasPrefix(got, "40") || called != "" {
				t.Errorf("%s: %q, called with %s", name, got, called)
			}
		}
		answer.Answer = make([]byte, ahp.MaxFetchAnswer+1)
		if got := call(`{"arguments":{}}`); !strings.HasPrefix(got, "502 ") {
			t.Errorf("an answer that is too long: %.100q", got)
		}
		got := make(chan string)
		go func() { got <- call(`{"arguments":{"path":"/hang"}}`) }()
		synctest.Wait()
		check.OK(t, w.h.DropPorts("lab", 3000))
		if s := <-got; !strings.HasPrefix(s, "403 ") {
			t.Errorf("the lending has ended: %q", s)
		}
	})
}
