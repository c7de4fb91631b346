package host

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/channel"
	"tether/host/link"
	"tether/host/ports"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/host/terminals"
	"tether/jsonrpc"
)

// WebSocket close codes that the host uses. The first two are from RFC 6455, section
// 7.4.1; the others are private.
const (
	closeGoingAway = 1001
	closePolicy    = 1008
	closeStalled   = 4001
	closeSilent    = 4002
)

// maxMessage bounds one message from the host. It only guards against mistakes, because
// the text in snapshots has bounds of its own.
const maxMessage = 128 << 20 // bytes

// maxReplies bounds the replies that wait for a client to read them, besides the reply to
// the current request. While more wait, the host reads nothing from the client.
const maxReplies = 16 << 10 // bytes

var errTooManyConnections = errors.New("host: too many connections")

// remote describes the other end of a connection, as far as it is known before the first
// message.
type remote struct {
	name      string           // for the log
	principal rights.Principal // the authenticated principal
	socket    *net.TCPConn     // its socket; nil if that is another kind
	receiver  *link.Receiver   // its share of the receive buffers; nil if it has none of its own
}

// conn is one connection. The peer's read goroutine handles requests. Its write goroutine
// pulls the messages to send.
//
//	opened → (initialize or reconnect) served → closing → gone
type conn struct {
	h      *Host         // set once
	peer   *jsonrpc.Peer // set once
	remote remote        // set once
	pulse  link.Pulse    // set once

	dispatched ahp.Dispatch // owned by the read goroutine

	// Guarded by the host's mutex. Only the read goroutine writes link.Client, so it may
	// read that without the mutex.
	link    terminals.Link
	closing bool
	ports   *ports.Machine           // nil before its first request
	subs    map[string]*subscription // by URI
	later   []*later                 // replies with snapshots
	greeted bool                     // the handshake has been answered
	gone    bool                     // the connection has ended

	answer, resync int    // its share of messageMemory.sending for the last reply and the last resynchronisation, in bytes
	asking         *later // the reply for whose room a goroutine waits, or has got it
	granted        int    // the room for asking, in bytes; 0 while the goroutine waits

	echoes *rate.Limiter // limits refusals and other echoes without effect

	news *sessions.News // about sessions

	looks      terminals.Looks // the terminals that it has watched before; has a lock of its own
	denials    *rate.Limiter   // limits audit records of requests that the role does not allow
	unanswered int             // number of refusals that were dropped: there were too many
	skipped    int             // number of times that a subscription fell behind

	idle chan struct{} // closed when nothing is left to send; nil if nobody waits for that
}

// serve runs one connection to its end.
func (h *Host) serve(ctx context.Context, ch jsonrpc.Channel, r remote) error {
	c := &conn{h: h, remote: r, subs: make(map[string]*subscription),
		echoes: rate.NewLimiter(echoRate, echoBurst), denials: rate.NewLimiter(echoRate, echoBurst)}
	c.link = terminals.Link{Conn: c, Who: &c.remote.principal, Out: channel.NewOutbox(c)}
	c.peer = jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: c, Shortcut: c.shortcut, Source: c.pull, MaxMessage: maxMessage, MaxValues: link.MaxValues,
		ControlBytes: maxReplies, Taken: ahp.MethodTaken})
	c.news = h.sessions.NewNews(c)
	c.pulse.Limit, c.pulse.Epoch, c.pulse.Sending = h.opts.SilenceTime, h.epoch, func() bool { return c.peer.Sending() > 0 }
	c.pulse.Gone = func() { c.close(closeSilent, "the client sent nothing for too long") }
	c.pulse.Channel, _ = ch.(link.Pinged)
	if r.receiver != nil {
		r.receiver.Late = func() { c.close(closePolicy, "a message took too long to arrive") }
		defer r.receiver.Release()
	}
	if err := h.open(c); err != nil {
		_ = c.peer.CloseReason(closePolicy, err.Error()) // the connection ends even if this fails
		return err
	}
	defer h.work.Done()
	if c.may(rights.Lend) {
		h.names.Known(r.principal) // for its parked terminals
	}
	late := time.AfterFunc(h.opts.HandshakeTime, c.expectHandshake)
	defer late.Stop()
	defer c.pulse.Watch(ctx)()
	live := r.principal.Life()
	defer context.AfterFunc(live, func() { c.expel(context.Cause(live).Error()) })()
	h.log.Info().Str("remote", r.name).Str("principal", r.principal.Name).Msg("connected")
	h.audit(rights.AuditConnected, r, rights.AuditEvent{})
	err := c.peer.Run(ctx)
	h.leave(c, err)
	return err
}

// full returns nil if the principal may open another connection now, else why not.
func (h *Host) full(p rights.Principal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fullLocked(p)
}

func (h *Host) fullLocked(p rights.Principal) error {
	switch {
	case h.closed || h.draining.Load():
		return errGoingAway
	case h.gate.Age() != admission.Checked:
		return admission.ErrOld
	case len(h.conns) >= h.opts.MaxConnections:
		return errTooManyConnections
	case h.crowdedLocked(p):
		return errTooManyOfName
	}
	return nil
}

func (h *Host) open(c *conn) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.fullLocked(c.remote.principal); err != nil {
		return err
	}
	h.conns[c] = struct{}{}
	c.link.Hold = h.terminals.Hold(h.terminals.Roster.Viewer(c.remote.principal))
	h.countLocked(c.remote.principal, 1)
	h.work.Add(1)
	return nil
}

// leave cleans up after a connection that has ended. The terminals that it served become
// orphans.
func (h *Host) leave(c *conn, cause error) {
	h.mu.Lock()
	c.closing = true
	c.doneLocked()
	c.news.End()
	delete(h.conns, c)
	h.countLocked(c.remote.principal, -1)
	for _, s := range c.subs {
		s.endLocked()
	}
	for _, s := range slices.Clone(c.link.Out.Ready()) {
		s.Of.(*subscription).endLocked() // subscriptions to terminals that are gone
	}
	h.terminals.LetGo(c.link.Hold)
	for _, t := range h.servedLocked(&c.link) {
		h.terminals.Orphan(t)
	}
	id := ""
	if cl := c.link.Client; cl != nil {
		id = cl.ID()
		if cl.Link == &c.link {
			cl.Link, cl.Left = nil, time.Now()
			h.absentLocked(cl)
		}
	}
	event := h.log.Info().Int("skipped", c.skipped).Int("unanswered", c.unanswered)
	h.mu.Unlock()
	event.Str("remote", c.remote.name).Str("client", id).AnErr("cause", cause).Msg("disconnected")
	h.audit(rights.AuditEnded, c.remote, rights.AuditEvent{Client: id})
}

// servedLocked returns the terminals that c serves.
func (h *Host) servedLocked(c *terminals.Link) []*terminals.Terminal {
	var served []*terminals.Terminal
	for _, t := range h.terminals.Listed {
		if t.Bound() == c {
			served = append(served, t)
		}
	}
	return served
}

func (c *conn) expectHandshake() {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.link.Client == nil {
		c.Close(closePolicy, "the client did not initialize in time")
	}
}

func (c *conn) close(code int, reason string) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.Close(code, reason)
}

// expel is close for a connection on which nothing may be sent any more.
func (c *conn) expel(reason string) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.expelLocked(closePolicy, reason)
}

func (c *conn) expelLocked(code int, reason string) {
	for _, s := range c.subs {
		s.withdrawn = true
		s.endLocked()
	}
	c.Close(code, reason)
}

// closeLocked ends the connection. Later messages of the client have no effect.
func (c *conn) Close(code int, reason string) {
	if c.closing {
		return
	}
	c.closing = true
	c.h.work.Go(func() { // closing may take seconds
		c.h.log.Info().Str("remote", c.remote.name).Str("reason", reason).Msg("closing")
		_ = c.peer.CloseReason(code, reason) // serve reports how it ended
	})
}

// over reports whether the connection is being closed.
func (c *conn) over() bool {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	return c.closing
}

// Wake implements channel.Receiver: it makes the write goroutine pull.
func (c *conn) Wake() { c.peer.Wake() }

// Sending implements channel.Receiver.
func (c *conn) Sending() time.Duration { return c.peer.Sending() }

// Direct implements channel.Receiver.
func (c *conn) Direct(limit int) (done bool) {
	return link.Emptied(c.remote.socket, limit) && c.peer.PullDirectly(context.Background(), limit)
}

// pull returns the next message for the write goroutine when no short reply waits. It
// returns nil and false if there is none now, nil and true if the caller should pull
// again. While somebody may be typing it never reports that more follows, so that the
// messages of a flood leave one by one and not in batches of 64 KiB.
func (c *conn) pull() (msg []byte, more bool) {
	c.h.mu.Lock()
	if c.gone { // PullDirectly of another goroutine asks late: nobody would give back what is taken now
		c.h.mu.Unlock()
		return nil, false
	}
	c.sentLocked()
	if reply := c.nextReplyLocked(); reply != nil {
		c.h.mu.Unlock()
		reply()
		return nil, true
	}
	defer c.h.mu.Unlock()
	if len(c.later) > 0 && !c.greeted {
		return nil, false
	}
	if msg = c.link.Out.Ack(); msg == nil {
		msg = c.link.NextNotice()
	}
	if msg == nil {
		msg = c.news.Next()
	}
	if msg == nil {
		msg = c.nextDataLocked()
	}
	more = c.link.More()+c.news.Due() > 0 || c.link.Out.More()
	if msg == nil && !more && len(c.later) == 0 {
		c.drainedLocked()
	}
	if msg != nil && more && c.h.envelopes.Typing() {
		more = false
	}
	return msg, more
}

// laterLocked queues a reply with the state of channels, which is built when it can be
// sent.
func (c *conn) laterLocked(subs []*subscription, reply func()) {
	c.later = append(c.later, &later{subs: subs, reply: reply, since: time.Now()})
	c.link.Out.Busy = true
	c.Wake()
}

// nextReplyLocked returns the oldest queued reply that can be sent now, or nil. A reply
// that waits for text or for room delays nothing else. Only the reply to the handshake
// goes before everything.
func (c *conn) nextReplyLocked() func() {
	for i, l := range c.later {
		if !c.fillsLocked(l) && c.roomLocked(l) {
			c.later, c.greeted = slices.Delete(c.later, i, i+1), true
			c.link.Out.Busy = len(c.later) > 0
			return l.reply
		}
		if !c.greeted {
			break
		}
	}
	return nil
}

// A method is a request that the host knows.
type method struct {
	serve func(c *conn, r *jsonrpc.Request) error // a returned error is sent as the reply
	early bool                                    // allowed before the handshake
}

// methods is never modified.
var methods = map[string]method{
	ahp.MethodPing:            {serve: (*conn).ping, early: true},
	ahp.MethodInitialize:      {serve: (*conn).initialize, early: true},
	ahp.MethodReconnect:       {serve: (*conn).reconnect, early: true},
	ahp.MethodSubscribe:       {serve: (*conn).subscribe},
	ahp.MethodListSessions:    {serve: func(c *conn, r *jsonrpc.Request) error { return c.h.sessions.List(c, r) }},
	ahp.MethodCreateSession:   {serve: func(c *conn, r *jsonrpc.Request) error { return c.h.sessions.Create(c, r) }},
	ahp.MethodDisposeSession:  {serve: func(c *conn, r *jsonrpc.Request) error { return c.h.sessions.Remove(c, r) }},
	ahp.MethodCreateTerminal:  {serve: (*conn).createTerminal},
	ahp.MethodDisposeTerminal: {serve: (*conn).disposeTerminal},
	ahp.MethodAudience:        {serve: (*conn).setAudience},
	ahp.MethodShare:           {serve: (*conn).share},
	ahp.MethodUnshare:         {serve: (*conn).unshare},
	ahp.MethodPark:            {serve: (*conn).park},
	ahp.MethodLentPorts:       {serve: (*conn).lentPorts},
	ahp.MethodParked:          {serve: (*conn).listParked},
}

// Handle implements jsonrpc.Handler.
func (c *conn) Handle(ctx context.Context, r *jsonrpc.Request) {
	done, err := c.h.messages.Decode(ctx, c.remote.principal.Name, link.DecodedSize(r.Params))
	if err != nil {
		return // the connection has ended
	}
	defer done()
	if r.IsNotification() {
		c.notified(r)
		return
	}
	m, ok := methods[r.Method]
	err = jsonrpc.MethodNotFound(r.Method)
	switch {
	case c.h.refuses(r):
		err = errGoingAway
	case c.over():
		err = terminals.ErrClosing // even if the client ignores the close: its token may have been revoked
	case ok && c.link.Client == nil && !m.early:
		err = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: initialize first", r.Method)
	case ok:
		err = m.serve(c, r)
	}
	if err != nil {
		_ = r.ReplyError(err) // fails only with the connection
	}
}

// notified handles a notification. Invalid ones are ignored, since notifications have no
// reply.
func (c *conn) notified(r *jsonrpc.Request) {
	if c.link.Client == nil || c.h.draining.Load() {
		return
	}
	switch r.Method {
	case ahp.MethodDispatchAction:
		c.dispatch(r.Params)
	case ahp.MethodUnsubscribe:
		c.unsubscribe(r.Params)
	case ahp.MethodState:
		c.inputSaid(r.Params)
	}
}

func (c *conn) ping(r *jsonrpc.Request) error { return r.Reply(nil) }

// Denied returns the error for a request that the role of the connection does not allow.
// It writes an audit record, at a limited rate.
func (c *conn) Denied(what string) error {
	c.h.mu.Lock()
	tell := c.denials.Allow()
	c.h.mu.Unlock()
	role := c.remote.principal.Role
	if tell {
		c.h.audit(rights.AuditDenied, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Detail: what})
	}
	return jsonrpc.Errorf(ahp.CodePermissionDenied, "a token for the role %s does not allow to %s", role, what)
}

// audit writes a record. It must not be called with the host's mutex.
func (h *Host) audit(kind string, r remote, ev rights.AuditEvent) {
	if h.opts.Audit == nil {
		return
	}
	ev.At, ev.Type, ev.Remote = time.Now().UTC(), kind, r.name
	ev.Name, ev.Role = r.principal.Name, r.principal.Role
	if ev.Role == "" && kind != rights.AuditRefused {
		ev.Role = rights.RoleAdmin
	}
	h.opts.Audit(ev)
}

func invalid(err error) error { return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error()) }
