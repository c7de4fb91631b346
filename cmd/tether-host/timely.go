package main

import (
	"io"
	stdlog "log"
	"net/http"
	"time"
)

// Bounds for the time before the WebSocket, and for other requests.
const (
	headerTime  = 10 * time.Second
	headerBytes = 16 << 10
	bodyTime    = 10 * time.Second // for a whole body
	idleTime    = 2 * time.Minute  // between two requests of one connection
	answerTime  = 30 * time.Second // for the client to read each answerStep of an answer
	answerStep  = 64 << 10         // bytes
)

// newServer returns a server for clients of which some may be slow, perhaps on purpose:
// no client keeps a connection that it does not use. most bounds the idle connections,
// and twice as many requests are served at a time.
func newServer(h http.Handler, most int) *http.Server {
	c := newConnLimiter(most)
	return &http.Server{Handler: timely(c.handler(h)), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ConnState: c.state, ConnContext: withConn,
		ErrorLog: stdlog.New(io.Discard, "", 0)} // it reports failed handshakes, with their data
}

// timely limits the time for the body of each request, and for each piece of the answer.
// The whole answer may take longer, because some requests wait for events.
func timely(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		_ = conn.SetWriteDeadline(time.Time{}) // clears that of the last request; fails only with the connection
		if r.Body != nil && r.ContentLength != 0 {
			if conn.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
				r.Body = &timelyBody{r.Body, conn}
			}
		}
		out := &timelyWriter{w, conn}
		h.ServeHTTP(out, r)
		out.begin() // for the server's own buffer, which is the whole answer if it has no body
	})
}

// timelyBody is a body whose time limit is removed once it was read.
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

// timelyWriter is an answer that the client must read in time.
type timelyWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
}

// Write implements io.Writer.
func (w *timelyWriter) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0 && err == nil; first = false {
		w.begin()
		var m int
		m, err = w.ResponseWriter.Write(p[:min(len(p), answerStep)])
		n, p = n+m, p[m:]
	}
	return n, err
}

// Flush implements http.Flusher.
func (w *timelyWriter) Flush() { _ = w.FlushError() }

// FlushError serves an http.ResponseController.
func (w *timelyWriter) FlushError() error {
	w.begin()
	return w.conn.Flush()
}

func (w *timelyWriter) begin() {
	_ = w.conn.SetWriteDeadline(time.Now().Add(answerTime)) // fails only with the connection
}

// Unwrap lets an http.ResponseController find further methods.
func (w *timelyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
