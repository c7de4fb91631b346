package rawio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read is read(2), repeated when a signal interrupted it; at the end of the input it
// returns 0 and no error. The descriptor must be non-blocking: a call that blocks keeps
// one of Go's processors. p must not be empty.
func Read(fd uintptr, p []byte) (int, error) {
	n, err := transfer(unix.SYS_READ, fd, p, 0)
	noteRead(fd)
	return n, err
}

// Write is write(2), with the conditions of Read.
func Write(fd uintptr, p []byte) (int, error) {
	noteWrite()
	return transfer(unix.SYS_WRITE, fd, p, 0)
}

// transfer makes a system call of the form (descriptor, buffer, length, flags).
func transfer(trap, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			count(int64(n))
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// The runtime's monitor thread polls the network and interrupts long computations every
// 10 ms. A process needs that when it has more work than processors. The thread sleeps
// once all processors are idle, and only an ordinary system call or a timer wakes it. So
// count makes an ordinary system call after each monitorEvery bytes. Each call counts as
// the bytes that it moves plus callBytes.
const (
	monitorEvery = 1 << 20
	callBytes    = 1 << 10
)

var counted atomic.Int64

// count adds a call that has moved n bytes, and wakes the monitor thread when it is time
// to.
func count(n int64) {
	if counted.Add(n+callBytes) >= monitorEvery {
		counted.Store(0)
		_, _, _ = unix.Syscall(unix.SYS_GETPID, 0, 0, 0)
	}
}

// Wrap returns a connection that reads and writes c without telling the scheduler. The
// result owns c: closing it closes c. Wrap returns c itself if c is wrapped already, is
// closed, or is neither a TCP nor a unix socket.
func Wrap(c net.Conn) net.Conn {
	s, ok := c.(socket)
	if _, wrapped := c.(*conn); wrapped || !ok {
		return c
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return c // it is closed
	}
	w := &conn{socket: s, raw: raw}
	w.in.try, w.out.try = w.receive, w.send
	return w
}

// socket has the methods that *net.TCPConn and *net.UnixConn have in common.
type socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// conn is a wrapped connection. The socket keeps the deadlines, closes, and waits until
// it is ready.
type conn struct {
	socket
	raw     syscall.RawConn
	in, out direction
}

// direction is one direction of a connection, with the state of the Read or Write under
// way. A second call waits for mu.
type direction struct {
	mu  sync.Mutex            // held by the caller of Read or Write
	try func(fd uintptr) bool // set once: receive or send
	p   []byte                // guarded by mu, as n and err
	n   int
	err error
}

// NetConn returns the wrapped connection, as tls.Conn.NetConn does.
func (c *conn) NetConn() net.Conn { return c.socket }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.run(c.raw.Read, p)
	if err != nil {
		return 0, c.named("read", err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.out.run(c.raw.Write, p)
	if err != nil {
		return n, c.named("write", err)
	}
	return n, nil
}

// run makes poll call d.try at once, and again each time the socket may be ready, until
// d.try returns true.
func (d *direction) run(poll func(func(fd uintptr) bool) error, p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.p, d.n, d.err = p, 0, nil
	err := poll(d.try)
	d.p = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

func (c *conn) receive(fd uintptr) bool {
	d := &c.in
	d.n, d.err = transfer(unix.SYS_RECVFROM, fd, d.p, unix.MSG_DONTWAIT)
	noteRead(fd)
	return !errors.Is(d.err, unix.EAGAIN)
}

func (c *conn) send(fd uintptr) bool {
	d := &c.out
	noteWrite()
	for d.n < len(d.p) {
		var n int
		n, d.err = transfer(unix.SYS_SENDTO, fd, d.p[d.n:], unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if d.err != nil {
			return !errors.Is(d.err, unix.EAGAIN)
		}
		d.n += n
	}
	return true
}

// named returns err in the form in which the socket itself would return it.
func (c *conn) named(op string, err error) error {
	e := &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	var errno unix.Errno
	if of, ok := errors.AsType[*net.OpError](err); ok {
		e.Err = of.Err
	} else if errors.As(err, &errno) {
		e.Err = os.NewSyscallError(op, errno)
	}
	return e
}
