package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tether/ahp"
	"tether/internal/retry"
	"tether/jsonrpc"
)

const (
	connectTimeout = 20 * time.Second // dialling and the handshake together
	callTimeout    = 30 * time.Second // for a subscribe; hosts may take long to make a snapshot
	unlistedQuiet  = time.Second      // how long a terminal that is not listed any more must be quiet to count as gone

	firstRetry   = 250 * time.Millisecond
	maxRetry     = 30 * time.Second
	healthyAfter = time.Minute // a connection that lasted this long resets the interval
)

var errNoState = errors.New("the host has no state for this channel")

// Run connects and follows until ctx ends, and returns ctx's error. It returns earlier,
// with ErrUnauthorized or a *ahp.VersionError, if trying again cannot help. It must be
// called only once.
func (o *Observer) Run(ctx context.Context) error {
	err := o.run(ctx)
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	close(o.ended)
	return err
}

func (o *Observer) run(ctx context.Context) error {
	var ceiling time.Duration // upper bound of the wait for the next attempt
	for {
		conn, err := o.connect(ctx)
		if err == nil {
			began := time.Now()
			err = o.serve(ctx, conn)
			conn.Close()
			if time.Since(began) >= healthyAfter {
				ceiling = 0
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.tell(Event{Kind: Down, Err: err})
		if _, ok := errors.AsType[*ahp.VersionError](err); ok || errors.Is(err, ErrUnauthorized) {
			return err
		}
		// Full jitter: after a host's restart, its observers do not all come back at the
		// same moment.
		ceiling = min(max(2*ceiling, firstRetry), maxRetry)
		if !retry.Wait(ctx, rand.N(ceiling)) {
			return ctx.Err()
		}
	}
}

func (o *Observer) tell(e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.link.push(e)
	o.enlist(&o.link)
}

// connect resumes the last connection, or starts a new one if there is none or the host
// refuses.
func (o *Observer) connect(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	opts := Options{ClientID: o.opts.ClientID, Info: o.opts.Info, OnReady: o.ready, OnEnvelope: o.envelope}
	if opts.Resume = o.resumption(); opts.Resume != nil {
		conn, err := o.opts.Connect(ctx, o.opts.Endpoint, opts)
		if err == nil || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnauthorized) {
			return conn, err
		}
		o.mu.Lock()
		o.initial = nil // if reconnect fails at a host, it might fail every time
		o.mu.Unlock()
		if !errors.Is(err, ErrNotResumed) {
			return nil, err
		}
		opts.Resume = nil
	}
	opts.Subscriptions = o.wanted()
	return o.opts.Connect(ctx, o.opts.Endpoint, opts)
}

// wanted returns the channels to which a new connection subscribes during the handshake.
// The others follow later.
func (o *Observer) wanted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	uris := []string{ahp.RootURI}
	for uri := range o.terminals {
		if len(uris) < ahp.MaxSubscriptions {
			uris = append(uris, uri)
		}
	}
	return uris
}

// resumption returns how to continue the last connection, or nil. Only synced channels
// can be continued.
func (o *Observer) resumption() *Resume {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.initial == nil {
		return nil
	}
	r := &Resume{Initial: *o.initial, LastSeenServerSeq: o.lastSeen}
	for _, c := range o.channelsLocked() {
		if c.synced && len(r.Subscriptions) < ahp.MaxSubscriptions {
			r.Subscriptions = append(r.Subscriptions, c.uri)
		} else {
			c.unsync()
		}
	}
	return r
}

func (o *Observer) channelsLocked() []*channel {
	out := []*channel{&o.root.channel}
	for _, t := range o.terminals {
		out = append(out, &t.channel)
	}
	return out
}

// ready handles the answer to the handshake. It is called before the first envelope.
func (o *Observer) ready(c *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conn, o.leaving = c, nil
	snapshots := c.result.Snapshots
	c.result.Snapshots = nil // not kept: they may be large
	result, initial := c.result, c.result
	o.link.push(Event{Kind: Up, Host: &result})
	o.enlist(&o.link)
	resumed, ok := c.Resumed()
	if ok && resumed.Type == ahp.ReconnectReplay {
		for _, uri := range resumed.Missing {
			if ch := o.channelLocked(uri); ch != nil {
				ch.unsync() // serve subscribes again, and learns whether it is gone
			}
		}
		return
	}
	if ok {
		snapshots, c.resumed.Snapshots = resumed.Snapshots, nil
	} else {
		o.initial, o.lastSeen = &initial, result.ServerSeq
	}
	for _, ch := range o.channelsLocked() {
		ch.unsync()
	}
	for _, s := range snapshots {
		if ch := o.channelLocked(s.Resource); ch != nil {
			o.installLocked(ch, s)
		}
	}
	if ok && len(snapshots) > 0 {
		o.lastSeen = snapshots[0].FromSeq
	}
}

// channelLocked returns the channel with that URI, nil if it is not followed.
func (o *Observer) channelLocked(uri string) *channel {
	if uri == ahp.RootURI {
		return &o.root.channel
	}
	if t := o.terminals[uri]; t != nil {
		return &t.channel
	}
	return nil
}

func (o *Observer) installLocked(ch *channel, s ahp.Snapshot) {
	err := ch.install(s)
	if err == nil {
		return
	}
	if t := o.terminals[ch.uri]; t != nil {
		o.goneLocked(t, fmt.Errorf("read the snapshot: %w", err))
		return
	}
	ch.synced = true // keep the old root state: asking again would not help
}

// envelope is called by the read goroutine or, during the handshake, by the connecting
// goroutine.
func (o *Observer) envelope(v ahp.EnvelopeView) {
	if t, conn := o.reduce(v); t != nil {
		o.await(t, conn)
	}
}

// reduce applies an envelope. If the events of its terminal then exceed their bound, it
// returns the terminal, and the connection.
func (o *Observer) reduce(v ahp.EnvelopeView) (full *terminal, conn *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full = nil
	o.lastSeen = max(o.lastSeen, v.ServerSeq)
	ch := o.channelLocked(v.Channel)
	switch {
	case ch == nil:
	case ch.synced:
		o.view = v // a copy, so that v does not escape to the heap
		ch.envelope(&o.view)
	default:
		o.view = v
		if !ch.hold(&o.view) {
			_ = o.conn.Peer().Close() // connect again rather than lose something
		}
	}
	return o.full, o.conn
}

// await gives the consumer time to make room. While it waits, nothing is read from the
// host, so that back-pressure may reach the terminal's child. The wait is bounded: a
// consumer that does not pull must not stop the other terminals for good.
func (o *Observer) await(t *terminal, conn *Conn) {
	patience := time.NewTimer(o.opts.Patience)
	defer patience.Stop()
	for o.overfull(t) {
		select {
		case <-o.room:
		case <-conn.Peer().Done():
			return // the events exceed their bound by one message, until the next message
		case <-patience.C:
			o.mu.Lock()
			defer o.mu.Unlock()
			if t.overfull() {
				t.needResync()
			}
			return
		}
	}
}

func (o *Observer) overfull(t *terminal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.overfull()
}

// serve subscribes and unsubscribes as needed, and pings, until the connection or ctx
// ends.
func (o *Observer) serve(ctx context.Context, conn *Conn) error {
	heartbeat := time.NewTicker(o.opts.Heartbeat)
	defer heartbeat.Stop()
	for {
		if err := o.settle(ctx, conn); err != nil {
			return err
		}
		select {
		case <-o.change:
		case <-o.overdue():
		case <-heartbeat.C:
			if err := call(ctx, o.opts.Heartbeat, conn.Ping); err != nil {
				return fmt.Errorf("the host does not answer: %w", err)
			}
		case <-conn.Done():
			return fmt.Errorf("connection lost: %w", conn.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func call(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// settle makes all pending subscriptions and unsubscriptions, one at a time.
func (o *Observer) settle(ctx context.Context, conn *Conn) error {
	for {
		leave, join := o.todo()
		switch {
		case leave != "":
			if err := conn.Unsubscribe(ctx, leave); err != nil {
				return err
			}
		case join != nil:
			if err := o.subscribe(ctx, conn, join); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// todo returns a channel to unsubscribe from or, if there is none, one to subscribe to.
// It also drops terminals that are overdue.
func (o *Observer) todo() (leave string, join *channel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for _, t := range o.terminals {
		if t.overdue(now) {
			o.goneLocked(t, nil)
		}
	}
	if n := len(o.leaving); n > 0 {
		leave = o.leaving[n-1]
		o.leaving = o.leaving[:n-1]
		return leave, nil
	}
	for _, ch := range o.channelsLocked() {
		if !ch.synced {
			return "", ch
		}
	}
	return "", nil
}

// subscribe asks for a channel. A refusal by the host is no error of the connection.
func (o *Observer) subscribe(ctx context.Context, conn *Conn, ch *channel) error {
	var r ahp.SubscribeResult
	err := call(ctx, callTimeout, func(ctx context.Context) (err error) {
		r, err = conn.Subscribe(ctx, ch.uri)
		return err
	})
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if err != nil && !ok {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.channelLocked(ch.uri) != ch: // not followed any more
		o.leaving = append(o.leaving, ch.uri)
	case ok && ahp.IsGone(int64(refused.Code)):
		o.refusedLocked(ch, nil)
	case ok:
		o.refusedLocked(ch, err)
	case r.Snapshot == nil:
		o.refusedLocked(ch, errNoState)
	default:
		o.installLocked(ch, *r.Snapshot)
	}
	return nil
}

func (o *Observer) refusedLocked(ch *channel, reason error) {
	if t := o.terminals[ch.uri]; t != nil {
		o.goneLocked(t, reason)
		return
	}
	ch.synced = true // a host may have no root state
}

// overdue returns a channel that fires when the first unlisted terminal may be overdue,
// or nil if there is no unlisted terminal.
func (o *Observer) overdue() <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first time.Time
	for _, t := range o.terminals {
		if !t.unlisted.IsZero() && (first.IsZero() || t.unlisted.Before(first)) {
			first = t.unlisted
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first.Add(unlistedQuiet)))
}
