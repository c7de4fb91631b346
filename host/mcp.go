package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"tether/agenttools"
	"tether/events"
	"tether/host/admission"
	"tether/host/link"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/host/shells"
	"tether/jsonrpc/wsconn"
	"tether/mcp"
)

// maxWebhooks bounds the streams for webhooks of one principal. Other streams of the
// principal do not count.
const maxWebhooks = 64

// maxPushStreams is the same for the notifications of one person's eight browsers.
const maxPushStreams = 40

var (
	errNoAgent    = &admission.Refusal{Status: http.StatusForbidden, Text: "this token is not for agents: its role allows no MCP"}
	errManyAgents = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "too many agents are connected"}
)

// agent returns the MCP server of a principal's name.
func (h *Host) agent(p rights.Principal) (*mcp.Server, *admission.Refusal) {
	if !p.May(rights.MCP) {
		return nil, errNoAgent
	}
	if p.Live != nil {
		p.Live = h.names.Lasting(p)
	}
	h.holdAgent(p)
	// Sessions end with the last token of a name: a later token of the same name finds
	// another server.
	s, err := h.agents.Of(fmt.Sprintf("%s %p", p.Key(), p.Live), func() *mcp.Server {
		o := mcp.Options{Version: h.opts.Info.Version}
		if h.opts.Nodes != nil {
			o.Node = h.opts.Nodes.ID()
		}
		var terminals agenttools.Terminals = catalogue{h, &p}
		if h.opts.Sessions && p.May(rights.Sessions) {
			terminals = ownCatalogue{catalogue{h, &p}, p.Name}
			var own []mcp.Extra
			if h.shellTools != nil {
				own = h.shellTools.For(p)
			}
			o.Extra, o.Guide = func() []mcp.Extra { return slices.Concat(own, h.callers.Tools(p)) }, sessions.Guide
			if own != nil {
				o.Guide += "\n" + shells.Guide
			}
		}
		seen := &watched{Terminals: terminals, h: h, p: p}
		o.Tools = agenttools.New(agenttools.Options{Terminals: seen, Bug: h.toolBug})
		o.Events = events.New(events.Options{Terminals: seen, Machines: true, Problems: o.Tools.Matching(), Bug: h.toolBug, Streams: events.DefaultStreams + maxWebhooks + maxPushStreams})
		if h.opts.Webhooks != nil && p.Name != "" {
			o.Webhooks = ownWebhooks{h.opts.Webhooks, p}
		}
		return mcp.New(o)
	})
	switch {
	case errors.Is(err, mcp.ErrTooManyAgents):
		return nil, errManyAgents
	case err != nil:
		return nil, &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the host is going away"}
	}
	return s, nil
}

// holdAgent keeps an agent's view of the catalogue up to date while its name has a valid
// token, so that it misses no change between its requests.
func (h *Host) holdAgent(p rights.Principal) {
	who := p.Key()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agentHolds[who] != nil {
		return
	}
	use := h.holdLocked(h.roster.Viewer(p))
	h.agentHolds[who] = use
	context.AfterFunc(p.Life(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.letGoLocked(use)
		if h.agentHolds[who] == use {
			delete(h.agentHolds, who)
		}
	})
}

// agentWasAt reports whether an agent has come from that place before with a token that
// still lives, and remembers the place. Without sessions, each call comes as if it were
// the first: a record of each would leave no room for anything else.
func (h *Host) agentWasAt(p rights.Principal, remote string) bool {
	h.mu.Lock()
	use := h.agentHolds[p.Key()]
	h.mu.Unlock()
	return use != nil && !use.places.first(admission.PlaceOf(remote))
}

// Webhooks delivers events to URLs that agents name; see mcp.Webhooks.
type Webhooks interface {
	Subscribe(context.Context, rights.Principal, mcp.Webhook) (mcp.Subscribed, error)
	Unsubscribe(rights.Principal, mcp.Webhook) error
}

// ownWebhooks are the webhooks of one principal.
type ownWebhooks struct {
	all Webhooks
	p   rights.Principal
}

// Subscribe implements mcp.Webhooks.
func (w ownWebhooks) Subscribe(ctx context.Context, r mcp.Webhook) (mcp.Subscribed, error) {
	return w.all.Subscribe(ctx, w.p, r)
}

// Unsubscribe implements mcp.Webhooks.
func (w ownWebhooks) Unsubscribe(r mcp.Webhook) error { return w.all.Unsubscribe(w.p, r) }

// errNoEvents ends the stream of a principal who has lost the right to the events.
var errNoEvents = &events.Error{Reason: events.Forbidden, Text: "the right to these events is gone", Data: map[string]any{"reason": "withdrawn"}}

// StreamEvents passes to out the events that p asks for, checking p's rights at each
// event, until ctx ends. Its errors are those of events.Engine.Stream.
func (h *Host) StreamEvents(ctx context.Context, p rights.Principal, r *events.Request, out events.Out) error {
	if h.names.Lasting(p).Err() != nil {
		return errNoEvents
	}
	s, why := h.agent(p)
	if why != nil {
		return errNoEvents
	}
	bounded, done := h.unlapsed(ctx)
	defer done()
	err := s.Events().Stream(bounded, r, out)
	if bounded.Err() != nil && ctx.Err() == nil {
		return errRightsOld // the caller may open the stream again
	}
	return err
}

// mcpHTTP serves MCP over streamable HTTP. A request under way ends when its principal's
// token does.
func (h *Host) mcpHTTP(w http.ResponseWriter, r *http.Request, p rights.Principal) {
	s, why := h.agent(p)
	if why != nil {
		h.checks.Refuse(w, r, why)
		return
	}
	if r.Method == http.MethodPost {
		h.callers.Here(p)
		if r.Header.Get(mcpSession) == "" && !(mcp.Stateless(r) && h.agentWasAt(p, r.RemoteAddr)) {
			h.audit(rights.AuditConnected, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Detail: "MCP over HTTP"})
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.Life(), cancel)()
	r = r.WithContext(ctx)
	done, why := h.messages.Whole(w, r, p.Name)
	if why != nil {
		h.checks.Refuse(w, r, why)
		return
	}
	defer done()
	if _, ok := admission.RequestToken(r); ok {
		// The SDK refuses other names than localhost at a loopback address, against
		// rebinding. No page has the token, and a proxy passes on the name that it was
		// asked for.
		r.Host = "localhost"
	}
	s.ServeHTTP(w, r)
}

const mcpSession = "Mcp-Session-Id"

// mcpLines serves an MCP session over a WebSocket, which tether-host mcp passes on to the
// agent's standard input and output.
func (h *Host) mcpLines(w http.ResponseWriter, r *http.Request, p rights.Principal) {
	s, why := h.agent(p)
	if why != nil {
		h.checks.Refuse(w, r, why)
		return
	}
	in := h.messages.NewReceiver(p.Name)
	ch, err := wsconn.Accept(w, r, wsconn.Options{ReadLimit: h.opts.MaxFrame, OriginChecked: true, Memory: in, WriteTimeout: h.opts.StallTime})
	if err != nil {
		h.log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("upgrade failed")
		return
	}
	in.Late = func() { _ = ch.CloseReason(closePolicy, "a message took too long to arrive") }
	from := remote{name: r.RemoteAddr, principal: p}
	h.audit(rights.AuditConnected, from, rights.AuditEvent{Detail: "MCP over WebSocket"})
	ctx, lapse := h.unlapsed(h.ctx)
	defer lapse()
	defer context.AfterFunc(ctx, func() { _ = ch.CloseReason(closeGoingAway, "the host is going away") })() // likewise
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.Life(), func() {
		_ = ch.CloseReason(closePolicy, context.Cause(p.Life()).Error()) // it ends either way
		cancel()
	})()
	if err := s.ServeMessages(ctx, &agentConn{Lines: NewLines(ctx, ch), all: h.messages, name: p.Name, tell: func() { h.callers.Here(p) }}); err != nil {
		h.log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("mcp session")
	}
	h.audit(rights.AuditEnded, from, rights.AuditEvent{Detail: "MCP over WebSocket"})
}

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

// toolBug logs a panic in a call of a tool.
func (h *Host) toolBug(tool string, stack []byte) {
	h.log.Error().Str("tool", tool).Bytes("stack", stack).Msg("a call of a tool ran into a bug")
}
