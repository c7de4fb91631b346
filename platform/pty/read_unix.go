//go:build linux || darwin

package pty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// reader is the reading side of a PTY, owned by the goroutine that reads.
type reader struct {
	master *os.File
	conn   syscall.RawConn
	peek   func(fd uintptr) bool // peekReady and drainReady as values made once: a read allocates nothing
	drain  func(fd uintptr) bool

	ended bool    // the end of output was seen
	held  bool    // first holds a byte that wait has read ahead
	first [1]byte //
	into  []byte  // argument of drainReady
	n     int     // result of both
	err   error   // result of peekReady
}

func (r *reader) init(master *os.File, conn syscall.RawConn) {
	r.master, r.conn, r.peek, r.drain = master, conn, r.peekReady, r.drainReady
}

// Read reads output. It blocks, without a thread, until there is some. When no process holds the terminal open any more, it returns
// io.EOF, now and from then on; after Close an error that is os.ErrClosed.
func (p *PTY) Read(b []byte) (int, error) { return p.reader.read(b) }

// WaitReadable blocks until Read would return output at once; at the end it returns the error that Read would return. A caller that
// waits here instead of in Read needs a buffer only while there is something to put into it.
func (p *PTY) WaitReadable() error { return p.reader.wait() }

func (r *reader) read(b []byte) (int, error) {
	switch {
	case len(b) == 0:
		return 0, nil
	case r.held:
		r.held = false
		b[0] = r.first[0]
		r.into, r.n = b[1:], 0
		_ = r.conn.Read(r.drain) // fails after Close: the byte is handed out still, the next Read says it
		r.into = nil
		return 1 + r.n, nil
	case r.ended:
		return 0, io.EOF
	}
	n, err := r.master.Read(b)
	return n, r.end(err)
}

// wait reads one byte ahead: unlike poll(2) or FIONREAD a read means the same on every system's master.
func (r *reader) wait() error {
	switch {
	case r.held:
		return nil
	case r.ended:
		return io.EOF
	}
	if r.conn.Read(r.peek) != nil {
		return os.ErrClosed // no deadline is ever set, so it is that; RawConn gives the poller's own error
	}
	if r.err == nil && r.n == 0 {
		r.err = io.EOF
	}
	r.held = r.err == nil
	return r.end(r.err)
}

// peekReady is called by the poller's RawConn: first at once, then each time the master may have become readable, until it is true.
func (r *reader) peekReady(fd uintptr) bool {
	r.n, r.err = readNow(fd, r.first[:])
	return !errors.Is(r.err, unix.EAGAIN)
}

// drainReady takes what else there is, without waiting. An error comes again with the next read.
func (r *reader) drainReady(fd uintptr) bool {
	if len(r.into) > 0 {
		if n, err := readNow(fd, r.into); err == nil {
			r.n = n
		}
	}
	return true
}

// readNow is read(2) on a non-blocking descriptor, repeated when a signal interrupted it.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		n, err := unix.Read(int(fd), b)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// end translates the end of output: Linux says EIO when nobody holds the other side any more, macOS returns nothing.
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
