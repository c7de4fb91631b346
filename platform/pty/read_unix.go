//go:build linux || darwin

package pty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"tether/platform/rawio"
)

// aheadSize is how much wait reads ahead, in bytes: all that Linux hands out at a time
// (N_TTY_BUF_SIZE).
const aheadSize = 4 << 10

// aheads are buffers for that. A terminal takes one only for a try to read, and keeps it
// only until it was handed out.
var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// reader is the reading side of a PTY, owned by the goroutine that reads.
type reader struct {
	conn       syscall.RawConn
	try, tryTo func(fd uintptr) bool // readAhead and readTo as values made once: a read allocates nothing

	ended bool             // the end of output was seen
	ahead *[aheadSize]byte // holds [at:n], read ahead by wait, or nil
	at, n int
	to    []byte // where readTo puts output
	err   error  // result of readAhead or readTo
}

func (r *reader) init(conn syscall.RawConn) {
	r.conn, r.try, r.tryTo = conn, r.readAhead, r.readTo
}

// Read reads output. It blocks, without a thread, until there is some. When no process
// holds the terminal open any more, it returns io.EOF, now and from then on; after Close
// an error that is os.ErrClosed.
func (p *PTY) Read(b []byte) (int, error) { return p.reader.read(b) }

// WaitReadable blocks until Read would return output at once; at the end it returns the
// error that Read would return. A caller that waits here instead of in Read needs a
// buffer only while there is something to put into it.
func (p *PTY) WaitReadable() error { return p.reader.wait() }

func (r *reader) read(b []byte) (int, error) {
	switch {
	case len(b) == 0:
		return 0, nil
	case r.ahead != nil:
		n := copy(b, r.ahead[r.at:r.n])
		if r.at += n; r.at == r.n {
			r.drop()
		}
		return n, nil
	case r.ended:
		return 0, io.EOF
	}
	r.n, r.to = 0, b
	err := r.await(r.tryTo)
	r.to = nil
	return r.n, err
}

// readTo reads to the caller's buffer, as readAhead does to one of aheads.
func (r *reader) readTo(fd uintptr) bool {
	r.n, r.err = rawio.Read(fd, r.to)
	return !errors.Is(r.err, unix.EAGAIN)
}

// wait reads ahead: unlike poll(2) or FIONREAD a read means the same on every system's
// master, and this saves a system call for available output.
func (r *reader) wait() error {
	switch {
	case r.ahead != nil:
		return nil
	case r.ended:
		return io.EOF
	}
	err := r.await(r.try)
	if err != nil && r.ahead != nil {
		r.drop()
	}
	return err
}

// await calls try, which sets n and err, until it has read something, an error, or the
// end.
func (r *reader) await(try func(fd uintptr) bool) error {
	if r.conn.Read(try) != nil {
		return os.ErrClosed // no deadline is ever set, so it is that; RawConn gives the poller's own error
	}
	if r.err == nil && r.n == 0 {
		r.err = io.EOF
	}
	return r.end(r.err)
}

// readAhead is called by the poller's RawConn: first at once, then each time the master
// may have become readable, until it is true.
func (r *reader) readAhead(fd uintptr) bool {
	r.ahead = aheads.Get().(*[aheadSize]byte)
	r.at = 0
	r.n, r.err = rawio.Read(fd, r.ahead[:])
	if errors.Is(r.err, unix.EAGAIN) {
		r.drop() // while nothing comes, nothing is held
		return false
	}
	return true
}

func (r *reader) drop() {
	aheads.Put(r.ahead)
	r.ahead = nil
}

// end translates the end of output: Linux says EIO when nobody holds the other side any
// more, macOS returns nothing.
func (r *reader) end(err error) error {
	switch {
	case err == nil, errors.Is(err, os.ErrClosed):
		return err
	case errors.Is(err, unix.EIO), errors.Is(err, io.EOF):
		r.ended = true
		return io.EOF
	default:
		return fmt.Errorf("read terminal: %w", err)
	}
}
