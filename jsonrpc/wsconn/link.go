package wsconn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// holdSize is how much a link gathers before it writes, in bytes: a full frame of
// terminal output (64 KiB before escaping) with its header.
const holdSize = 128 << 10

// writeStep is how much the other side must take within Options.WriteTimeout, in bytes.
// Ordinary frames are smaller and are written whole.
const writeStep = 64 << 10

// A link is the socket below a WebSocket connection. coder/websocket writes a masked
// frame in pieces of 4 KiB, the size of the buffer it masks in, and an unmasked one in
// two; each piece is a system call. A link can hold the pieces back and write them as
// one: sent and received over loopback TCP, a masked frame of 16 KiB then costs 13 µs of
// CPU instead of 18 (medians of three). It also gives every write a time limit, for which
// a context would cost three allocations per frame.
//
// Two kinds of goroutine write: the sender (hold, Write through the library, release) and
// any that makes the library write a control frame. turn lets one of them in.
type link struct {
	net.Conn
	timeout time.Duration
	written atomic.Int64 // bytes that the socket has taken

	// turn is a lock in a 1-slot channel, held during a socket write. Closing Conn ends
	// that write, and so frees those who wait for the lock.
	turn chan struct{}

	// Guarded by turn.
	holding bool
	never   bool            // hold does nothing any more
	held    *[holdSize]byte // nil if n is 0
	n       int             // bytes in held
	err     error           // of the first failed write
}

var holds = sync.Pool{New: func() any { return new([holdSize]byte) }}

func newLink(c net.Conn, timeout time.Duration) *link {
	return &link{Conn: c, timeout: timeout, turn: make(chan struct{}, 1)}
}

func (l *link) lock()   { l.turn <- struct{}{} }
func (l *link) unlock() { <-l.turn }

// hold makes later writes wait for release.
func (l *link) hold() {
	l.lock()
	defer l.unlock()
	l.holding = !l.never
}

// release writes the bytes that were held back.
func (l *link) release() error {
	l.lock()
	defer l.unlock()
	l.holding = false
	return l.flush()
}

// flushForGood is release, after which nothing is held back again.
func (l *link) flushForGood() error {
	l.lock()
	defer l.unlock()
	l.never, l.holding = true, false
	return l.flush()
}

// Write writes p, or keeps a copy of it while holding.
func (l *link) Write(p []byte) (int, error) {
	l.lock()
	defer l.unlock()
	if l.n+len(p) > holdSize {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	if !l.holding || len(p) > holdSize {
		return l.write(p)
	}
	if l.held == nil {
		l.held = holds.Get().(*[holdSize]byte)
	}
	l.n += copy(l.held[l.n:], p)
	return len(p), l.err
}

// flush writes the bytes that were held back and frees their memory. The caller must have
// turn.
func (l *link) flush() error {
	if l.n == 0 {
		return l.err
	}
	_, err := l.write(l.held[:l.n])
	holds.Put(l.held)
	l.held, l.n = nil, 0
	return err
}

// write writes p to the socket, each step in time. Only with turn.
func (l *link) write(p []byte) (n int, err error) {
	for len(p) > 0 && l.err == nil {
		var m int
		if l.err = l.Conn.SetWriteDeadline(time.Now().Add(l.timeout)); l.err == nil {
			m, l.err = l.Conn.Write(p[:min(len(p), writeStep)])
		}
		l.written.Add(int64(m))
		n, p = n+m, p[m:]
	}
	return n, l.err
}
