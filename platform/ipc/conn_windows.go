package ipc

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/windows"
)

// addr is the path by which a door is known.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "pipe" }

func (a addr) String() string { return string(a) }

// conn is one end of a pipe. The runtime's poller serves it, so that deadlines and Close
// wake waiting calls.
type conn struct {
	*os.File
	at addr
}

func newConn(h windows.Handle, name string) *conn {
	return &conn{os.NewFile(uintptr(h), name), addr(name)}
}

// Read implements net.Conn: the end of the other side is always io.EOF, however it ended.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	if errors.Is(err, io.EOF) || errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED) {
		return n, io.EOF
	}
	return n, c.failed("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.File.Write(b)
	return n, c.failed("write", err)
}

// Close implements net.Conn. Written data remains readable for the other side.
func (c *conn) Close() error { return c.failed("close", c.File.Close()) }

// failed turns err into an error like those of package net: a net.Error, net.ErrClosed
// after Close. net/http looks for both.
func (c *conn) failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrClosed):
		err = net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: op, Net: "pipe", Addr: c.at, Err: err}
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.at }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.at }
