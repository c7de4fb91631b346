package main

import (
	"io"
	stdlog "log"
	"net/http"
	"time"
)

// Bounds on what comes before the WebSocket, and in place of one.
const (
	headerTime  = 10 * time.Second
	headerBytes = 16 << 10
	bodyTime    = 10 * time.Second // for a whole body
	idleTime    = 2 * time.Minute  // between two requests of one connection
)

// newServer serves a handler to clients of which some are slow, or on purpose so: none keeps a connection that it does not use.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: timely(h), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: stdlog.New(io.Discard, "", 0)} // it tells of handshakes that came to nothing, with what was sent
}

// timely gives the body of each request its time. The answer may take longer: there are those that wait for something.
func timely(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.ContentLength != 0 {
			conn := http.NewResponseController(w)
			if conn.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
				r.Body = &timelyBody{r.Body, conn}
			}
		}
		h.ServeHTTP(w, r)
	})
}

// timelyBody is a body whose time is over when it was read.
type timelyBody struct {
	io.ReadCloser
	conn *http.ResponseController
}

// Read implements io.Reader.
func (b *timelyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{}) // fails only with the connection
	}
	return n, err
}
