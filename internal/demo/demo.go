// Package demo is the dev server of tether demo: a real HTTP server with an access log.
// It serves one page and reports when the page changes.
package demo

import (
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"tether/internal/retry"
)

// Page is the name of the file that is served.
const Page = "page.html"

// Broken is the path of a page with a bug. The server answers with an error and prints
// where it happened.
const Broken = "/broken"

// look is the time between two checks of the file for changes. Polling works on all
// systems.
const look = 100 * time.Millisecond

// Serve serves the page in dir on a free loopback port until ctx ends. It writes
// "listening on URL" to out first, then a line for each request and each change of the
// page. Several goroutines write to out, each line with one Write.
func Serve(ctx context.Context, dir string, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	page := filepath.Join(dir, Page)
	last, _ := os.ReadFile(page) // before a reader of out knows the server and may change the page
	fmt.Fprintf(out, "\x1b[1mdev server\x1b[0m listening on http://%s\n", l.Addr())
	go watch(ctx, page, last, out)
	server := &http.Server{Handler: logged(out, explained(out, serving(page))), ReadHeaderTimeout: 5 * time.Second}
	err = server.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serving serves the page at every path except /missing and Broken.
func serving(page string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Broken {
			fmt.Fprintf(w, "<p>%d items\n", inCart(nil))
		}
		text, err := os.ReadFile(page)
		if err != nil || r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text) // fails if the client is gone
	})
}

// inCart has the bug of Broken.
func inCart(sizes []int) int { return sizes[0] }

// maxFrames bounds how many lines of a stack are printed: two for each frame.
const maxFrames = 4

// explained returns a handler that calls next, and answers with an error page if it
// panics. Then it writes the error and the stack to out.
func explained(out io.Writer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			_, stack, _ := strings.Cut(string(debug.Stack()), "\npanic(")
			lines := strings.Split(stack, "\n")
			lines = lines[min(2, len(lines)):] // those of panic itself
			fmt.Fprintf(out, "panic: %v\n\ngoroutine 1 [running]:\n%s\n", v, strings.Join(lines[:min(maxFrames, len(lines))], "\n"))
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "<!doctype html><title>500</title><h1>This page is broken</h1><p>%s\n", html.EscapeString(fmt.Sprint(v)))
		}()
		next.ServeHTTP(w, r)
	})
}

// watch writes a line to out each time the contents of the file have changed, until ctx
// ends.
func watch(ctx context.Context, page string, last []byte, out io.Writer) {
	for retry.Wait(ctx, look) {
		if now, err := os.ReadFile(page); err == nil && string(now) != string(last) {
			last = now
			fmt.Fprintf(out, "%s \x1b[36m%s has changed\x1b[0m, %d bytes\n", time.Now().Format(time.TimeOnly), Page, len(now))
		}
	}
}

// logged returns a handler that calls next and writes one line to out for each request.
func logged(out io.Writer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(s, r)
		colour := 32 // green
		if s.status >= http.StatusBadRequest {
			colour = 31
		}
		fmt.Fprintf(out, "%s %s %q \x1b[%dm%d\x1b[0m %v\n", began.Format(time.TimeOnly), r.Method, r.URL.Path, colour, s.status,
			time.Since(began).Round(time.Microsecond))
	})
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}
