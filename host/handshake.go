package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/terminals"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

const (
	// ownerTail bounds the recorded text in a snapshot for the owner of a terminal who
	// negotiated resume: it wrote that text, and asks only which of its last commands
	// have arrived. Otherwise a link that breaks every few hundred KiB could never
	// continue.
	ownerTail = 32 << 10 // bytes
	// maxLender bounds the recorded text in a reply to a client that lends, and the
	// envelopes in its reply to reconnect: tether's link accepts messages of at most 2
	// MiB. Titles and the like are not counted.
	maxLender = 512 << 10 // bytes
	// maxReplay bounds the envelopes in one reply to reconnect; if there are more,
	// snapshots are shorter.
	maxReplay = 8 << 20 // bytes
	// closeMessageTimeout is how long a refused client may take to read the reason.
	closeMessageTimeout = 5 * time.Second
)

var (
	errHandshakeDone = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the connection is already initialized")
	errTakenID       = jsonrpc.Errorf(ahp.CodePermissionDenied, "this machine is registered at the host under another token; unpair, then pair again")
	errUnknownClient = jsonrpc.Errorf(ahp.CodeNotFound, "unknown clientId: initialize")
)

// initialize starts a logical client, or resets an existing one.
func (c *conn) initialize(r *jsonrpc.Request) error {
	var p ahp.InitializeParams
	if c.link.Client != nil {
		return errHandshakeDone
	}
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	version, err := ahp.Negotiate(p.ProtocolVersions)
	if err != nil {
		return c.refuseVersion(r, err)
	}
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	cl, err := h.clientLocked(p.ClientID, c.remote.principal)
	if err != nil {
		return err
	}
	if cl.Link != nil {
		h.handOverLocked(cl, c, ahp.OffersExtension(p.Meta))
	}
	h.attachLocked(c, cl)
	if p.ClientInfo != nil {
		cl.Title = p.ClientInfo.Title
	}
	cl.Anew = false
	marker, resume := ahp.FindClientMarker(p.Meta)
	cl.Version, cl.Resume, cl.Runs, cl.Ports = version, resume, marker.Runs, marker.Ports
	c.link.Out.Old = cl.Old()
	subs := c.subscribeAllLocked(p.InitialSubscriptions)
	h.absentLocked(cl)
	c.laterLocked(subs, func() { c.welcome(r, subs) })
	if h.opts.Audit != nil {
		h.work.Go(func() { h.audit(rights.AuditClient, c.remote, rights.AuditEvent{Client: p.ClientID}) })
	}
	return nil
}

// handOverLocked is called when a client initializes on c while an older connection of it
// is open. If the client sends our marker on both, its terminals wait until it announces
// them again. Without the marker, terminals cannot be announced again, so they move to c.
func (h *Host) handOverLocked(cl *terminals.Client, c *conn, resume bool) {
	for _, t := range h.servedLocked(cl.Link) {
		if cl.Resume && resume {
			h.terminals.Orphan(t)
		} else {
			t.Bind(&c.link)
		}
	}
}

// refuseVersion answers a client that has no common version with the host, and closes the
// connection.
func (c *conn) refuseVersion(r *jsonrpc.Request, err error) error {
	v, ok := errors.AsType[*ahp.VersionError](err)
	if !ok {
		return invalid(err)
	}
	_ = r.ReplyError(&jsonrpc.Error{Code: ahp.CodeUnsupportedProtocolVersion, Message: v.Error(), Data: v.Data()})
	c.h.work.Go(func() {
		ctx, cancel := context.WithTimeout(c.h.ctx, closeMessageTimeout)
		defer cancel()
		_ = c.peer.Flush(ctx)
		c.close(closePolicy, "no common protocol version")
	})
	return nil
}

// subscribeAllLocked subscribes a new connection to the existing channels among uris,
// once to each.
func (c *conn) subscribeAllLocked(uris []string) (subs []*subscription) {
	for _, uri := range uris {
		ch := c.visibleLocked(uri)
		if ch.ch != nil && c.subs[uri] == nil && len(c.subs) < c.h.opts.MaxSubscriptions {
			subs = append(subs, c.subscribeLocked(ch))
		}
	}
	return subs
}

// welcome answers initialize with the present state of the subscribed channels.
func (c *conn) welcome(r *jsonrpc.Request, subs []*subscription) {
	h, marker, mayLend := c.h, ahp.NewClientTerminals(c.h.opts.Grace.Milliseconds()), c.may(rights.Lend)
	marker.MayLend, marker.Screens, marker.States, marker.Shares = &mayLend, true, true, mayLend && !h.opts.NoShares
	marker.Runs, marker.Ports = mayLend, mayLend
	if mayLend {
		marker.ParkMs = h.opts.Park.Milliseconds()
	}
	h.mu.Lock()
	if h.opts.Nodes != nil {
		marker.HeartbeatMs = terminals.NodeHeartbeat.Milliseconds()
	}
	if h.terminals.Roster.On {
		marker.Audiences = &ahp.Audiences{Version: ahp.AudiencesVersion, Owner: h.terminals.Roster.People[c.remote.principal.Owner]}
	}
	result := ahp.InitializeResult{
		ProtocolVersion: c.link.Client.Version, ServerSeq: h.envelopes.Newest(), ServerInfo: &h.opts.Info, Meta: marker.Meta(),
	}
	snapshots := c.startAllLocked(subs)
	h.mu.Unlock()
	c.watches(subs...)
	_ = r.Reply(spliceSnapshots(result, snapshots)) // fails only with the connection
}

// spliceSnapshots encodes v, whose snapshots are empty, and inserts the given ones.
func spliceSnapshots(v any, snapshots []terminals.Snapshot) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // impossible: v was made here
	}
	head, tail, _ := bytes.Cut(raw, []byte(`"snapshots":[]`))
	out := append(head[:len(head):len(head)], `"snapshots":`...)
	return append(terminals.AppendArray(out, snapshots, (*terminals.Snapshot).Append), tail...)
}

// startAllLocked starts the deliveries and returns the states from which they start.
func (c *conn) startAllLocked(subs []*subscription) []terminals.Snapshot {
	if c.link.Out.Unsent() {
		// The snapshots overtake envelopes of other channels: their serverSeq does not
		// prove that those have arrived.
		c.link.Client.Exact = max(c.link.Client.Exact, c.h.envelopes.Newest()+1)
	}
	var snapshots []terminals.Snapshot
	for _, s := range subs {
		if !c.showsLocked(s) || s.ch.Ended() { // withdrawn since the client asked, or gone
			s.endLocked()
			continue
		}
		limit := terminals.MaxSnapshots / len(subs)
		if c.link.Client.Resume {
			limit = maxLender / len(subs)
		}
		if t := s.term; t != nil && t.OwnedBy(&c.link) && c.link.Client.Resume {
			limit = min(limit, ownerTail)
		}
		snapshots = append(snapshots, c.snapshotLocked(s.topic, limit))
		if c.subs[s.ch.URI()] == s {
			s.startLocked()
		}
	}
	return snapshots
}

// snapshotLocked returns the present state of a channel, with at most about limit bytes
// of recorded text.
func (c *conn) snapshotLocked(of topic, limit int) terminals.Snapshot {
	s := terminals.Snapshot{URI: of.ch.URI(), Seq: c.h.envelopes.Newest(), Version: c.link.Client.Version}
	if t := of.term; t != nil {
		s.State = *t.State
		since := c.link.From(t)
		switch s.Text = t.Out.View(limit, since); {
		case c.link.Client.Resume: // a machine knows its own text, and its link accepts only short messages
		case since > t.Out.Base(): // this client must not see earlier text
			s.State.Meta.Screen = t.Out.UnknownScreen()
		default:
			s.Shows = t.Out.Behind(t.Out.Oldest())
		}
	} else if of.session != nil {
		s.Talk = of.session.Snapshot(of.ch.URI(), c, limit)
	} else {
		s.Root = &ahp.RootState{Agents: c.h.sessions.Agents(), Terminals: c.link.Hold.Lister.Infos()}
	}
	return s
}

// reconnect continues a logical client on a new connection.
func (c *conn) reconnect(r *jsonrpc.Request) error {
	var p ahp.ReconnectParams
	if c.link.Client != nil {
		return errHandshakeDone
	}
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	cl := h.terminals.Clients[p.ClientID]
	if cl == nil || !cl.Who.Same(c.remote.principal) {
		return errUnknownClient
	}
	if h.terminals.OwnedAnew(cl, c.remote.principal); cl.Anew {
		return errUnknownClient
	}
	h.attachLocked(c, cl)
	for _, t := range h.terminals.Listed {
		if t.OwnedBy(&c.link) {
			t.Bind(&c.link)
			t.AckNow()
		}
	}
	subs := c.subscribeAllLocked(p.Subscriptions)
	h.absentLocked(cl)
	c.laterLocked(subs, func() { c.resume(r, &p, subs) })
	return nil
}

// resume answers reconnect with the messages that the client has missed or, if those are
// no longer known exactly, with the state.
func (c *conn) resume(r *jsonrpc.Request, p *ahp.ReconnectParams, subs []*subscription) {
	h := c.h
	h.mu.Lock()
	h.terminals.ListNow()
	subs = slices.DeleteFunc(subs, func(s *subscription) bool { return !c.showsLocked(s) }) // withdrawn since the client asked
	var reply func() json.RawMessage
	if missed, ok := c.missedLocked(p.LastSeenServerSeq, subs); ok {
		c.startAllLocked(subs)
		missing := c.missingLocked(p.Subscriptions)
		reply = func() json.RawMessage { return replay(missed, missing) }
	} else {
		snapshots := c.startAllLocked(subs)
		reply = func() json.RawMessage {
			return spliceSnapshots(ahp.ReconnectResult{Type: ahp.ReconnectSnapshot}, snapshots)
		}
	}
	h.mu.Unlock()
	c.watches(subs...)
	_ = r.Reply(reply()) // fails only with the connection
}

// missedLocked returns all envelopes of the channels after seq, in order. ok is false if
// some were dropped, if the client's state is uncertain, or if they are too many.
func (c *conn) missedLocked(seq int64, subs []*subscription) (missed []channel.Piece, ok bool) {
	if seq < c.link.Client.Exact || seq > c.h.envelopes.Newest() {
		return nil, false
	}
	most := maxReplay
	if c.link.Client.Resume {
		most = maxLender
	}
	for _, s := range subs {
		s.judgeLocked()
		more, bytes, ok := s.Missed(seq, most)
		if !ok {
			return nil, false
		}
		missed, most = append(missed, more...), most-bytes
		if s.isRoot() && s.Changed() > seq {
			missed = append(missed, channel.Piece{Seq: s.Changed(), Msg: s.listing()})
		}
	}
	slices.SortFunc(missed, func(a, b channel.Piece) int { return cmp.Compare(a.Seq, b.Seq) })
	return missed, true
}

// missingLocked returns the channels among uris to which c is not subscribed, because
// they do not exist any more.
func (c *conn) missingLocked(uris []string) []string {
	return slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return c.subs[uri] != nil })
}

// replay encodes an ahp.ReconnectResult from encoded envelopes.
func replay(missed []channel.Piece, missing []string) json.RawMessage {
	out := []byte(`{"type":"` + ahp.ReconnectReplay + `","actions":[`)
	for i, e := range missed {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, ahp.EnvelopeParams(e.Msg)...)
	}
	out = append(out, `],"missing":[`...)
	for i, uri := range missing {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonspan.AppendQuoteString(out, uri)
	}
	return append(out, `]}`...)
}
