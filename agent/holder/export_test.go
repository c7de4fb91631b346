package holder

import (
	"bytes"
	"context"
	"net"

	"tether/agent/flow"
	"tether/platform/pty"
)

// Child is the child of a holder.
type Child = child

// Held is a holder without a process and a socket.
type Held struct{ h *holder }

// Hold starts a holder. Its Run ends as Main would, after closing the socket.
func Hold(s Spec, c Child, closeSocket func()) (*Held, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	h := newHolder(s, c, func() error { closeSocket(); return nil })
	h.key = Key()
	return &Held{h}, nil
}

// Run returns when the holder is over.
func (h *Held) Run() { h.h.run() }

// Stop has the effect of SIGTERM.
func (h *Held) Stop() { h.h.stop() }

// Serve serves one connection.
func (h *Held) Serve(conn net.Conn) { h.h.serve(conn) }

// Accept serves the connections of a socket.
func (h *Held) Accept(l net.Listener) { h.h.accept(l) }

// Bounds returns the first and the end offset of the log.
func (h *Held) Bounds() (base, end int64) {
	h.h.mu.Lock()
	defer h.h.mu.Unlock()
	return h.h.log.Start(), h.h.log.End()
}

// Connect is Dial over a given connection.
func Connect(ctx context.Context, conn net.Conn) (*Client, error) { return ConnectAs(ctx, conn, nil) }

// ConnectAs is Connect of a daemon that has other holders.
func ConnectAs(ctx context.Context, conn net.Conn, inputs *flow.Typing) (*Client, error) {
	return newClient(ctx, Options{Key: Key(), Inputs: inputs}, "x", "", conn, nil)
}

// Conns are the connections of a holder and of the daemon that is connected to it.
func Conns(h *Held, c *Client) (holders, daemons net.Conn) {
	h.h.mu.Lock()
	defer h.h.mu.Unlock()
	return h.h.session.conn, c.conn
}

// Key is the key of the tests' holders.
func Key() []byte { return bytes.Repeat([]byte{'k'}, KeyBytes) }

// Size is the number of bytes that are missing.
func (e *GapError) Size() int64 { return e.To - e.From }

// Exit tells how the child ended, if it has, without waiting for the last output to be
// read.
func (c *Client) Exit() (pty.Exit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return pty.Exit{}, false
	}
	return c.exit.exit, true
}

// HasKeyboard reports whether the client has a descriptor of the pty.
func (c *Client) HasKeyboard() bool { return c.keyboard.Has() }
