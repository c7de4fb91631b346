// Command demo is the dev server of "make run", and the browser that visits it: a real HTTP server with an access log, which needs
// nothing but Go.
//
//	demo serve     # prints "listening on http://127.0.0.1:PORT", then a line per request
//	demo get URL   # prints the page
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(out)
	case len(args) == 2 && args[0] == "get":
		return get(args[1], out)
	}
	return errors.New("usage: demo serve | demo get URL")
}

// serve serves until the process ends.
func serve(out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\x1b[1mdev server\x1b[0m listening on http://%s\n", l.Addr())
	server := &http.Server{Handler: logged(out, http.HandlerFunc(page)), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(l)
}

func page(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/missing" {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, "<!doctype html><title>demo</title><p>You asked for %q.\n", r.URL.Path)
}

// logged writes one line per request.
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

func get(url string, out io.Writer) error {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}
