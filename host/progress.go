package host

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// progressStep is how much is handed to a socket at once: what a peer must read within the stall time to count as
// alive. Ordinary frames are smaller and are written whole.
const progressStep = 64 << 10 // bytes

// trackedWriter is a ResponseWriter whose hijacked connection counts what its peer has taken, so that a slow reader of
// one large message can be told from one that reads nothing.
type trackedWriter struct {
	http.ResponseWriter
	conn *trackedConn
}

// Hijack implements http.Hijacker.
func (w *trackedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.conn = &trackedConn{Conn: conn}
	rw.Writer.Reset(w.conn)
	return w.conn, rw, nil
}

// progress is the counter of the hijacked connection, nil if there is none.
func (w *trackedWriter) progress() *atomic.Int64 {
	if w.conn == nil {
		return nil
	}
	return &w.conn.taken
}

// trackedConn is a connection that counts the bytes its writes have handed over.
type trackedConn struct {
	net.Conn
	taken atomic.Int64
}

// Write implements net.Conn.
func (c *trackedConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = c.Conn.Write(p[:min(len(p), progressStep)])
		c.taken.Add(int64(m))
		n, p = n+m, p[m:]
	}
	return n, err
}
