// Package agents is the door for agents at a host: MCP over HTTP and over WebSockets. It
// owns the MCP servers, one for each principal, and knows which agents are here, and from
// where they come. What an agent sees and may call is the host's: it cannot be changed
// from here.
package agents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agenttools"
	"tether/events"
	"tether/host/admission"
	"tether/host/link"
	"tether/host/rights"
	"tether/internal/bounded"
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
	errClosing    = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the host is going away"}
)

// Host is what the door asks of the host. Its methods may be called concurrently.
type Host interface {
	// Terminals returns the terminals as a principal sees them, and records which of them
	// it looks at.
	Terminals(p rights.Principal) agenttools.Terminals
	// Hold keeps a principal's view of the terminals up to date until letGo is called, so
	// that it misses no change between its requests.
	Hold(p rights.Principal) (letGo func())
	// Tools returns the tools that a principal has besides those for terminals, and what
	// it is told of them; nil: none.
	Tools(p rights.Principal) (tools func() []mcp.Extra, guide string)
	// Heard is called for each message of an agent.
	Heard(p rights.Principal)
}

// Webhooks delivers events to URLs that agents name; see mcp.Webhooks.
type Webhooks interface {
	Subscribe(context.Context, rights.Principal, mcp.Webhook) (mcp.Subscribed, error)
	Unsubscribe(rights.Principal, mcp.Webhook) error
}

// Options configure a Door. All are required, but for those whose comment says otherwise.
type Options struct {
	Host     Host
	Checks   *admission.Checks
	Memory   *link.Memory
	Names    *rights.Names
	Webhooks Webhooks // nil: there are none
	Version  string   // of the host, for agents
	Node     string   // of the cluster; "": the host is alone
	Max      int      // principals with a server at the same time
	// MaxFrame and StallTime bound a message, in bytes, and how long an agent may read
	// nothing of what it is sent.
	MaxFrame  int64
	StallTime time.Duration
	Done      context.Context // ends when the host closes

	Gate *admission.Gate
	// Ask and Audit are those of page.Options.
	Ask   func(p rights.Principal) (done func(), ok bool)
	Audit func(kind string, r *http.Request, by rights.Principal, ev rights.AuditEvent)
	// Bug logs a panic in a call of a tool.
	Bug func(tool string, stack []byte)
	Log zerolog.Logger
}

// Door is the door for agents. Its methods may be called concurrently.
type Door struct {
	o       Options // set once
	servers mcp.Servers

	mu   sync.Mutex       // the host may be asked with it
	here map[string]*here // agents with a valid token, by the keys of their names
}

// here is what the door knows of an agent.
type here struct {
	letGo func()
	// places are those from which it has come. Entries leave only for newer ones.
	places bounded.Map[string, struct{}]
}

// New returns a door. Close it.
func New(o Options) *Door {
	return &Door{o: o, servers: mcp.Servers{Max: o.Max}, here: make(map[string]*here)}
}

// Close ends all sessions.
func (d *Door) Close() { d.servers.Close() }

// Sync tells agents that their tools may have changed.
func (d *Door) Sync() { d.servers.Each((*mcp.Server).Sync) }

// server returns the MCP server of a principal's name.
func (d *Door) server(p rights.Principal) (*mcp.Server, *admission.Refusal) {
	if !p.May(rights.MCP) {
		return nil, errNoAgent
	}
	if p.Live != nil {
		p.Live = d.o.Names.Lasting(p)
	}
	d.keep(p)
	// Sessions end with the last token of a name: a later token of the same name finds
	// another server.
	s, err := d.servers.Of(fmt.Sprintf("%s %p", p.Key(), p.Live), func() *mcp.Server {
		o := mcp.Options{Version: d.o.Version, Node: d.o.Node}
		o.Extra, o.Guide = d.o.Host.Tools(p)
		seen := d.o.Host.Terminals(p)
		o.Tools = agenttools.New(agenttools.Options{Terminals: seen, Bug: d.o.Bug})
		o.Events = events.New(events.Options{Terminals: seen, Machines: true, Problems: o.Tools.Matching(), Bug: d.o.Bug, Streams: events.DefaultStreams + maxWebhooks + maxPushStreams})
		if d.o.Webhooks != nil && p.Name != "" {
			o.Webhooks = ownWebhooks{d.o.Webhooks, p}
		}
		return mcp.New(o)
	})
	switch {
	case errors.Is(err, mcp.ErrTooManyAgents):
		return nil, errManyAgents
	case err != nil:
		return nil, errClosing
	}
	return s, nil
}

// keep has the host keep an agent's view up to date while its name has a valid token.
func (d *Door) keep(p rights.Principal) {
	who := p.Key()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.here[who] != nil {
		return
	}
	one := &here{letGo: d.o.Host.Hold(p)}
	d.here[who] = one
	context.AfterFunc(p.Life(), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		one.letGo()
		delete(d.here, who)
	})
}

func (d *Door) of(p rights.Principal) *here {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.here[p.Key()]
}

// Here reports whether a request comes from an agent that has sent one before. It does
// not depend on MCP sessions, which not every version of MCP has.
func (d *Door) Here(r *http.Request) bool {
	p, why := d.o.Checks.Admit(r)
	return why == nil && d.of(p) != nil
}

// wasAt reports whether an agent has come from that place before with a token that still
// lives, and remembers the place. Without sessions, each call comes as if it were the
// first: a record of each would leave no room for anything else.
func (d *Door) wasAt(p rights.Principal, remote string) bool {
	one := d.of(p)
	return one != nil && !one.places.Add(admission.PlaceOf(remote), struct{}{}, time.Now().Add(math.MaxInt64))
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

// Stream passes to out the events that p asks for, checking p's rights at each event,
// until ctx ends. Its errors are those of events.Engine.Stream. If the rights of the node
// lapse, it returns the reason, and the caller may open the stream again.
func (d *Door) Stream(ctx context.Context, p rights.Principal, r *events.Request, out events.Out) error {
	if d.o.Names.Lasting(p).Err() != nil {
		return errNoEvents
	}
	s, why := d.server(p)
	if why != nil {
		return errNoEvents
	}
	bounded, done := d.o.Gate.Unlapsed(ctx)
	defer done()
	err := s.Events().Stream(bounded, r, out)
	if bounded.Err() != nil && ctx.Err() == nil {
		return context.Cause(bounded)
	}
	return err
}

// asking serves a request that may take long, unless its principal has as many of them as
// one name may have.
func (d *Door) asking(w http.ResponseWriter, r *http.Request, p rights.Principal, serve func(http.ResponseWriter, *http.Request, rights.Principal, *mcp.Server)) {
	done, ok := d.o.Ask(p)
	if !ok {
		d.o.Checks.Refuse(w, r, admission.ErrBusy)
		return
	}
	defer done()
	s, why := d.server(p)
	if why != nil {
		d.o.Checks.Refuse(w, r, why)
		return
	}
	serve(w, r, p, s)
}

// ServeHTTP serves MCP over streamable HTTP.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, why := d.o.Checks.Admit(r)
	if why != nil {
		d.o.Checks.Refuse(w, r, why)
		return
	}
	d.asking(w, r, p, d.http)
}

const mcpSession = "Mcp-Session-Id"

// http serves one request, which ends when its principal's token does.
func (d *Door) http(w http.ResponseWriter, r *http.Request, p rights.Principal, s *mcp.Server) {
	if r.Method == http.MethodPost {
		d.o.Host.Heard(p)
		if r.Header.Get(mcpSession) == "" && !(mcp.Stateless(r) && d.wasAt(p, r.RemoteAddr)) {
			d.o.Audit(rights.AuditConnected, r, p, rights.AuditEvent{Detail: "MCP over HTTP"})
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.Life(), cancel)()
	r = r.WithContext(ctx)
	done, why := d.o.Memory.Whole(w, r, p.Name)
	if why != nil {
		d.o.Checks.Refuse(w, r, why)
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

// ServeSocket serves an admitted principal's MCP session over a WebSocket, which
// tether-host mcp passes on to the agent's standard input and output.
func (d *Door) ServeSocket(w http.ResponseWriter, r *http.Request, p rights.Principal) {
	d.asking(w, r, p, d.lines)
}

func (d *Door) lines(w http.ResponseWriter, r *http.Request, p rights.Principal, s *mcp.Server) {
	in := d.o.Memory.NewReceiver(p.Name)
	ch, err := wsconn.Accept(w, r, wsconn.Options{ReadLimit: d.o.MaxFrame, OriginChecked: true, Memory: in, WriteTimeout: d.o.StallTime})
	if err != nil {
		d.o.Log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("upgrade failed")
		return
	}
	in.Late = func() { _ = ch.CloseReason(wsconn.ClosePolicy, "a message took too long to arrive") }
	d.o.Audit(rights.AuditConnected, r, p, rights.AuditEvent{Detail: "MCP over WebSocket"})
	ctx, lapse := d.o.Gate.Unlapsed(d.o.Done)
	defer lapse()
	defer context.AfterFunc(ctx, func() { _ = ch.CloseReason(wsconn.CloseGoingAway, "the host is going away") })() // likewise
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.Life(), func() {
		_ = ch.CloseReason(wsconn.ClosePolicy, context.Cause(p.Life()).Error()) // it ends either way
		cancel()
	})()
	if err := s.ServeMessages(ctx, &agentConn{Lines: NewLines(ctx, ch), all: d.o.Memory, name: p.Name, tell: func() { d.o.Host.Heard(p) }}); err != nil {
		d.o.Log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("mcp session")
	}
	d.o.Audit(rights.AuditEnded, r, p, rights.AuditEvent{Detail: "MCP over WebSocket"})
}
