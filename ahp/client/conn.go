package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// ErrNotResumed is returned by Connect when Options.Resume was set and the host refused
// to resume, most often because it does not know the client any more. The caller connects
// again without Resume.
var ErrNotResumed = errors.New("the host does not resume the connection")

// maxHeld bounds the messages that arrive before the handshake is done, in bytes. If a
// host sends more, the connection is closed. Each notification counts heldCost besides
// its text, so that many empty ones are bounded too.
const (
	maxHeld  = 4 << 20
	heldCost = 128
)

// Options configures a Conn. ClientID is required.
//
// The callbacks are called one at a time, in the order of arrival. The read goroutine
// calls them; for messages that arrived before the handshake was done, the connecting
// goroutine does. No callback may block, call Close or wait for a call of the same Conn.
// Arguments are valid until the callback returns. Requests of the host are refused unless
// there is an OnRequest.
type Options struct {
	ClientID      string
	Info          ahp.Implementation // left out if it has no name
	Meta          ahp.Meta           // of initialize
	Subscriptions []string           // initial ones
	Versions      []string           // nil = ahp.Versions()
	Resume        *Resume            // nil = initialize
	ReadLimit     int64              // bytes per message, for Connect; 0 = DefaultReadLimit
	MaxValues     int                // JSON values per message, see jsonrpc.Options; 0 = DefaultMaxValues

	OnReady        func(c *Conn)                      // once, before the first envelope and notification
	OnEnvelope     func(v ahp.EnvelopeView)           // also for replayed ones; Data is not checked to be a valid string
	OnNotification func(method string, params []byte) // for all methods but MethodAction
	OnRequest      func(r *jsonrpc.Request)           // a request of the host, once the handshake is done; it is replied to then or later
	OnStream       func(stream net.Conn)              // for each stream that the host begins, see jsonrpc.Options.Accept; nil: it may begin none
	Typing         func() bool                        // see jsonrpc.Options; nil: nobody types
	OnInvalid      func(err error)                    // for an envelope that could not be read and was skipped
}

// Resume says which connection a new one continues.
type Resume struct {
	Initial           ahp.InitializeResult // of that connection; its version stays in force
	LastSeenServerSeq int64
	Subscriptions     []string
}

// Conn is one initialized connection to a host. Its methods may be called by any
// goroutine.
//
// Goroutines: run reads and calls the callbacks; Close waits for it.
type Conn struct {
	// Set once by ConnectChannel, before OnReady.
	opts    Options
	ch      jsonrpc.Channel
	peer    *jsonrpc.Peer
	result  ahp.InitializeResult
	resumed *ahp.ReconnectResult
	done    chan struct{} // closed by run

	seq  atomic.Int64 // clientSeq of the last dispatch
	live atomic.Bool  // the handshake is done and held is empty; never becomes false again

	mu   sync.Mutex // guards the fields below; held while held notifications are delivered
	held []notification
	size int // cost of held, in bytes

	view ahp.EnvelopeView // owned by the delivering goroutine
}

// notification is a copy of a notification that arrived before the handshake was done.
type notification struct {
	method string
	params []byte
}

// ConnectChannel is Connect over a channel that is already open. The Conn owns the
// channel; if ConnectChannel fails, it has closed the channel. It returns a
// *ahp.VersionError if there is no common version, ErrNotResumed, or another error with
// the reason.
func ConnectChannel(ctx context.Context, ch jsonrpc.Channel, o Options) (*Conn, error) {
	if o.Versions == nil {
		o.Versions = ahp.Versions()
	}
	c := &Conn{opts: o, ch: ch, done: make(chan struct{})}
	po := jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle), Shortcut: c.shortcut, MaxValues: cmp.Or(o.MaxValues, DefaultMaxValues), Accept: o.OnStream, Typing: o.Typing}
	if o.OnStream != nil {
		po.Taken = ahp.MethodTaken
	}
	c.peer = jsonrpc.NewPeer(ch, po)
	go c.run()
	handshake := c.initialize
	if o.Resume != nil {
		handshake = c.reconnect
	}
	if err := handshake(ctx); err != nil {
		_ = c.peer.Close() // at once, without a closing handshake
		<-c.done
		return nil, err
	}
	return c, nil
}

// run reads until the connection ends.
func (c *Conn) run() {
	defer close(c.done)
	_ = c.peer.Run(context.Background()) // Err says why it ended
}

func (c *Conn) initialize(ctx context.Context) error {
	p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: c.opts.Versions, ClientID: c.opts.ClientID,
		InitialSubscriptions: c.opts.Subscriptions, Meta: c.opts.Meta}
	if c.opts.Info.Name != "" {
		p.ClientInfo = &c.opts.Info
	}
	var r ahp.InitializeResult
	if err := c.peer.Call(ctx, ahp.MethodInitialize, p, &r); err != nil {
		return c.versionError(err)
	}
	if !slices.Contains(c.opts.Versions, r.ProtocolVersion) {
		return &ahp.VersionError{Offered: c.opts.Versions, Chosen: cmp.Or(r.ProtocolVersion, "none")}
	}
	c.result = r
	c.begin()
	return nil
}

// versionError returns the host's refusal as a *ahp.VersionError if it is one, else err.
func (c *Conn) versionError(err error) error {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != ahp.CodeUnsupportedProtocolVersion {
		return err
	}
	var data ahp.VersionErrorData
	_ = jsonspan.Unmarshal(refused.Data, &data) // without readable data, the supported versions are unknown
	return &ahp.VersionError{Offered: c.opts.Versions, Supported: data.SupportedVersions}
}

func (c *Conn) reconnect(ctx context.Context) error {
	p := ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: c.opts.ClientID,
		LastSeenServerSeq: c.opts.Resume.LastSeenServerSeq, Subscriptions: c.opts.Resume.Subscriptions}
	var r ahp.ReconnectResult
	var raw json.RawMessage
	err := c.peer.Call(ctx, ahp.MethodReconnect, p, &raw)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		return fmt.Errorf("%w: %w", ErrNotResumed, err)
	}
	if err == nil { // it has output: see ahp.DecodeAction, which checks its other actions
		err = json.Unmarshal(raw, &r)
	}
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return err
	}
	c.result, c.resumed = c.opts.Resume.Initial, &r
	c.begin()
	return nil
}

// begin calls OnReady, delivers the replayed and the held messages, and lets later ones
// through.
func (c *Conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.OnReady != nil {
		c.opts.OnReady(c)
	}
	if c.resumed != nil {
		for _, e := range c.resumed.Actions {
			raw, err := json.Marshal(e)
			if err != nil {
				continue // cannot be: it was decoded from JSON
			}
			c.deliver(ahp.MethodAction, raw)
		}
		c.resumed.Actions = nil // delivered; they may be many
	}
	for _, n := range c.held {
		c.deliver(n.method, n.params)
	}
	c.held = nil
	c.live.Store(true)
}

// shortcut delivers output that has the form of ahp.AppendData, which tether-host sends.
func (c *Conn) shortcut(_ context.Context, msg []byte) (done bool, err error) {
	if !c.live.Load() || !c.view.CutData(msg) {
		return false, nil
	}
	if c.opts.OnEnvelope != nil {
		c.opts.OnEnvelope(c.view)
	}
	return true, nil
}

// handle is called on the read goroutine.
func (c *Conn) handle(_ context.Context, r *jsonrpc.Request) {
	switch {
	case !r.IsNotification() && c.opts.OnRequest != nil && c.live.Load():
		c.opts.OnRequest(r)
	case !r.IsNotification():
		_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method)) // fails only with the connection
	case c.live.Load():
		c.deliver(r.Method, r.Params)
	default:
		c.hold(r.Method, r.Params)
	}
}

// hold keeps a notification until the handshake is done. While begin runs, it waits for
// begin, and then delivers the notification.
func (c *Conn) hold(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live.Load() {
		c.deliver(method, params)
		return
	}
	c.size += heldCost + len(method) + len(params)
	if c.size > maxHeld {
		_ = c.peer.Close()
		return
	}
	c.held = append(c.held, notification{method, slices.Clone(params)})
}

func (c *Conn) deliver(method string, params []byte) {
	if method != ahp.MethodAction {
		if c.opts.OnNotification != nil {
			c.opts.OnNotification(method, params)
		}
		return
	}
	if err := c.view.Decode(params); err != nil {
		if c.opts.OnInvalid != nil {
			c.opts.OnInvalid(err)
		}
		return
	}
	if c.opts.OnEnvelope != nil {
		c.opts.OnEnvelope(c.view)
	}
}

// Result returns the host's answer to initialize; on a resumed connection,
// Resume.Initial.
func (c *Conn) Result() ahp.InitializeResult { return c.result }

// Resumed returns the host's answer to reconnect, and false if the connection was
// initialized instead. After the replayed actions were passed to OnEnvelope, the answer
// is without them.
func (c *Conn) Resumed() (ahp.ReconnectResult, bool) {
	if c.resumed == nil {
		return ahp.ReconnectResult{}, false
	}
	return *c.resumed, true
}

// Version returns the negotiated protocol version.
func (c *Conn) Version() string { return c.result.ProtocolVersion }

// Peer returns the connection's peer, for messages that have no method here.
func (c *Conn) Peer() *jsonrpc.Peer { return c.peer }

// Done returns a channel that is closed when the connection has ended and no callback
// will be called any more. Nothing is sent on it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, nil while it has not.
func (c *Conn) Err() error { return c.peer.Err() }

// Close closes the connection with a closing handshake and waits until the last callback
// has returned. It may block for a few seconds if the host does not answer. It may be
// called more than once.
func (c *Conn) Close() {
	_ = c.peer.CloseReason(closeNormal, "") // the connection ends in any case
	<-c.done
}

// closeNormal is RFC 6455, 7.4.1.
const closeNormal = 1000
