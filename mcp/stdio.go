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

	"tether/internal/change"
	"tether/internal/jsonspan"
	"tether/internal/lines"
)

// maxMessage bounds one message from a client, in bytes.
const maxMessage = 1 << 20

// maxCalls bounds the requests of a session that are being answered. Requests for an
// event stream and all others are counted separately. The event engine permits fewer
// streams, so that its refusals still have room. Further requests are not read: a client
// that sends but does not read costs no more memory.
const maxCalls = 256

// lastAnswers bounds the wait for unanswered requests after the client has closed its
// side.
const lastAnswers = 2 * time.Second

// ErrTooMany is returned by Serve and ServeMessages, wrapped, if the principal already
// has Options.Sessions sessions.
var ErrTooMany = errors.New("too many sessions")

// Messages is the server's end of a session's connection. One goroutine calls Next while
// others call Write; Close ends both.
type Messages interface {
	// Next blocks until the client has sent another message, and returns it. The server
	// then owns data. It calls done just before it writes the answer, so that a client
	// that has the answer finds the resources of its request free. Without an answer, it
	// calls done when the message was carried out or the session has ended.
	//
	// If err is a [*Refused], the server answers the message with it, and the session
	// continues; data is then valid until the next call, and done is not called. Any
	// other error ends the session after the unanswered requests had up to 2 s to be
	// answered.
	Next() (data []byte, done func(), err error)
	// Write sends p, which is one message and a newline.
	io.WriteCloser
}

// Refused is the error of a message that the server answers without decoding it, for
// example because it is too long.
type Refused struct {
	Code int64 // JSON-RPC error code
	Text string
}

func (r *Refused) Error() string { return r.Text }

// Serve runs a session over a stream of lines, one message each, such as standard input
// and output. It blocks until the client has closed the stream, ctx has ended or the
// server was closed; then it closes conn. An invalid message is answered with an error,
// and the session continues. Errors: ErrTooMany, or that the server is closed.
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
	_ = session.Wait() // its error says only how the client ended the stream
	return nil
}

// stream implements Messages for a stream of lines, each a message.
type stream struct {
	io.ReadWriteCloser
	in   *lines.Reader
	long bool // the last read returned a piece of a long line that continues
}

// Next implements Messages.
func (m *stream) Next() (data []byte, done func(), err error) {
	for {
		line, whole, err := m.in.Next()
		piece := err == nil && !whole && line[len(line)-1] != '\n' // a piece of a long line that continues
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

// enter counts a session. It fails if there are too many or the server is closed.
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

// lineTransport replaces the SDK's stdio transport: an invalid message is answered and
// does not end the session.
type lineTransport struct {
	server *Server
	conn   Messages
}

// Connect implements sdk.Transport.
func (t *lineTransport) Connect(context.Context) (sdk.Connection, error) {
	closed := make(chan struct{})
	close(closed)
	c := &lineConn{server: t.server, conn: t.conn, lines: make(chan received), ended: make(chan struct{}), over: closed, held: map[jsonrpc.ID]*held{}, calls: make(chan struct{}, maxCalls), streams: make(chan struct{}, maxCalls), answered: make(chan struct{}, 1)}
	go c.read()
	return c, nil
}

// lineConn implements sdk.Connection. Its goroutine read reads the messages, because Read
// must return when its ctx ends.
type lineConn struct {
	server *Server

	conn  Messages
	lines chan received // closed by read
	ended chan struct{} // closed by Close
	close sync.Once

	over <-chan struct{} // closed when the next message may be handed to the SDK; owned by Read

	calls    chan struct{} // a slot for each request without an answer, except those for a stream
	streams  chan struct{} // a slot for each request for a stream without an answer
	answered chan struct{} // 1 slot: a request was answered

	mu    sync.Mutex
	held  map[jsonrpc.ID]*held // resources of the unanswered requests; nil after Close
	write sync.Mutex           // held while a line is written
}

// held are the resources of an unanswered request.
type held struct {
	done  func()        // called before the answer is written: a client that has the answer may send the next request
	then  func()        // called after the answer was written
	slots chan struct{} // calls or streams: the request has a slot there until the answer was written
}

// received is a message that Messages.Next returned.
type received struct {
	data []byte
	done func()
}

// read hands messages to Read until the stream or the connection ends.
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

// settle waits until the requests so far are answered, at most lastAnswers. A script that
// pipes its requests in closes its side before it has read the answers, and the SDK
// cancels all requests at the end of the stream.
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

// Read implements sdk.Connection. The SDK carries out calls concurrently, but queues
// messages without bound while it answers initialize. So Read returns no message until
// initialize is answered.
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
				line.done() // the message is no request: nothing will be answered
				if m != nil {
					return m, nil
				}
				continue
			}
			what := &held{line.done, func() {}, c.calls}
			if r.Method == "initialize" {
				over := make(chan struct{})
				c.over, what.then = over, func() { close(over) }
			}
			if r.Method == methodStream && c.server.opts.Events != nil { // it may last for days
				line.done()
				what = &held{func() {}, c.carry(r), c.streams}
			}
			if !c.hold(r.ID, what) {
				what.end()
				c.refuse(nil, jsonrpc.CodeInvalidRequest, "a request has the id of one that is being answered")
				continue
			}
			select {
			case what.slots <- struct{}{}:
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

// carry adds a carrier for the event stream that the request asks for, and puts the
// carrier's name into the request. The returned function removes the carrier.
func (c *lineConn) carry(r *jsonrpc.Request) func() {
	id, err := json.Marshal(r.ID.Raw())
	if err != nil {
		return func() {}
	}
	name, forget := c.server.carriers.add(&carrier{id: bytes.TrimPrefix(c.server.ids.out(append([]byte(":"), id...)), []byte(":")), send: c.send})
	params, err := named(r.Params, name)
	if err != nil {
		forget()
		return func() {}
	}
	r.Params = params
	return forget
}

// hold keeps a request's resources until the request is answered or the connection is
// closed; after Close, it releases them at once. It returns false if a request with that
// id is being answered.
func (c *lineConn) hold(id jsonrpc.ID, what *held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.held == nil:
		what.end()
	case c.held[id] != nil:
		return false
	default:
		c.held[id] = what
	}
	return true
}

// end releases the resources of a request that is not answered.
func (h *held) end() {
	h.done()
	h.then()
}

// message decodes a line. It answers an invalid message and returns nil.
func (c *lineConn) message(line []byte) jsonrpc.Message {
	if !json.Valid(line) {
		c.refuse(nil, jsonrpc.CodeParseError, "a line is not JSON")
		return nil
	}
	message, err := c.server.ids.in(line)
	if errors.Is(err, errID) {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, err.Error())
		return nil
	}
	var m jsonrpc.Message
	if err == nil {
		m, err = jsonrpc.DecodeMessage(message)
	}
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

// idOf returns the id in a line that may be a request, or nil if it has no usable id.
func idOf(line []byte) json.RawMessage {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &head) != nil || jsonspan.CheckText(head.ID) != nil {
		return nil
	}
	return head.ID
}

// refuse answers a line that is not passed to the SDK.
func (c *lineConn) refuse(id json.RawMessage, code int64, why string) {
	_ = c.send(refusal(id, code, why))
}

// refusal is the answer to a message that is not passed to the SDK, with a null id if id
// is not usable.
func refusal(id json.RawMessage, code int64, why string) []byte {
	if len(id) == 0 || id[0] == '{' || id[0] == '[' {
		id = json.RawMessage("null")
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}}) // id is JSON
	return answer
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
	line = c.server.ids.out(line)
	if r, ok := m.(*jsonrpc.Response); ok {
		return c.answer(r.ID, line)
	}
	return c.send(line)
}

// answer writes the answer to a request and releases the request's resources.
func (c *lineConn) answer(id jsonrpc.ID, line []byte) error {
	c.write.Lock()
	c.mu.Lock()
	was := c.held[id]
	delete(c.held, id)
	c.mu.Unlock()
	if was != nil {
		was.done()
	}
	_, err := c.conn.Write(append(line, '\n'))
	c.write.Unlock()
	if was == nil {
		return err // the connection was closed
	}
	was.then()
	<-was.slots
	change.Wake(c.answered)
	return err
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
			one.end()
		}
	})
	return c.conn.Close()
}

// SessionID implements sdk.Connection; a stream is its own session.
func (c *lineConn) SessionID() string { return "" }
