package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultQueueBytes   = 1 << 20 // bytes, see Options.QueueBytes
	defaultControlBytes = 1 << 20 // bytes, see Options.ControlBytes
	defaultMaxMessage   = 1 << 20 // bytes, the default read limit of wsconn
	defaultMaxRequests  = 256     // see Options.MaxRequests
)

// A Handler serves the other side's requests and notifications.
type Handler interface {
	// Handle is called on the read goroutine for each request and notification, in order
	// of arrival; nothing is read before it returns. A request must be replied to once,
	// then or later. ctx ends with the peer. r and what it holds follow the rules of
	// [Request].
	Handle(ctx context.Context, r *Request)
}

// A HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, r *Request)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) { f(ctx, r) }

// Options are the settings of a [Peer]. Zero values mean the defaults.
type Options struct {
	// Handler serves requests and notifications. If nil, requests are answered with
	// -32601 and notifications ignored.
	Handler Handler

	// Shortcut, if not nil, gets each message on the read goroutine before the message is
	// split; this saves a tenth of the CPU in a flood. It returns false, without having
	// done anything, for a message whose form it does not know or that is not valid. An
	// error ends the connection. msg is valid until Shortcut returns.
	Shortcut func(ctx context.Context, msg []byte) (done bool, err error)

	// QueueBytes bounds the bulk queue: [Peer.SendRaw] blocks beyond it. In bytes, each
	// message counted with 64 more; default 1 MiB. Memory in use may be twice that,
	// because messages are stored in chunks.
	QueueBytes int

	// ControlBytes bounds the control queue likewise: [Peer.Call] and [Peer.Notify] block
	// beyond it. Replies are never delayed; instead nothing more is read while they
	// exceed it. Default 1 MiB.
	ControlBytes int

	// Source, if not nil, is asked for one whole encoded message whenever both queues are
	// empty. It is for data that is sent as fast as the other side takes it and must not
	// be queued before. It is called on the write goroutine or in [Peer.PullDirectly], by
	// one of them at a time; a call that PullDirectly makes may come after the end of
	// Run. It must not block, and must leave a message unchanged until it is called
	// again. After it returned no message it is asked again after [Peer.Wake], or at once
	// if it returned nil and true, as it does after a call of [Request.Reply]. Otherwise
	// more reports that another message follows.
	Source func() (msg []byte, more bool)

	// Taken is the method of the notification with which each side tells the other how
	// many bytes of [Peer.Stream] it has taken; the peer sends and handles it. "": there
	// is no stream, and a binary message ends the connection.
	Taken string

	// Accept, if not nil, is called on the read goroutine for each stream that the other
	// side begins, see [Peer.Stream]. It must not block, and the stream must be closed
	// later. If nil, a message of a stream that this side has not begun ends the
	// connection.
	Accept func(net.Conn)

	// Typing, if not nil, reports whether somebody types at a terminal whose output goes
	// through the peer. The stream then leaves slowly. It must not block.
	Typing func() bool

	// MaxMessage is the size in bytes beyond which a message is refused with
	// [ErrTooLarge] before it is sent: the most that the other side reads. Default 1 MiB.
	MaxMessage int

	// MaxValues bounds the JSON values in a received message, at any depth, because
	// decoding takes memory for each of them. A message with more ends the connection
	// with [ErrTooMany]. Default: no bound.
	MaxValues int

	// MaxRequests bounds the requests received but not replied to; more are refused with
	// -32000. Default 256.
	MaxRequests int
}

func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Handler == nil {
		o.Handler = HandlerFunc(func(_ context.Context, r *Request) {
			_ = r.ReplyError(MethodNotFound(r.Method)) // fails only with the peer
		})
	}
	def(&o.QueueBytes, defaultQueueBytes)
	def(&o.ControlBytes, defaultControlBytes)
	def(&o.MaxMessage, defaultMaxMessage)
	def(&o.MaxRequests, defaultMaxRequests)
	return o
}

// A Peer is one end of a JSON-RPC connection; it both calls and is called. Methods other
// than Run may be called by any goroutine at any time, also before Run; what they queue
// goes out when it runs.
//
//	new ──Run──▶ running ──channel ends, ctx done, Close──▶ closed
//	 └───────────────────────────Close────────────────────────┘
//
// Goroutines: Run's caller reads and calls the handler; writeLoop, started by Run and
// ended before it returns, calls Channel.Send, except when SendRaw or PullDirectly finds
// it idle and does so itself.
type Peer struct {
	// Set once by NewPeer.
	ch     Channel
	binary BinaryChannel // ch, nil if it is none
	opts   Options
	wake   chan struct{} // 1 slot: tells an idle writeLoop to look again; nobody closes it
	done   chan struct{} // closed by shut, after cause is set
	gone   chan struct{} // closed by shut after it has closed the channel

	beside beside // the stream; has a lock of its own

	// Owned by the read goroutine.
	note    Request           // reused for every notification
	scratch []byte            // a method's name on its way to methods
	methods map[string]string // names seen, so that they are not allocated again

	epoch time.Time    // set once
	since atomic.Int64 // nanoseconds from epoch to the beginning of the send under way; 0 without one

	mu       sync.Mutex // guards the fields below; never held while blocking
	cause    error      // why the peer ended; nil while it has not
	cancel   func()     // ends the context of the handler; nil before Run
	control  queue
	bulk     queue
	pulled   queue         // holds no messages: counts the cost of messages that are written without being queued
	writing  bool          // something is being handed to the channel,
	direct   bool          // by SendRaw or PullDirectly instead of writeLoop
	woken    bool          // writeLoop was woken while direct was set; endDirect wakes it again
	late     []byte        // a message from the source that PullDirectly could not send, or nil
	drained  chan struct{} // closed when all is sent, then nil; made by Flush
	calls    map[int64]chan response
	lastID   int64
	requests int // received and not yet replied to
}

// NewPeer returns a peer on ch, which it owns from now on. It starts nothing; call
// [Peer.Run].
func NewPeer(ch Channel, o Options) *Peer {
	o = o.withDefaults()
	binary, _ := ch.(BinaryChannel)
	p := &Peer{
		ch:      ch,
		binary:  binary,
		opts:    o,
		epoch:   time.Now(),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		gone:    make(chan struct{}),
		methods: map[string]string{},
		control: queue{limit: o.ControlBytes},
		bulk:    queue{limit: o.QueueBytes},
		calls:   map[int64]chan response{},
	}
	p.beside.room.L = &p.beside.mu
	return p
}

// Run serves the connection until the channel ends, ctx is done or the peer is closed,
// and returns why: the channel's error (for which errors.Is(err, io.EOF) if the other
// side closed cleanly), ctx's cause, or [ErrClosed]. It is never nil. When Run returns,
// the channel is closed, no goroutine of the peer is left, and all calls and senders have
// been released. Run is called once.
func (p *Peer) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.shut(context.Cause(ctx), nil) })
	defer stop()
	handling, cancel := context.WithCancel(ctx)
	defer cancel()
	if !p.start(cancel) {
		<-p.gone
		return p.Err()
	}
	var writer sync.WaitGroup
	writer.Go(func() { p.writeLoop(context.WithoutCancel(ctx)) })
	err := p.readLoop(handling)
	p.shut(err, nil)
	writer.Wait()
	<-p.gone

	// A failed write closes the channel. If the reader has learned the reason meanwhile
	// (the other side's close frame), that says more.
	if werr, ok := errors.AsType[*writeError](p.Err()); ok && errors.Is(err, net.ErrClosed) {
		return werr
	} else if ok {
		return err
	}
	return p.Err()
}

// start stores the function that cancels the handler's context, unless the peer has
// ended.
func (p *Peer) start(cancel func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return p.cause == nil
}

// A writeError marks the cause of an end as coming from writeLoop.
type writeError struct{ err error }

func (e *writeError) Error() string { return fmt.Sprintf("jsonrpc: send: %v", e.err) }
func (e *writeError) Unwrap() error { return e.err }

// shut ends the peer because of cause, unless it has ended; closeChannel, if not nil, is
// used in place of the channel's Close. Everything that waits sees done at once, even if
// closing the channel takes long.
func (p *Peer) shut(cause error, closeChannel func() error) {
	p.mu.Lock()
	if p.cause != nil {
		p.mu.Unlock()
		return
	}
	p.cause = cause
	p.control.drop()
	p.bulk.drop()
	cancel := p.cancel
	p.mu.Unlock()

	p.beside.fail(cause)
	close(p.done)
	if cancel != nil {
		cancel()
	}
	if closeChannel == nil {
		closeChannel = p.ch.Close
	}
	_ = closeChannel() // the peer ends either way; cause says why
	close(p.gone)
}

// Close ends the peer and its channel without delay. Queued messages are not sent; see
// [Peer.Flush]. Close may be called more than once.
func (p *Peer) Close() error {
	p.shut(ErrClosed, nil)
	return nil
}

// CloseReason is [Peer.Close] that tells the other side why, if the channel is a
// [ReasonCloser]; it may then block for a few seconds. Calls and senders are released at
// once.
func (p *Peer) CloseReason(code int, reason string) error {
	var closeChannel func() error
	if rc, ok := p.ch.(ReasonCloser); ok {
		closeChannel = func() error { return rc.CloseReason(code, reason) }
	}
	p.shut(ErrClosed, closeChannel)
	return nil
}

// Sending returns for how long the channel has had the message that is being sent; 0
// without one.
func (p *Peer) Sending() time.Duration {
	since := p.since.Load()
	if since == 0 {
		return 0
	}
	return max(1, time.Since(p.epoch)-time.Duration(since))
}

// sends marks the beginning of a send.
func (p *Peer) sends() { p.since.Store(max(1, int64(time.Since(p.epoch)))) }

// Done returns a channel that is closed when the peer has ended.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Err returns why the peer has ended, or nil while it has not.
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// closedLocked returns the error of operations on an ended peer, or nil.
func (p *Peer) closedLocked() error {
	if p.cause == nil || errors.Is(p.cause, ErrClosed) {
		return p.cause
	}
	return fmt.Errorf("%w: %w", ErrClosed, p.cause)
}

func (p *Peer) closed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closedLocked()
}
