package host

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"tether/platform/ipc"
)

// progressStep is how much is passed to a socket at once: a peer must read that much within the stall time to count as alive. Ordinary
// frames are smaller and are written whole.
const progressStep = 64 << 10 // bytes

// trackedWriter is a ResponseWriter whose hijacked connection counts the bytes that its peer has taken. So a peer that reads one large
// message slowly can be distinguished from one that reads nothing.
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
	w.conn = &trackedConn{Conn: conn, taken: uptake{epoch: time.Now(), socket: boundSending(conn)}}
	rw.Writer.Reset(w.conn)
	return w.conn, rw, nil
}

// progress returns the counter of the hijacked connection, or nil.
func (w *trackedWriter) progress() *uptake {
	if w.conn == nil {
		return nil
	}
	return &w.conn.taken
}

// uptake records how much a socket has taken and when. One goroutine writes; any goroutine may read.
type uptake struct {
	epoch  time.Time    // set once
	socket *net.TCPConn // set once; nil if it is another kind
	bytes  atomic.Int64
	at     atomic.Int64 // nanoseconds from epoch to when bytes last grew
}

func (u *uptake) add(n int) {
	if n > 0 {
		u.bytes.Add(int64(n))
		u.at.Store(int64(time.Since(u.epoch)))
	}
}

// emptied reports whether the peer has acknowledged nearly everything, so that the socket takes a short message without blocking. It
// returns false if the system does not report that. The receiver may be nil.
func (u *uptake) emptied() bool {
	if u == nil || u.socket == nil {
		return false
	}
	n, ok := ipc.Unsent(u.socket)
	return ok && n <= shortMessage
}

// last returns when the socket last took something.
func (u *uptake) last() time.Time { return u.epoch.Add(time.Duration(u.at.Load())) }

// sendBuffer bounds the system's buffer of data written to a client's socket, in bytes (Linux takes up to twice as much). By itself Linux
// keeps up to 4 MB for a client that reads nothing. 256 KiB are enough for 2.5 MB/s at a round trip of 100 ms.
const sendBuffer = 256 << 10

// boundSending bounds the send buffer of the TCP socket of a connection, which may be below TLS, and returns the socket. For other
// connections it returns nil.
func boundSending(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *net.TCPConn:
			_ = c.SetWriteBuffer(sendBuffer) // fails only with the connection
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// trackedConn is a connection that counts the bytes that its writes have passed to the socket.
type trackedConn struct {
	net.Conn
	taken uptake
}

// Write implements net.Conn.
func (c *trackedConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = c.Conn.Write(p[:min(len(p), progressStep)])
		c.taken.add(m)
		n, p = n+m, p[m:]
	}
	return n, err
}
