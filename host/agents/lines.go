package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"tether/host/link"
	"tether/jsonrpc/wsconn"
)

// Lines is a WebSocket as a stream of lines, one per text frame. One goroutine may read
// while another writes.
type Lines struct {
	ctx  context.Context
	conn *wsconn.Conn
	rest []byte // unread part of the frame that was received last
}

// NewLines returns conn as lines. It owns conn from now on; its methods fail once ctx
// ends.
func NewLines(ctx context.Context, conn *wsconn.Conn) *Lines { return &Lines{ctx: ctx, conn: conn} }

// Read returns the other side's lines, io.EOF at their end.
func (l *Lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		frame, err := l.conn.Recv(l.ctx)
		switch {
		case errors.Is(err, io.EOF) || err == nil && len(frame) == 0:
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
		l.rest = append(bytes.ReplaceAll(frame, []byte("\n"), []byte(" ")), '\n')
		l.conn.Free()
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Write sends p, which must be one line.
func (l *Lines) Write(p []byte) (int, error) {
	line := bytes.TrimRight(p, "\r\n")
	if len(line) == 0 {
		return len(p), nil
	}
	return len(p), l.conn.Send(l.ctx, line)
}

// CloseWrite tells the other side that no more input follows; answers under way still
// arrive.
func (l *Lines) CloseWrite() error { return l.conn.Send(l.ctx, nil) }

// Close ends the connection.
func (l *Lines) Close() error { return l.conn.CloseReason(wsconn.CloseNormal, "") }

// agentConn is a session's WebSocket. Its calls under way are counted in the same budget
// of bytes as requests over HTTP. It implements mcp.Messages.
type agentConn struct {
	*Lines
	all  *link.Memory
	name string      // of the principal
	tell func()      // called for each message
	free atomic.Bool // a short call that is not counted is under way
}

// Next implements mcp.Messages.
func (c *agentConn) Next() (data []byte, done func(), err error) {
	frame, err := c.conn.Recv(c.ctx)
	switch {
	case err == nil && len(frame) == 0:
		return nil, nil, io.EOF
	case err != nil:
		return nil, nil, err
	}
	c.tell()
	done, why := c.all.Called(c.name, frame, &c.free)
	if why != nil {
		return frame, nil, why
	}
	data = bytes.Clone(frame)
	c.conn.Free()
	return data, done, nil
}
