package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/lines"
)

// maxMessage bounds one message of a client, in bytes.
const maxMessage = 1 << 20

// maxCalls bounds the requests of a session that are being answered. Further
// ones wait to be read, so that a client that sends and does not listen costs
// no more than this.
const maxCalls = 256

// lastAnswers is how long answers under way may take after the client has
// closed its side.
const lastAnswers = 2 * time.Second

// ErrTooMany: the principal has as many sessions as it may have.
var ErrTooMany = errors.New("too many sessions")

// Serve runs a session over a stream of lines, one message each, as over
// standard input and output. It returns when the client has closed the stream,
// ctx ends or the server is closed, and closes conn. A message that is none is
// answered and skipped. Errors: ErrTooMany, or that the server is closed.
func (s *Server) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	defer conn.Close()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	session, err := s.server.Connect(ctx, &lineTransport{conn}, nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	_ = session.Wait() // how a stream ends is the client's business
	return nil
}

func (s *Server) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("the server is shutting down")
	case s.sessions >= s.opts.Sessions:
		return fmt.Errorf("%w: %d, the maximum", ErrTooMany, s.sessions)
	}
	s.sessions++
	s.wg.Add(1)
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	s.sessions--
	s.mu.Unlock()
	s.wg.Done()
}

// lineTransport is the SDK's stdio transport with other manners: what is no
// message is answered instead of ending the session.
type lineTransport struct{ conn io.ReadWriteCloser }

// Connect implements sdk.Transport.
func (t *lineTransport) Connect(context.Context) (sdk.Connection, error) {
	c := &lineConn{conn: t.conn, lines: make(chan []byte), ended: make(chan struct{}), calls: make(chan struct{}, maxCalls), answered: make(chan struct{}, 1)}
	go c.read()
	return c, nil
}

// lineConn reads in a goroutine of its own, since Read must end when ctx does.
type lineConn struct {
	conn  io.ReadWriteCloser
	lines chan []byte   // closed by read
	ended chan struct{} // closed by Close
	close sync.Once

	calls    chan struct{} // a slot for each request without an answer
	answered chan struct{} // 1 slot: one was given back

	write sync.Mutex // held while a line is written
}

// read hands over lines until the end of the stream.
func (c *lineConn) read() {
	defer close(c.lines)
	in := lines.NewReader(c.conn, maxMessage+1)
	long := false // a piece of a long line came last
	for {
		line, whole, err := in.Next()
		piece := err == nil && !whole && line[len(line)-1] != '\n' // of a line that goes on
		if !piece && (long || len(line) > maxMessage+1) {
			c.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has more than %d bytes", maxMessage))
			line = nil
		}
		long = piece
		switch {
		case err != nil:
			c.settle()
			return
		case piece:
		case len(bytes.TrimSpace(line)) > 0:
			select {
			case c.lines <- bytes.Clone(line):
			case <-c.ended:
				return
			}
		}
	}
}

// settle gives the answers under way a moment: a script that pipes its requests
// in closes its side before it has read them.
func (c *lineConn) settle() {
	patience := time.NewTimer(lastAnswers)
	defer patience.Stop()
	for len(c.calls) > 0 {
		select {
		case <-c.answered:
		case <-patience.C:
			return
		case <-c.ended:
			return
		}
	}
}

// Read implements sdk.Connection.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return nil, io.EOF
			}
			m := c.message(line)
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				select {
				case c.calls <- struct{}{}:
				case <-c.ended:
					return nil, io.EOF
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			if m != nil {
				return m, nil
			}
		case <-c.ended:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// message decodes a line. What is no message is answered, and nil returned.
func (c *lineConn) message(line []byte) jsonrpc.Message {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if !json.Valid(line) {
		c.refuse(nil, jsonrpc.CodeParseError, "a line is not JSON")
		return nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err == nil {
		return m
	}
	why := err.Error()
	if trimmed := bytes.TrimSpace(line); trimmed[0] == '[' {
		why = "batches are not supported; send one message per line"
	} else if json.Unmarshal(line, &head) != nil || len(head.ID) > 200 {
		head.ID = nil
	}
	c.refuse(head.ID, jsonrpc.CodeInvalidRequest, why)
	return nil
}

// refuse answers what never became a request.
func (c *lineConn) refuse(id json.RawMessage, code int64, why string) {
	if len(id) == 0 || id[0] == '{' || id[0] == '[' {
		id = json.RawMessage("null")
	}
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_ = c.send(answer)
	}
}

// Write implements sdk.Connection.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = c.send(line)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.release()
	}
	return err
}

// release gives the slot of an answered request back.
func (c *lineConn) release() {
	select {
	case <-c.calls:
	default: // an answer to what was no call
	}
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

func (c *lineConn) send(line []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.conn.Write(append(line, '\n'))
	return err
}

// Close implements sdk.Connection.
func (c *lineConn) Close() error {
	c.close.Do(func() { close(c.ended) })
	return c.conn.Close()
}

// SessionID implements sdk.Connection; a stream is its own session.
func (c *lineConn) SessionID() string { return "" }
