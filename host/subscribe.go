package host

import (
	"encoding/json"
	"fmt"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
	"tether/host/rights"
	"tether/host/terminals"
	"tether/jsonrpc"
)

var errUnknownChannel = jsonrpc.Errorf(ahp.CodeNotFound, "no such channel")

// subscribe begins to deliver a channel. The snapshot is taken when it can be sent, so
// that waiting requests cost no memory.
func (c *conn) subscribe(r *jsonrpc.Request) error {
	var p ahp.SubscribeParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	ch := c.visibleLocked(p.Channel)
	switch {
	case ch.ch == nil:
		return errUnknownChannel
	case c.subs[p.Channel] == nil && len(c.subs) >= c.h.opts.MaxSubscriptions:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d subscriptions on one connection", c.h.opts.MaxSubscriptions)
	}
	s := c.subscribeLocked(ch)
	c.laterLocked([]*subscription{s}, func() { c.subscribed(r, s) })
	return nil
}

func (c *conn) subscribed(r *jsonrpc.Request, s *subscription) {
	c.h.mu.Lock()
	snapshots := c.startAllLocked([]*subscription{s})
	c.h.mu.Unlock()
	if len(snapshots) == 0 {
		_ = r.ReplyError(errUnknownChannel) // the terminal is gone now; fails only with the connection
		return
	}
	c.watches(s)
	_ = r.Reply(json.RawMessage(append(snapshots[0].Append([]byte(`{"snapshot":`)), '}'))) // likewise
}

// watches writes an audit record that the client watches another owner's terminal.
func (c *conn) watches(all ...*subscription) {
	for _, s := range all {
		if s.term != nil && s.term.Creator != c.link.Client && c.looks.First(s.ch.URI()) {
			c.h.audit(rights.AuditSubscribed, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Terminal: s.ch.URI()})
		}
	}
}

// unsubscribe ends the delivery of a channel.
func (c *conn) unsubscribe(params []byte) {
	var p ahp.UnsubscribeParams
	if ahp.DecodeParams(params, &p) != nil {
		return
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if s := c.subs[p.Channel]; s != nil {
		s.endLocked()
		if s.session != nil {
			s.session.Unsubscribed(c.link.Client, p.Channel)
		}
	}
}

// catchUpLocked resynchronises a subscription whose position was dropped from the log.
// For a terminal it sends terminal/cleared, the number of missed bytes, the tail of the
// recorded text and the rest of the state, and delivery continues from there. AHP has no
// way to replace the state of a session, so its client has to come back for a snapshot.
// Only the writer calls it, when the socket can take more, so nothing is built for a
// client that does not read.
func (s *subscription) catchUpLocked() {
	t := s.term
	if t == nil {
		s.endLocked()
		s.conn.Close(closeStalled, "this client fell behind in a session: reconnect")
		return
	}
	r := resync{h: s.conn.h, t: t, uri: s.ch.URI()}
	if !t.OwnedBy(&s.conn.link) {
		r.text(s)
	}
	r.rest(s)
	if s.ch.Ended() && !t.State.Lifecycle.Exited() { // it is parked, or continues under another URI
		r.act(ahp.TerminalExited{ExitCode: &terminals.NoCode})
	}
	s.Restart(r.envelopes, t.Out.End())
	s.conn.link.Client.Exact = max(s.conn.link.Client.Exact, r.h.envelopes.Newest())
	s.conn.skipped++
}

const (
	// drawnLocked is how much text the screen of a terminal may process with the host's
	// mutex, when a subscription is resynchronised.
	drawnLocked = 16 << 10 // bytes
	// mostDraws bounds how often it processes more without the mutex before: meanwhile,
	// more text arrives.
	mostDraws = 4
)

// behindLocked returns the screen that catchUpLocked will need, nil if it takes little to
// draw.
func (s *subscription) behindLocked() *output.Behind {
	c, t := s.conn, s.term
	if t == nil || c.gone || t.OwnedBy(&c.link) {
		return nil
	}
	since := c.link.From(t)
	if since > t.Out.Base() {
		return nil
	}
	v := t.Out.View(c.resyncingLocked(), since)
	if b := t.Out.Behind(v.From); b.Left() > drawnLocked {
		return b
	}
	return nil
}

// drawLocked draws the screen that catchUpLocked will need. If that takes long, it
// releases the host's mutex meanwhile and returns true.
func (s *subscription) drawLocked() bool {
	if s.behindLocked() == nil {
		return false
	}
	h := s.conn.h
	h.mu.Unlock()
	s.term.Out.Draw(&h.mu, s.behindLocked, func() { h.terminals.Record(s.term) })
	h.mu.Lock()
	return true
}

// resync collects the envelopes of one resynchronisation.
type resync struct {
	h         *Host
	t         *terminals.Terminal
	uri       string // of the channel
	envelopes []channel.Piece
}

func (r *resync) act(a ahp.Action) {
	r.envelopes = append(r.envelopes, r.h.envelopes.Piece(r.uri, a, nil))
}

func (r *resync) data(quoted []byte) {
	seq := r.h.envelopes.Next()
	r.envelopes = append(r.envelopes, channel.Piece{Seq: seq, Msg: ahp.AppendData(nil, r.uri, seq, nil, quoted)})
}

// text replaces the subscriber's content with the tail of the terminal's.
func (r *resync) text(s *subscription) {
	most := s.conn.resyncingLocked()
	since, base := s.conn.link.From(r.t), r.t.Out.Base()
	v := r.t.Out.View(most, since)
	r.act(ahp.TerminalCleared{})
	line, skipped := "", max(v.From-max(s.At(), base, since), 0)
	if skipped > 0 {
		line = fmt.Sprintf("[tether-host: %d bytes skipped, this viewer fell behind]\r\n", skipped)
	}
	if line != "" || v.From > base {
		note := output.Note{Skipped: skipped, Screen: r.t.Out.UnknownScreen()}
		if since <= base { // otherwise the screen may show text that this subscriber may not see
			note.Screen = r.t.Out.Behind(v.From).At(v.From, most)
		}
		seq := r.h.envelopes.Next()
		r.envelopes = append(r.envelopes, channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, r.uri, seq, nil, "", note.Action(line))})
	}
	v.Walk(&output.Walk{Pos: v.From, Act: r.act, Text: r.data})
}

// rest sends the state except for the content. Actions that the subscriber has seen
// already have no effect.
func (r *resync) rest(s *subscription) {
	st := r.t.State
	r.act(ahp.TerminalTitleChanged{Title: st.Title})
	if st.Cwd != "" {
		r.act(ahp.TerminalCwdChanged{Cwd: st.Cwd})
	}
	if st.Cols > 0 && st.Rows > 0 {
		r.act(ahp.TerminalResized{Cols: st.Cols, Rows: st.Rows})
	}
	if st.SupportsCommandDetection {
		r.act(ahp.TerminalCommandDetectionAvailable{})
	}
	if !r.t.Remote() {
		r.act(ahp.TerminalClaimed{Claim: st.Claim})
	}
	if st.Lifecycle.Exited() {
		code := st.Lifecycle.ExitCode
		if code == nil && s.conn.link.Client.Old() {
			code = &terminals.NoCode
		}
		r.act(ahp.TerminalExited{ExitCode: code})
	}
}
