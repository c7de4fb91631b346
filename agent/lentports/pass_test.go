package lentports_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/devserver"
	"tether/agent/lentports"
	"tether/agent/term"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// A dev server is asked as if its page were opened on its machine, and its answer
// arrives as it is.
func TestPass(t *testing.T) {
	var seen []string
	o := lentports.Options{Fetched: func(host string, _ term.ID, port int, who string) {
		seen = append(seen, fmt.Sprint(who, "@", host, " ", port))
	}}
	run(t, o, vocab.LentPort{}, func(t *testing.T, w *world) {
		var got string
		w.serve = func(conn net.Conn, in *bufio.Reader) {
			got = head(in)
			_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 418 Short and stout\r\nSet-Cookie: a=b\r\nTether-Error: forged\r\nTether-Upgrade: websocket\r\nAlt-Svc: h3=\":1\"\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbomb")
			_, _ = io.Copy(io.Discard, in)
		}
		resp := w.ask("GET", "/a%2fb/%E2%82%AC?c=%zz;d&x[]=1", "Cookie", "own=1", "Origin", "http://localhost:3000", "Range", "bytes=0-3", "Accept-Encoding", "br",
			"X-Forwarded-Host", "evil.example", "X-Forwarded-Port", "1", "Forwarded", "host=evil.example", "X-Original-Url", "/console", "X-Http-Method-Override", "DELETE", "Tether-Other", "1", "Te", "trailers")
		if s := text(resp); s != "418 I'm a teapotbomb" {
			t.Errorf("%q", s)
		}
		delete(resp.Header, "Date")
		if want := "map[Content-Encoding:[gzip] Content-Length:[4] Set-Cookie:[a=b]]"; fmt.Sprint(resp.Header) != want {
			t.Errorf("headers %v, want %s", resp.Header, want)
		}
		want := "GET /a%2fb/%E2%82%AC?c=%zz;d&x[]=1 HTTP/1.1\r\nHost: localhost:3000\r\nUser-Agent: Go-http-client/2.0\r\nAccept-Encoding: br\r\nCookie: own=1\r\nOrigin: http://localhost:3000\r\nRange: bytes=0-3\r\nTe: trailers\r\n\r\n"
		if got != want {
			t.Errorf("the server has got\n%s, want\n%s", got, want)
		}
		if loan, _ := w.h.Loan("lab"); loan.Ports[0].Fetched != 1 || fmt.Sprint(seen) != "[bob@lab 3000]" {
			t.Errorf("counted %+v, %v", loan.Ports, seen)
		}
	})
}

// Redirects to the server itself stay with the name by which the page was opened.
func TestLocation(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
		to := ""
		w.serve = handles(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header()["Location"] = []string{to}
			rw.WriteHeader(302)
		})
		for at, want := range map[string]string{
			"http://localhost:3000/a?b#c": "/a?b#c", "https://127.0.0.1:3000": "/", "http://[::1]:3000/%2fa": "/%2fa", "/b": "/b", "b": "b",
			"http://169.254.169.254/latest": "http://169.254.169.254/latest", "http://localhost:3001/": "http://localhost:3001/", "http://localhost:3000//evil.example": "http://localhost:3000//evil.example",
			"http://me@localhost:3000/": "http://me@localhost:3000/", "//localhost:3000/a": "/a", "ftp://localhost:3000/": "ftp://localhost:3000/",
		} {
			to = at
			resp := w.ask("GET", "/")
			if got := resp.Header.Get("Location"); got != want {
				t.Errorf("%s: %s, want %s", at, got, want)
			}
			resp.Body.Close()
		}
	})
}

// Events and parts of a body arrive when they are sent, a body is read no faster than it
// is taken, and an upload is passed on while it is sent.
func TestStreams(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{Write: true}, func(t *testing.T, w *world) {
		more, begin, sent := make(chan string), make(chan struct{}), 0
		w.serve = handles(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/events":
				rw.(http.Flusher).Flush()
				for event := range more {
					fmt.Fprint(rw, event)
					rw.(http.Flusher).Flush()
				}
			case "/long":
				chunk := make([]byte, 1<<20)
				rw.Header().Set("Content-Length", fmt.Sprint(100<<20))
				rw.(http.Flusher).Flush()
				<-begin
				for range 100 {
					n, _ := rw.Write(chunk)
					sent += n
				}
			case "/echo":
				rw.WriteHeader(200)
				must.Do(t, http.NewResponseController(rw).EnableFullDuplex())
				_, _ = io.Copy(rw, r.Body)
			}
		})
		resp := w.ask("GET", "/events")
		for _, event := range []string{"data: one\n\n", "data: two\n\n"} {
			more <- event
			got := make([]byte, len(event))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
				t.Errorf("%q, %v", got, err)
			}
		}
		close(more)
		text(resp)

		resp = w.ask("GET", "/long")
		// The proxy's first flush must be over: behind a write that stands still, it
		// would wait for a lock, and synctest for it, for ever.
		synctest.Wait()
		close(begin)
		synctest.Wait()
		if sent > 20<<20 {
			t.Errorf("%d bytes have left the server, and nobody reads", sent)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n != 100<<20 || err != nil || resp.ContentLength != n {
			t.Errorf("%d bytes of %d, %v", n, resp.ContentLength, err)
		}

		in, out := io.Pipe()
		go func() {
			fmt.Fprint(out, "hello")
			time.Sleep(time.Second)
			out.Close()
		}()
		resp = must.Get(w.link.RoundTrip(w.request("POST", "/echo", in)))(t)
		got := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "hello" {
			t.Errorf("%q, %v", got, err)
		}
		text(resp)
	})
}

// What a server does wrong ends its own answers.
func TestHostileServers(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	loop := func(first, part string) func(net.Conn, *bufio.Reader) {
		return func(conn net.Conn, in *bufio.Reader) {
			head(in)
			_, err := io.WriteString(conn, first)
			for err == nil {
				_, err = io.WriteString(conn, part)
				time.Sleep(time.Second)
			}
		}
	}
	const no, slow = "502 Bad Gatewaythe server on port 3000 does not answer as HTTP does, or broke off\n", "504 Gateway Timeoutthe server on port 3000 has not answered in time\n"
	for name, c := range map[string]struct {
		serve func(net.Conn, *bufio.Reader)
		want  string
	}{
		"garbage":                   {says("\x00\xffwhat\r\n\r\n"), no},
		"nothing":                   {func(_ net.Conn, in *bufio.Reader) { head(in) }, no},
		"it hangs":                  {says(""), slow},
		"it hangs before it reads":  {func(net.Conn, *bufio.Reader) { time.Sleep(time.Hour) }, "reset"},
		"half a line":               {says("HTTP/1.1 20"), slow},
		"long headers":              {says("HTTP/1.1 200 OK\r\nA: " + long + "\r\n\r\n"), no},
		"headers without end":       {loop("HTTP/1.1 200 OK\r\n", "A: b\r\n"), slow},
		"answers before the answer": {loop("", "HTTP/1.1 103 Early\r\nA: b\r\n\r\n"), slow},
		"status 0":                  {says("HTTP/1.1 000 no\r\n\r\n"), no},
		"status 101 to nobody":      {says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"), no},
		"two lengths":               {says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), no},
		"a length below 0":          {says("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab"), no},
		"less than announced": {func(conn net.Conn, in *bufio.Reader) {
			head(in)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
		}, "ab reset"},
		"more than announced":   {says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n"), "ab"},
		"length and chunks":     {says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "abc"},
		"chunks that are none":  {says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n"), "ab reset"},
		"a body that stops":     {says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), "ab reset"},
		"a header in two lines": {says("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nab"), "ab"},
		"a name that is none":   {says("HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 2\r\n\r\nab"), "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
				w.serve = c.serve
				resp, err := w.link.RoundTrip(w.request("GET", "/", nil))
				got := "reset"
				if err == nil {
					if got = text(resp); (c.want == no || c.want == slow) != (resp.Header.Get("Tether-Error") != "") {
						t.Errorf("headers %v", resp.Header)
					}
				}
				if got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				synctest.Wait()
				time.Sleep(5 * time.Second) // connections that are kept are closed
				w.serve = says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if got := text(w.ask("GET", "/")); got != "ok" {
					t.Errorf("the next request gets %q", got)
				}
			})
		})
	}
}

// A server that cannot be reached is told from one that answers wrongly, and a port that
// another program has is closed.
func TestServersThatAreNotThere(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
		w.dialErr = errRefused
		if got := text(w.ask("GET", "/")); !strings.HasPrefix(got, "502 ") {
			t.Errorf("refused: %q", got)
		}
		w.dialErr = &devserver.Error{Kind: devserver.None}
		if got := text(w.ask("GET", "/")); !strings.HasPrefix(got, "404 ") {
			t.Errorf("nothing listens: %q", got)
		}
		w.dialErr = &devserver.Error{Kind: devserver.Foreign}
		if got := text(w.ask("GET", "/")); !strings.HasPrefix(got, "403 ") {
			t.Errorf("another program: %q", got)
		}
		dials := w.dials.Load()
		if got := text(w.ask("GET", "/")); !strings.Contains(got, "a program that is not the terminal's listens there now") || w.dials.Load() != dials {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// Nothing passes for ever: no answer, upload or connection that stands still.
func TestIdle(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{Write: true}, func(t *testing.T, w *world) {
		w.serve = handles(func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(200)
			rw.(http.Flusher).Flush()
			for i := range 3 {
				time.Sleep(time.Duration(i*4) * time.Minute)
				fmt.Fprint(rw, i)
				rw.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		began := time.Now()
		synctest.Wait()
		if got := text(w.ask("GET", "/")); got != "012 reset" || time.Since(began) != 22*time.Minute {
			t.Errorf("%q after %v", got, time.Since(began))
		}
	})
}
