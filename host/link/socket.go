package link

import (
	"net"

	"tether/platform/ipc"
)

// Emptied reports whether the peer has acknowledged all but limit bytes, so that the
// socket takes as many without blocking. It returns false if there is no socket or the
// system does not report that.
func Emptied(socket *net.TCPConn, limit int) bool {
	if socket == nil {
		return false
	}
	n, ok := ipc.Unsent(socket)
	return ok && n <= limit
}

// sendBuffer bounds the system's buffer of data written to a client's socket, in bytes
// (Linux takes up to twice as much). By itself Linux keeps up to 4 MB for a client that
// reads nothing. 256 KiB are enough for 2.5 MB/s at a round trip of 100 ms.
const sendBuffer = 256 << 10

// BoundSending bounds the send buffer of the TCP socket of a connection, which may be
// below TLS, and returns the socket. For other connections it returns nil.
func BoundSending(conn net.Conn) *net.TCPConn {
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
