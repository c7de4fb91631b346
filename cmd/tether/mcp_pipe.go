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

// mcpPipe passes lines between an MCP client and the daemon, and outlives the daemon: when that is killed or replaced, the next one gets
// the handshake and the subscriptions again, and the client notices only an error for each running call. MCP clients do not reconnect by
// themselves.
//
//	connected ──(daemon gone)──▶ away ──(the next one answers)──▶ connected
//	    └──────(client done)───────┴──(nobody comes)──▶ over
//
// Goroutines: run's passes the daemon's lines on and reconnects; send, which lives as long as the client, passes lines the other way.
type mcpPipe struct {
	// Set before run.
	open    func(context.Context) (*localclient.MCPStream, error)
	in      io.Reader
	out     io.Writer
	timeout time.Duration // how long it waits for the next daemon
	notice  func(format string, args ...any)

	write sync.Mutex // held while a line is written to out

	mu         sync.Mutex
	stream     *localclient.MCPStream // nil while away
	changed    change.Signal          // stream changes, or over becomes true
	over       bool                   // nobody comes any more
	done       bool                   // the client has said all
	handshake  [][]byte               // its lines, initialize first
	subscribed map[string][]byte      // the line for each URI
	streams    map[string]*openStream // the streams of events that are open, by id
	waiting    map[string]bool        // ids of the client's requests without an answer
	replayed   map[string][]byte      // requests by id whose answer the client has had before
	back       time.Time              // when the next daemon answered
}

// openStream is a stream of events that the client has asked for.
type openStream struct {
	line  []byte // the request, with the last cursor that the client was told
	begun bool   // the present daemon has told something
}

// maxMCPLine bounds the lines that are examined, in bytes, as the daemon does. Longer ones are passed on for the daemon to refuse.
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

// swap puts another stream in place, nil for none. One that comes after the end is ended, since nobody else would.
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

// end releases send from any wait except for the client.
func (p *mcpPipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.stream != nil {
		p.stream.Close()
	}
	p.changed.Raise()
}

// receive passes the daemon's messages on until their end. An error is that the client takes none.
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
			return nil // half a line is of no use
		}
	}
}

// heard notes an answer and reports whether it is only for the pipe.
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
	case late: // the terminal may be taken up late
		time.AfterFunc(attach.LastPause, func() { p.again(stream, asked, line) })
	default:
		p.updated(asked.uri)
	}
	return own
}

// passed notes up to where a stream of events was told: the next daemon goes on there.
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

// withCursor is the request of a stream with another cursor, nil if it has no form.
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

// streamAnswered notes the end of a stream of events. Two refusals do not reach the client, and the stream is asked for again: a daemon
// that shuts down fails the streams that had begun, and a new daemon may not have taken up the terminal yet.
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

// again sends a subscription again, unless another daemon has come, or the client wants it no more.
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

// updated makes the client look at a resource that it has subscribed to: output printed meanwhile is reported in no other way.
func (p *mcpPipe) updated(uri string) {
	quoted, err := json.Marshal(uri)
	if err != nil {
		return
	}
	p.write.Lock()
	defer p.write.Unlock()
	fmt.Fprintf(p.out, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`+"\n", quoted)
}

// fail answers the calls that nobody will answer any more.
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

// comeBack waits for the next daemon. It starts none: the person may have ended it.
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

// replay sends the beginning of a session again.
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

// send passes the client's messages on until their end, or until the daemon is gone for good.
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

// say sends a line to the daemon that is there, or the next one. It returns false when there will be none.
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
	p.noteLocked(m, line)
	p.mu.Unlock()
	if _, err := stream.Write(line); err == nil {
		return true
	}
	p.mu.Lock()
	late := p.stream != stream && p.waiting[m.id] // the others were failed before this one was noted
	if late {
		delete(p.waiting, m.id)
	}
	p.mu.Unlock()
	if late {
		p.refuse(m.id)
	}
	return true
}

// noteLocked remembers state that the next daemon needs.
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
		delete(p.waiting, m.cancelled) // nobody answers it
		delete(p.streams, m.cancelled)
	case "events/stream":
		if m.id != "" && len(p.streams) < 64 {
			p.streams[m.id] = &openStream{line: bytes.Clone(line)}
			return // no answer is waited for
		}
	}
	if m.method != "" && m.id != "" {
		p.waiting[m.id] = true
	}
}

// finish tells the daemon that the client is done, after running calls were answered: this message ends an MCP session and cancels running
// calls.
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

// hangUp tells the daemon that nothing more comes.
func hangUp(stream *localclient.MCPStream) {
	if errors.Is(stream.CloseWrite(), errors.ErrUnsupported) { // any other error is its end, too
		stream.Close()
	}
}

// lastAnswers is how long answers under way may take after the client is done. Clients end a server that takes much longer.
const lastAnswers = 5 * time.Second

// awaitAnswers returns when nothing is under way any more, or it took too long.
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

// peekedMCP holds the parts of a message that the pipe needs. An id is its JSON; cancelled is the id of the request that a cancellation
// names.
type peekedMCP struct {
	id, method, uri, cancelled string
	stream, cursor             string // of a stream of events: the id of its request, and its position
	failed                     bool   // it is an error
}

// peekMCP examines a message. Anything else gives the zero value.
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
