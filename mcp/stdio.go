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

// maxCalls bounds the requests of a session that are being answered: those for a stream, and separately all others. It is more than the
// streams that the engine permits, so that a refusal still has room. Further requests are not read, so that a client that sends and does not
// listen costs no more than this.
const maxCalls = 256

// lastAnswers is how long answers under way may take after the client has closed its side.
const lastAnswers = 2 * time.Second

// ErrTooMany: the principal has as many sessions as it may have.
var ErrTooMany = errors.New("too many sessions")

// Messages is one side of a session. One goroutine calls Next while others call Write; Close ends both.
type Messages interface {
	// Next blocks until the client has sent another message, and returns it. It belongs to the server, which calls done once it has been
	// answered or had its effect, or the session has ended. With a [*Refused], the message is answered with that, and the session goes on;
	// data is then valid until the next call. Any other error ends the session, io.EOF after answers under way had a moment.
	Next() (data []byte, done func(), err error)
	// Write sends p, which is one message and a newline.
	io.WriteCloser
}

// Refused is why a message is answered without being looked at.
type Refused struct {
	Code int64 // of JSON-RPC
	Text string
}

func (r *Refused) Error() string { return r.Text }

// Serve runs a session over a stream of lines, one message each, as over standard input and output. It returns when the client has closed
// the stream, ctx ends or the server is closed, and closes conn. An invalid message is answered and skipped. Errors: ErrTooMany, or that
// the server is closed.
func (s *Server) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	return s.ServeMessages(ctx, &stream{ReadWriteCloser: conn, in: lines.NewReader(conn, maxMessage+1)})
}

// ServeMessages is Serve for a stream of messages.
func (s *Server) ServeMessages(ctx context.Context, conn Messages) error {
	defer conn.Close()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	session, err := s.server.Connect(ctx, &lineTransport{s, conn}, nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	_ = session.Wait() // how a stream ends is the client's business
	return nil
}

// stream is a stream of lines, each a message.
type stream struct {
	io.ReadWriteCloser
	in   *lines.Reader
	long bool // a piece of a long line came last
}

// Next implements Messages.
func (m *stream) Next() (data []byte, done func(), err error) {
	for {
		line, whole, err := m.in.Next()
		piece := err == nil && !whole && line[len(line)-1] != '\n' // of a line that goes on
		tooLong := !piece && (m.long || len(line) > maxMessage+1)
		m.long = piece
		switch {
		case tooLong:
			return nil, nil, &Refused{jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has more than %d bytes", maxMessage)}
		case err != nil:
			return nil, nil, err
		case !piece && len(bytes.TrimSpace(line)) > 0:
			return bytes.Clone(line), func() {}, nil
		}
	}
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

// lineTransport is the SDK's stdio transport, except that an invalid message is answered instead of ending the session.
type lineTransport struct {
	server *Server
	conn   Messages
}

// Connect implements sdk.Transport.
func (t *lineTransport) Connect(context.Context) (sdk.Connection, error) {
	closed := make(chan struct{})
	close(closed)
	c := &lineConn{server: t.server, conn: t.conn, lines: make(chan received), ended: make(chan struct{}), over: closed, held: map[jsonrpc.ID]held{}, calls: make(chan struct{}, maxCalls), streams: make(chan struct{}, maxCalls), answered: make(chan struct{}, 1)}
	go c.read()
	return c, nil
}

// lineConn reads in a goroutine of its own, since Read must end when ctx does.
type lineConn struct {
	server *Server

	conn  Messages
	lines chan received // closed by read
	ended chan struct{} // closed by Close
	close sync.Once

	over <-chan struct{} // closed when the next message may be handed over; Read's alone

	calls    chan struct{} // a slot for each request without an answer, except those for a stream
	streams  chan struct{} // a slot for each request for a stream without an answer
	answered chan struct{} // 1 slot: one was given back

	mu    sync.Mutex
	held  map[jsonrpc.ID]held // resources of a request until it is answered; nil after Close
	write sync.Mutex          // held while a line is written
}

// held are the resources of a request.
type held struct {
	done  func()        // called when it is answered
	slots chan struct{} // where it has one
}

// received is a message as Messages has it.
type received struct {
	data []byte
	done func()
}

// read hands over messages until the end of the stream.
func (c *lineConn) read() {
	defer close(c.lines)
	for {
		data, done, err := c.conn.Next()
		refused, ok := errors.AsType[*Refused](err)
		switch {
		case ok:
			c.refuse(idOf(data), refused.Code, refused.Text)
		case err != nil:
			c.settle()
			return
		default:
			select {
			case c.lines <- received{data, done}:
			case <-c.ended:
				done()
				return
			}
		}
	}
}

// settle waits until the requests so far are answered, at most lastAnswers. A script that pipes its requests in closes its side before it has
// read the answers, and the SDK cancels all requests at the end of the stream.
func (c *lineConn) settle() {
	patience := time.NewTimer(lastAnswers)
	defer patience.Stop()
	select {
	case c.lines <- received{}: // Read takes this only after it has given the last request its slot of calls
	case <-patience.C:
		return
	case <-c.ended:
		return
	}
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

// Read implements sdk.Connection. The SDK carries out calls concurrently, but queues messages without bound while it answers initialize:
// Read passes none on meanwhile.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.over:
	case <-c.ended:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return nil, io.EOF
			}
			if line.done == nil {
				continue // see settle
			}
			m := c.message(line.data)
			r, ok := m.(*jsonrpc.Request)
			if !ok || !r.IsCall() {
				line.done() // a message without an answer has its effect at once
				if m != nil {
					return m, nil
				}
				continue
			}
			done := line.done
			if r.Method == "initialize" {
				over := make(chan struct{})
				c.over, done = over, func() { close(over); line.done() }
			}
			slots := c.calls
			if r.Method == methodStream && c.server.opts.Events != nil { // it may last for days
				done()
				slots, done = c.streams, c.carry(r)
			}
			if !c.hold(r.ID, held{done, slots}) {
				done()
				c.refuse(nil, jsonrpc.CodeInvalidRequest, "a request has the id of one that is being answered")
				continue
			}
			select {
			case slots <- struct{}{}:
				return m, nil
			case <-c.ended: // Close releases the held resources
				return nil, io.EOF
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case <-c.ended:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// carry makes way for the stream that a request asks for. The function it returns ends that.
func (c *lineConn) carry(r *jsonrpc.Request) func() {
	id, err := json.Marshal(r.ID.Raw())
	if err != nil {
		return func() {}
	}
	name, forget := c.server.carriers.add(&carrier{id: id, send: c.send})
	params, err := named(r.Params, name)
	if err != nil {
		forget()
		return func() {}
	}
	r.Params = params
	return forget
}

// hold keeps a request's resources until it is answered, or the connection closed. It returns false if there is one with that id.
func (c *lineConn) hold(id jsonrpc.ID, what held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.held == nil:
		what.done()
	case c.held[id].done != nil:
		return false
	default:
		c.held[id] = what
	}
	return true
}

// message decodes a line. An invalid message is answered, and nil returned.
func (c *lineConn) message(line []byte) jsonrpc.Message {
	if !json.Valid(line) {
		c.refuse(nil, jsonrpc.CodeParseError, "a line is not JSON")
		return nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err == nil {
		return m
	}
	why := err.Error()
	if bytes.TrimSpace(line)[0] == '[' {
		why = "batches are not supported; send one message per line"
	}
	c.refuse(idOf(line), jsonrpc.CodeInvalidRequest, why)
	return nil
}

// idOf is the id of a possible request, nil if it has none that can be answered.
func idOf(line []byte) json.RawMessage {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &head) != nil || len(head.ID) > 200 {
		return nil
	}
	return head.ID
}

// refuse answers a line that never became a request.
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
	if r, ok := m.(*jsonrpc.Response); ok {
		c.release(r.ID)
	}
	return err
}

// release releases the resources of an answered request.
func (c *lineConn) release(id jsonrpc.ID) {
	c.mu.Lock()
	was := c.held[id]
	delete(c.held, id)
	c.mu.Unlock()
	if was.done == nil {
		return // an answer without a call
	}
	was.done()
	<-was.slots
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
	c.close.Do(func() {
		close(c.ended)
		c.mu.Lock()
		held := c.held
		c.held = nil
		c.mu.Unlock()
		for _, one := range held {
			one.done()
		}
	})
	return c.conn.Close()
}

// SessionID implements sdk.Connection; a stream is its own session.
func (c *lineConn) SessionID() string { return "" }
