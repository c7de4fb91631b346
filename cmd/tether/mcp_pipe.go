package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tether/agent/localclient"
	"tether/cmd/tether/internal/attach"
	"tether/cmd/tether/internal/display"
	"tether/internal/change"
	"tether/internal/jsonspan"
	"tether/internal/lines"
)

// mcpPipe passes lines between an MCP client and the daemon. It outlives the daemon: when the daemon was killed or replaced, the pipe sends
// the handshake and the subscriptions again to the next one, and the client notices only an error for each running call. This is needed
// because MCP clients do not reconnect by themselves.
//
//	connected ──(daemon gone)──▶ away ──(the next one answers)──▶ connected
//	    └──────(client done)───────┴──(nobody comes)──▶ over
//
// The goroutine of run passes the daemon's lines to the client and reconnects. The goroutine of send, which ends with the client, passes
// lines the other way.
type mcpPipe struct {
	// Set before run.
	open    func(context.Context) (*localclient.MCPStream, error)
	in      io.Reader
	out     io.Writer
	timeout time.Duration // how long the pipe waits for the next daemon
	notice  func(format string, args ...any)
	orphan  func() bool // reports whether the process that started this one has ended; nil: not known

	write sync.Mutex // held while a line is written to out

	mu         sync.Mutex
	stream     *localclient.MCPStream // nil while away
	changed    change.Signal          // raised when stream changes, and when over becomes true
	over       bool                   // the pipe has ended and takes no further daemon
	done       bool                   // the client has ended its input
	said       int                    // messages of the client
	handshake  [][]byte               // lines of the handshake, initialize first
	subscribed map[string][]byte      // the subscribing line for each URI
	streams    map[string]*openStream // open streams of events, by the id of the request
	waiting    map[string]bool        // ids of the client's requests without an answer
	replayed   map[string][]byte      // repeated requests, by id, whose first answer the client has already received
	back       time.Time              // when the present daemon was connected, if it is not the first
}

// openStream is a stream of events that the client has asked for.
type openStream struct {
	line  []byte // the request, with the last cursor that the client was sent
	begun bool   // the present daemon has sent something of the stream
}

// maxMCPLine bounds the lines that are examined, in bytes; the daemon has the same bound. Longer lines are passed on unexamined, and the
// daemon refuses them.
const maxMCPLine = 1 << 20

// run returns when the client is done, ctx ends, or the daemon is gone for good.
func (p *mcpPipe) run(ctx context.Context) error {
	p.subscribed, p.streams, p.waiting, p.replayed = map[string][]byte{}, map[string]*openStream{}, map[string]bool{}, map[string][]byte{}
	stream, err := p.open(ctx)
	if err != nil {
		return err
	}
	p.swap(stream)
	defer p.end()
	defer context.AfterFunc(ctx, p.end)()
	go p.send()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go p.watchParent(watched)
	for {
		err = p.receive(stream)
		p.swap(nil)
		stream.Close()
		if err != nil {
			return err
		}
		if p.isDone() || ctx.Err() != nil {
			return nil
		}
		p.fail()
		if stream, err = p.comeBack(ctx); err != nil {
			return err
		}
	}
}

// awaits reports whether the client waits for an answer, or for the connection.
func (p *mcpPipe) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stream == nil || len(p.waiting) > 0
}

func (p *mcpPipe) isDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// swap sets the stream; nil means that there is no connection. It closes a stream that comes after the end, since nobody else would.
func (p *mcpPipe) swap(s *localclient.MCPStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = s
	switch {
	case s == nil:
	case p.over:
		s.Close()
	case p.done:
		hangUp(s)
	}
	p.changed.Raise()
}

// end makes send return from any wait, except for a wait for the client's input.
func (p *mcpPipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.stream != nil {
		p.stream.Close()
	}
	p.changed.Raise()
}

// receive passes the daemon's messages to the client until the stream ends. It returns an error only if the client cannot be written to.
func (p *mcpPipe) receive(stream *localclient.MCPStream) error {
	r := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 && err == nil && !p.heard(stream, peekMCP(line)) {
			p.write.Lock()
			_, err := p.out.Write(line)
			p.write.Unlock()
			if err != nil {
				return err
			}
		}
		if err != nil {
			return nil // an incomplete line is dropped
		}
	}
}

// heard records an answer, and reports whether it is not to be passed to the client.
func (p *mcpPipe) heard(stream *localclient.MCPStream, m peekedMCP) bool {
	if strings.HasPrefix(m.method, "notifications/events/") {
		p.passed(m)
		return false
	}
	if m.method != "" || m.id == "" {
		return false
	}
	if p.streamAnswered(stream, m) {
		return true
	}
	p.mu.Lock()
	delete(p.waiting, m.id)
	line, own := p.replayed[m.id]
	delete(p.replayed, m.id)
	late := m.failed && time.Since(p.back) < p.timeout
	p.mu.Unlock()
	switch asked := peekMCP(line); {
	case asked.method != "resources/subscribe":
	case late: // the new daemon may not have adopted the terminal yet
		time.AfterFunc(attach.LastPause, func() { p.again(stream, asked, line) })
	default:
		p.updated(asked.uri)
	}
	return own
}

// passed records up to which cursor a stream of events was passed on, since the next daemon is to continue there.
func (p *mcpPipe) passed(m peekedMCP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[m.stream]
	if s == nil {
		return
	}
	s.begun = true
	if m.cursor == "" {
		return
	}
	if with := withCursor(s.line, m.cursor); with != nil {
		s.line = with
	}
}

// withCursor returns the request of a stream with another cursor, or nil if the request is malformed.
func withCursor(line []byte, cursor string) []byte {
	var members, params map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || json.Unmarshal(members["params"], &params) != nil || params == nil {
		return nil
	}
	params["cursor"], _ = json.Marshal(cursor)
	members["params"], _ = json.Marshal(params)
	with, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return append(with, '\n')
}

// streamAnswered records the end of a stream of events. In two cases it hides an error from the client, by returning true, and the stream
// is requested again: a daemon that shuts down ends its streams with an error, and a new daemon may not have adopted the terminal yet.
func (p *mcpPipe) streamAnswered(stream *localclient.MCPStream, m peekedMCP) (own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[m.id]
	if s == nil {
		return false
	}
	if m.failed && (s.begun || time.Since(p.back) < p.timeout) {
		time.AfterFunc(attach.LastPause, func() {
			p.mu.Lock()
			wanted := p.stream == stream && !p.over && p.streams[m.id] == s
			line := s.line
			p.mu.Unlock()
			if wanted {
				_, _ = stream.Write(line) // if it fails, the next daemon gets it
			}
		})
		return true
	}
	delete(p.streams, m.id)
	return false
}

// again sends a subscription again, unless another daemon is connected by now, or the client has ended the subscription.
func (p *mcpPipe) again(stream *localclient.MCPStream, m peekedMCP, line []byte) {
	p.mu.Lock()
	wanted := p.stream == stream && !p.over && bytes.Equal(p.subscribed[m.uri], line)
	if wanted {
		p.replayed[m.id] = line
	}
	p.mu.Unlock()
	if wanted {
		_, _ = stream.Write(line) // if it fails, the next daemon gets it
	}
}

// updated tells the client that a subscribed resource has changed, because output that was printed without a connection is reported in no
// other way.
func (p *mcpPipe) updated(uri string) {
	quoted, err := json.Marshal(uri)
	if err != nil {
		return
	}
	p.write.Lock()
	defer p.write.Unlock()
	fmt.Fprintf(p.out, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`+"\n", quoted)
}

// fail answers the calls that the previous daemon has left unanswered with an error.
func (p *mcpPipe) fail() {
	p.mu.Lock()
	ids := p.waiting
	p.waiting, p.replayed = map[string]bool{}, map[string][]byte{}
	p.mu.Unlock()
	for id := range ids {
		p.refuse(id)
	}
}

func (p *mcpPipe) refuse(id string) {
	const text = "the daemon restarted during this call; check its result, or call again"
	p.write.Lock()
	defer p.write.Unlock()
	fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s"}}`+"\n", id, text)
}

// comeBack waits for the next daemon. It does not start one, since the person may have ended the daemon.
func (p *mcpPipe) comeBack(ctx context.Context) (*localclient.MCPStream, error) {
	for retry := attach.NewRetry(p.timeout); ; {
		stream, err := p.open(ctx)
		if err == nil {
			if err = p.replay(stream); err == nil {
				p.swap(stream)
				p.notice("reconnected to the daemon after %s", display.Round(retry.Elapsed()))
				return stream, nil
			}
			stream.Close()
		}
		if ctx.Err() == nil && p.isDone() {
			return nil, localclient.ErrDropped
		}
		if err := retry.Wait(ctx); errors.Is(err, attach.ErrTimeout) {
			return nil, &hinted{fmt.Errorf("%w and did not come back within %v", localclient.ErrDropped, p.timeout), "restart the MCP client"}
		} else if err != nil {
			return nil, err
		}
	}
}

// replay sends the handshake and the subscriptions again.
func (p *mcpPipe) replay(stream io.Writer) error {
	p.mu.Lock()
	p.back = time.Now()
	lines := append([][]byte(nil), p.handshake...)
	for _, line := range p.subscribed {
		lines = append(lines, line)
	}
	var open [][]byte
	for _, s := range p.streams {
		s.begun = false
		open = append(open, s.line)
	}
	for _, line := range lines {
		if m := peekMCP(line); m.id != "" {
			p.replayed[m.id] = line
		}
	}
	p.mu.Unlock()
	_, err := stream.Write(bytes.Join(append(lines, open...), nil))
	return err
}

// send passes the client's messages to the daemon until they end, or until the pipe has ended.
func (p *mcpPipe) send() {
	in := lines.NewReader(p.in, maxMCPLine)
	for {
		line, whole, err := in.Next()
		if err != nil {
			p.finish()
			return
		}
		if !p.say(line, whole) {
			return
		}
	}
}

// say sends a line to the present daemon, or to the next one if there is none. It returns false if the pipe has ended.
func (p *mcpPipe) say(line []byte, whole bool) bool {
	var m peekedMCP
	if whole {
		m = peekMCP(line)
	}
	p.mu.Lock()
	for p.stream == nil && !p.over {
		changed := p.changed.Next()
		p.mu.Unlock()
		<-changed
		p.mu.Lock()
	}
	stream := p.stream
	if p.over {
		p.mu.Unlock()
		return false
	}
	p.said++
	p.noteLocked(m, line)
	p.mu.Unlock()
	if _, err := stream.Write(line); err == nil {
		return true
	}
	p.mu.Lock()
	late := p.stream != stream && p.waiting[m.id] // fail has run before this request was recorded
	if late {
		delete(p.waiting, m.id)
	}
	p.mu.Unlock()
	if late {
		p.refuse(m.id)
	}
	return true
}

// noteLocked records the state that the next daemon needs.
func (p *mcpPipe) noteLocked(m peekedMCP, line []byte) {
	switch m.method {
	case "initialize":
		p.handshake = [][]byte{bytes.Clone(line)}
	case "notifications/initialized":
		p.handshake = append(p.handshake[:min(len(p.handshake), 1)], bytes.Clone(line))
	case "resources/subscribe":
		if len(p.subscribed) < 256 {
			p.subscribed[m.uri] = bytes.Clone(line)
		}
	case "resources/unsubscribe":
		delete(p.subscribed, m.uri)
	case "notifications/cancelled":
		delete(p.waiting, m.cancelled) // no answer will come
		delete(p.streams, m.cancelled)
	case "events/stream":
		if m.id != "" && len(p.streams) < 64 {
			p.streams[m.id] = &openStream{line: bytes.Clone(line)}
			return // it gets no answer
		}
	}
	if m.method != "" && m.id != "" {
		p.waiting[m.id] = true
	}
}

const (
	parentTick = 5 * time.Second  // between two looks at the process that started this one
	orphanTime = 10 * time.Second // how long an orphan waits for a message
)

// watchParent ends the pipe when the process that started it has ended and no message came for orphanTime after that.
// The input does not end then if another process holds it, such as a background job of the client. A client behind a
// wrapper that has ended still sends messages; it is not ended.
func (p *mcpPipe) watchParent(ctx context.Context) {
	if p.orphan == nil {
		return
	}
	wait := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for !p.orphan() {
		if !wait(parentTick) {
			return
		}
	}
	before := p.messages()
	if wait(orphanTime) && p.messages() == before {
		p.finish()
	}
}

func (p *mcpPipe) messages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// finish tells the daemon that the client is done. It waits for the answers of running calls first, because the end of an MCP session
// cancels running calls.
func (p *mcpPipe) finish() {
	p.awaitAnswers()
	p.mu.Lock()
	p.done = true
	stream := p.stream
	p.mu.Unlock()
	if stream != nil {
		hangUp(stream)
	}
}

// hangUp tells the daemon that no more messages follow.
func hangUp(stream *localclient.MCPStream) {
	if errors.Is(stream.CloseWrite(), errors.ErrUnsupported) { // after any other error the stream has ended, too
		stream.Close()
	}
}

// lastAnswers is how long the answers of running calls may take after the client is done. Clients kill a server that takes much longer.
const lastAnswers = 5 * time.Second

// awaitAnswers returns when no call runs any more, or lastAnswers is over.
func (p *mcpPipe) awaitAnswers() {
	for retry := attach.NewRetry(lastAnswers); ; {
		p.mu.Lock()
		idle := len(p.waiting) == 0 || p.over
		p.mu.Unlock()
		if idle || retry.Wait(context.Background()) != nil {
			return
		}
	}
}

// peekedMCP holds the parts of a message that the pipe needs. Ids are kept as JSON. cancelled is the id of the request that a cancellation
// names.
type peekedMCP struct {
	id, method, uri, cancelled string
	stream, cursor             string // for a stream of events: the id of its request, and its position
	failed                     bool   // the message is an error
}

// peekMCP returns the parts of a message. It returns the zero value for a line that is not a message.
func peekMCP(line []byte) (m peekedMCP) {
	err := jsonspan.Object(line, func(key, value []byte) error {
		switch string(key) {
		case "id":
			if value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
				m.id = string(value)
			}
		case "error":
			m.failed = true
		case "method":
			_ = json.Unmarshal(value, &m.method)
		case "params":
			var params struct {
				URI       string          `json:"uri"`
				RequestID json.RawMessage `json:"requestId"`
				Cursor    string          `json:"cursor"`
				Meta      struct {
					Stream json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
				} `json:"_meta"`
			}
			if len(value) < 64<<10 && json.Unmarshal(value, &params) == nil {
				m.uri, m.cancelled, m.stream, m.cursor = params.URI, string(params.RequestID), string(params.Meta.Stream), params.Cursor
			}
		}
		return nil
	})
	if err != nil {
		return peekedMCP{}
	}
	return m
}
