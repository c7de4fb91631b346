package host

import (
	"context"
	"net"
	"time"

	"tether/platform/ipc"
)

// The echo of a key is short output. The goroutine that reads the machine's connection
// writes it to observers for whom nothing else waits: waking their write goroutines would
// delay the echo by a switch of threads.

const (
	// shortText is the size in bytes of output that may be an echo.
	shortText = 256

	// shortMessage bounds messages that are written without asking whether the socket
	// takes them, and the socket's backlog then. It is a small part of sendBuffer, so
	// such a write does not block.
	shortMessage = 4 << 10 // bytes

	// promptObservers bounds for how many observers the reading goroutine writes: a write
	// takes some 5 µs, and the machine waits meanwhile.
	promptObservers = 4

	// typingTime is how long after short output somebody may still be typing.
	typingTime = 250 * time.Millisecond
)

// promptly collects the work that short output causes. Guarded by the host's mutex.
type promptly struct {
	last time.Time // when short output last arrived

	on bool // short output is being appended
	n  int  // number of observers
	promptWork
}

// promptWork is the work after short output was appended: first the output is written to
// observers, then the timer of its acknowledgement is started, for which the runtime may
// wake a thread.
type promptWork struct {
	observers [promptObservers]*conn // some may be nil
	owes      *terminal              // or nil
}

// beginLocked makes wakeLocked collect connections until endLocked.
func (p *promptly) beginLocked() { p.on, p.last = true, time.Now() }

// wakeLocked makes the connection deliver: on its write goroutine, or in sendPromptly.
func (c *conn) wakeLocked() {
	p := &c.h.promptly
	if !p.on || p.n == len(p.observers) || len(c.later) > 0 {
		c.wake()
		return
	}
	p.observers[p.n] = c
	p.n++
}

// endLocked returns the collected work, for sendPromptly.
func (p *promptly) endLocked() promptWork {
	w := p.promptWork
	*p = promptly{last: p.last}
	return w
}

// sendPromptly makes observers' connections deliver: on this goroutine if that cannot
// block, otherwise on their write goroutines. Then it does the rest of the work. It must
// be called without the host's mutex.
func (h *Host) sendPromptly(w promptWork) {
	for _, c := range w.observers {
		if c != nil && !(emptied(c.remote.socket) && c.peer.PullDirectly(context.Background(), shortMessage)) {
			c.wake()
		}
	}
	if w.owes != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ackLateLocked(w.owes)
	}
}

// emptied reports whether the peer has acknowledged nearly everything, so that the socket
// takes a short message without blocking. It returns false if there is no socket or the
// system does not report that.
func emptied(socket *net.TCPConn) bool {
	if socket == nil {
		return false
	}
	n, ok := ipc.Unsent(socket)
	return ok && n <= shortMessage
}

// sendBuffer bounds the system's buffer of data written to a client's socket, in bytes
// (Linux takes up to twice as much). By itself Linux keeps up to 4 MB for a client that
// reads nothing. 256 KiB are enough for 2.5 MB/s at a round trip of 100 ms.
const sendBuffer = 256 << 10

// boundSending bounds the send buffer of the TCP socket of a connection, which may be
// below TLS, and returns the socket. For other connections it returns nil.
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
