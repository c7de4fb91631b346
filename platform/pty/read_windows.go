package pty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// reader is the reading side of a PTY.
type reader struct {
	out  *os.File
	conn syscall.RawConn
	came atomic.Int64 // bytes read

	mu     sync.Mutex // held while reading, so that drain begins when nobody reads any more
	ended  bool       // the end of output was seen
	closed bool
	ahead  [1]byte // read by wait
	has    bool    // ahead holds a byte
}

func (r *reader) init(out *os.File) (err error) {
	r.out = out
	r.conn, err = out.SyscallConn()
	return err
}

// Read reads output. It blocks, without a thread, until there is some. When the console
// has ended, it returns io.EOF, now and from then on; after Close an error that is
// os.ErrClosed.
//
// The console ends after the last program on it, with nothing lost. Windows before build
// 26100 does not do that by itself: there it is ended when the program and all it has
// started have ended and no output has come for a short while.
func (p *PTY) Read(b []byte) (int, error) { return p.reader.read(b) }

// WaitReadable blocks until Read would return output at once; at the end it returns the
// error that Read would return. A caller that waits here instead of in Read needs a
// buffer only while there is something to put into it.
func (p *PTY) WaitReadable() error { return p.reader.wait() }

func (r *reader) read(b []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if r.has {
		b[0], r.has = r.ahead[0], false
		n, b = 1, b[1:]
		if r.closed || r.ended || len(b) == 0 || r.available() == 0 {
			return n, nil
		}
	}
	if err := r.over(); err != nil {
		return n, err
	}
	more, err := r.out.Read(b)
	r.came.Add(int64(more))
	if n+more > 0 {
		return n + more, nil // an end comes again
	}
	return 0, r.end(err)
}

// wait reads one byte ahead: a pipe reports data only by returning it.
func (r *reader) wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has {
		return nil
	}
	if err := r.over(); err != nil {
		return err
	}
	n, err := r.out.Read(r.ahead[:])
	r.came.Add(int64(n))
	r.has = n == 1
	if r.has {
		return nil
	}
	return r.end(err)
}

func (r *reader) over() error {
	switch {
	case r.closed:
		return os.ErrClosed
	case r.ended:
		return io.EOF
	}
	return nil
}

// available returns how many bytes can be read at once.
func (r *reader) available() (n uint32) {
	_ = r.conn.Control(func(fd uintptr) { n, _ = available(windows.Handle(fd)) })
	return n
}

// end translates the end of output. Close sets a deadline to wake the reader.
func (r *reader) end(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
		return os.ErrClosed
	case errors.Is(err, io.EOF), errors.Is(err, windows.ERROR_BROKEN_PIPE):
		r.ended = true
		return io.EOF
	default:
		return fmt.Errorf("read terminal: %w", err)
	}
}

// wake makes running and later calls of Read and WaitReadable return os.ErrClosed, and
// returns when none is running.
func (r *reader) wake() {
	_ = r.out.SetReadDeadline(time.Unix(1, 0))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// drain discards output until its end, or for at most d. Call wake first.
func (r *reader) drain(d time.Duration) {
	if r.out.SetReadDeadline(time.Now().Add(d)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.out)
}
