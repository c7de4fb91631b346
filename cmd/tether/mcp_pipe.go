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
	"tether/cmd/tether/internal/display"
	"tether/internal/change"
	"tether/internal/jsonspan"
	"tether/internal/lines"
	"tether/internal/retry"
)

// mcpPipe passes lines between an MCP client and the daemon. It outlives the daemon: when
// the daemon was killed or replaced, the pipe sends the handshake and the subscriptions
// again to the next one, and the client notices only an error for each running call. This
// is needed because MCP clients do not reconnect by themselves.
//
//	connected ──(daemon gone)──▶ away ──(the next one answers)──▶ connected
//	    └──────(client done)───────┴──(nobody comes)──▶ over
//
// The goroutine of run passes the daemon's lines to the client and reconnects. The
// goroutine of send, which ends with the client, passes lines the other way.
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
	changed    change.Signal          // raised when stream or asked changes, and when over becomes true
	over       bool                   // the pipe has ended and takes no further daemon
	done       bool                   // the client has ended its input
	said       int                    // messages of the client
	handshake  [][]byte               // lines of the handshake, initialize first
	first      string                 // id of initialize
	subscribed map[string]*mcpRequest // by URI
	asked      map[string]*mcpRequest // without an answer of the present daemon, by id
	back       time.Time              // when the present daemon was connected, if it is not the first
}

// mcpRequest is a request of the client.
type mcpRequest struct {
	id, uri  string
	line     []byte // of a subscription, or of a stream of events
	repeated bool   // the client has its answer from a former daemon
	stream   bool   // it is a stream of events, which is answered at its end
	begun    bool   // the present daemon has sent something of the stream
	cursor   string // up to which the client was sent the stream
}

// maxMCPLine bounds the lines that are examined, in bytes; the daemon has the same bound.
// Longer lines are passed on unexamined, and the daemon refuses them.
const maxMCPLine = 1 << 20

// mcpAgain is the pause before the present daemon is asked once more, because it may not
// have adopted the terminal yet.
const mcpAgain = 100 * time.Millisecond

// run returns when the client is done, ctx ends, or the daemon is gone for good.
func (p *mcpPipe) run(ctx context.Context) error {
	p.subscribed, p.asked = map[string]*mcpRequest{}, map[string]*mcpRequest{}
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
	back := localclient.Comeback{Timeout: p.timeout, Told: func(took time.Duration) {
		p.notice("reconnected to the daemon after %s", display.Round(took))
	}}
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
		// It does not start a daemon, since the person may have ended it.
		err = back.Do(ctx, localclient.ErrDropped, func() (err error) {
			if stream, err = p.open(ctx); err == nil {
				if err = p.replay(stream); err == nil {
					p.swap(stream)
					return nil
				}
				stream.Close()
			}
			if p.isDone() {
				err = localclient.ErrDropped
			}
			return err
		})
		if _, ok := errors.AsType[*localclient.GoneError](err); ok {
			return &hinted{err, "restart the MCP client"}
		} else if err != nil {
			return err
		}
	}
}

// awaits reports whether the client waits for an answer, or for the connection.
func (p *mcpPipe) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stream == nil || p.callsLocked()
}

// callsLocked reports whether the client waits for an answer.
func (p *mcpPipe) callsLocked() bool {
	for _, r := range p.asked {
		if !r.stream && !r.repeated {
			return true
		}
	}
	return false
}

func (p *mcpPipe) isDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// swap sets the stream; nil means that there is no connection. It closes a stream that
// comes after the end, since nobody else would.
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

// receive passes the daemon's messages to the client until the stream ends. It returns an
// error only if the client cannot be written to.
func (p *mcpPipe) receive(stream *localclient.MCPStream) error {
	r := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil // an incomplete line is dropped
		}
		own, changed := p.heard(stream, peekMCP(line))
		if !own {
			p.write.Lock()
			_, err = p.out.Write(line)
			p.write.Unlock()
		}
		if err != nil {
			return err
		}
		if changed != "" {
			p.updated(changed)
		}
	}
}

// heard records a message of the daemon. own reports that the client is not to get it.
// changed is the URI of a resource that may have changed while no daemon was connected.
//
// In two cases an error is the pipe's own, and the request is sent again: a daemon that
// shuts down ends its streams of events with an error, and a new daemon may not have
// adopted the terminal yet.
func (p *mcpPipe) heard(stream *localclient.MCPStream, m peekedMCP) (own bool, changed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasPrefix(m.method, "notifications/events/") {
		if r := p.asked[m.stream]; r != nil && r.stream {
			r.begun = true
			if m.cursor != "" {
				r.cursor = m.cursor
			}
		}
		return false, ""
	}
	r := p.asked[m.id]
	if m.method != "" || r == nil {
		return false, ""
	}
	late := m.failed && time.Since(p.back) < p.timeout
	if r.stream && (late || m.failed && r.begun) || late && r.repeated && r.uri != "" {
		time.AfterFunc(mcpAgain, func() { p.again(stream, r) })
		return true, ""
	}
	delete(p.asked, m.id)
	p.changed.Raise()
	if r.repeated {
		changed = r.uri
	}
	return r.repeated, changed
}

// again sends a request again, unless another daemon is connected by now, or the client
// has ended the subscription.
func (p *mcpPipe) again(stream *localclient.MCPStream, r *mcpRequest) {
	p.mu.Lock()
	wanted := p.stream == stream && !p.over && p.asked[r.id] == r && (r.stream || p.subscribed[r.uri] == r)
	line := r.now()
	p.mu.Unlock()
	if wanted {
		_, _ = stream.Write(line) // if it fails, the next daemon gets it
	}
}

// now returns the line of a subscription, or of a stream from where the client has it.
func (r *mcpRequest) now() []byte {
	var members, params map[string]json.RawMessage
	if r.cursor == "" || json.Unmarshal(r.line, &members) != nil || json.Unmarshal(members["params"], &params) != nil || params == nil {
		return r.line
	}
	params["cursor"], _ = json.Marshal(r.cursor)
	members["params"], _ = json.Marshal(params)
	line, err := json.Marshal(members)
	if err != nil {
		return r.line
	}
	return append(line, '\n')
}

// updated tells the client that a subscribed resource has changed, because output that
// was printed without a connection is reported in no other way.
func (p *mcpPipe) updated(uri string) {
	if quoted, err := json.Marshal(uri); err == nil {
		p.tell(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`, quoted)
	}
}

// tell sends the client a message of the pipe's own.
func (p *mcpPipe) tell(format string, args ...any) {
	p.write.Lock()
	defer p.write.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// fail answers the calls that the previous daemon has left unanswered with an error.
func (p *mcpPipe) fail() {
	var calls []string
	p.mu.Lock()
	for id, r := range p.asked {
		if r.stream {
			r.begun = false
			continue
		}
		delete(p.asked, id)
		if !r.repeated {
			calls = append(calls, id)
		}
	}
	p.changed.Raise()
	p.mu.Unlock()
	for _, id := range calls {
		p.tell(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"the daemon restarted during this call; check its result, or call again"}}`, id)
	}
}

// replay sends the handshake and the subscriptions again.
func (p *mcpPipe) replay(stream io.Writer) error {
	p.mu.Lock()
	p.back = time.Now()
	again := append([][]byte(nil), p.handshake...)
	if p.first != "" {
		p.asked[p.first] = &mcpRequest{id: p.first, repeated: true}
	}
	for _, r := range p.subscribed {
		r.repeated = true
		p.asked[r.id] = r
		again = append(again, r.line)
	}
	for _, r := range p.asked {
		if r.stream {
			again = append(again, r.now())
		}
	}
	p.mu.Unlock()
	_, err := stream.Write(bytes.Join(again, nil))
	return err
}

// send passes the client's messages to the daemon until they end, or until the pipe has
// ended.
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

// say sends a line to the present daemon, or to the next one if there is none. It returns
// false if the pipe has ended.
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
	stream, over := p.stream, p.over
	if !over {
		p.said++
		p.noteLocked(m, line)
	}
	p.mu.Unlock()
	if !over {
		_, _ = stream.Write(line) // if it fails, receive ends, too
	}
	return !over
}

// noteLocked records what the next daemon is to be sent, and which requests have no
// answer.
func (p *mcpPipe) noteLocked(m peekedMCP, line []byte) {
	r := &mcpRequest{id: m.id, uri: m.uri}
	switch m.method {
	case "initialize":
		p.handshake, p.first = [][]byte{bytes.Clone(line)}, m.id
	case "notifications/initialized":
		p.handshake = append(p.handshake[:min(len(p.handshake), 1)], bytes.Clone(line))
	case "resources/subscribe":
		if len(p.subscribed) < 256 {
			r.line = bytes.Clone(line)
			p.subscribed[m.uri] = r
		}
	case "resources/unsubscribe":
		delete(p.subscribed, m.uri)
	case "notifications/cancelled":
		delete(p.asked, m.cancelled) // no answer will come
		p.changed.Raise()
	case "events/stream":
		r.line, r.stream = bytes.Clone(line), true
	}
	if m.method != "" && m.id != "" {
		p.asked[m.id] = r
	}
}

const (
	parentTick = 5 * time.Second  // between two looks at the process that started this one
	orphanTime = 10 * time.Second // how long an orphan waits for a message
)

// watchParent ends the pipe when the process that started it has ended and no message
// came for orphanTime after that. The input does not end then if another process holds
// it, such as a background job of the client. A client behind a wrapper that has ended
// still sends messages; it is not ended.
func (p *mcpPipe) watchParent(ctx context.Context) {
	if p.orphan == nil {
		return
	}
	for !p.orphan() {
		if !retry.Wait(ctx, parentTick) {
			return
		}
	}
	before := p.messages()
	if retry.Wait(ctx, orphanTime) && p.messages() == before {
		p.finish()
	}
}

func (p *mcpPipe) messages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// finish tells the daemon that the client is done. It waits for the answers of running
// calls first, because the end of an MCP session cancels running calls.
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

// lastAnswers is how long the answers of running calls may take after the client is done.
// Clients kill a server that takes much longer.
const lastAnswers = 5 * time.Second

// awaitAnswers returns when no call runs any more, or lastAnswers is over.
func (p *mcpPipe) awaitAnswers() {
	for timeout := time.After(lastAnswers); ; {
		p.mu.Lock()
		idle, changed := p.over || !p.callsLocked(), p.changed.Next()
		p.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			return
		}
	}
}

// peekedMCP holds the parts of a message that the pipe needs. Ids are kept as JSON.
// cancelled is the id of the request that a cancellation names.
type peekedMCP struct {
	id, method, uri, cancelled string
	stream, cursor             string // for a stream of events: the id of its request, and its position
	failed                     bool   // the message is an error
}

// peekMCP returns the parts of a message. It returns the zero value for a line that is
// not a message.
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
