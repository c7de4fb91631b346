package host

import (
	"encoding/json"
	"fmt"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
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
	_ = r.Reply(json.RawMessage(append(snapshots[0].append([]byte(`{"snapshot":`)), '}'))) // likewise
}

// watches writes an audit record that the client watches another owner's terminal.
func (c *conn) watches(all ...*subscription) {
	for _, s := range all {
		if s.term != nil && s.term.creator != c.client && c.looks.first(s.ch.URI()) {
			c.h.audit(rights.AuditSubscribed, c.remote, rights.AuditEvent{Client: c.client.id, Terminal: s.ch.URI()})
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
		if of := s.session; of != nil && s.ch == of.channel {
			of.leaveLocked(c.client, nil) // a client without a subscription is not a member of the session
		}
	}
}

// catchUpLocked resynchronises a subscription whose position was dropped from the log.
// For a terminal it sends terminal/cleared, the number of missed bytes, the tail of the
// recorded text and the rest of the state, and delivery continues from there. For a
// session, it reports that entries were lost. Only the writer calls it, when the
// socket can take more, so nothing is built for a client that does not read.
func (s *subscription) catchUpLocked() {
	t := s.term
	if t == nil {
		s.lostLocked()
		return
	}
	r := resync{h: s.conn.h, t: t, uri: s.ch.URI()}
	r.act, r.data = r.add, r.addText
	if !t.ownedBy(s.conn) {
		r.text(s)
	}
	r.rest(s)
	if s.ch.Ended() && !t.state.Lifecycle.Exited() { // it is parked, or continues under another URI
		r.act(ahp.TerminalExited{ExitCode: &noCode})
	}
	s.Restart(r.envelopes, t.content.end)
	s.conn.client.exact = max(s.conn.client.exact, r.h.envelopes.Newest())
	s.conn.skipped++
}

// pieces sends recorded text on as messages.
type pieces struct {
	pos   int64            // position of the next text
	sizes []mark           // later changes of the terminal's size
	act   func(ahp.Action) // adds an action
	data  func([]byte)     // adds text, which is quoted; pos is behind it
}

// run adds text, with the changes of the terminal's size within it.
func (p *pieces) run(esc []byte, size int) {
	for len(esc) > 0 {
		at, n := len(esc), size
		for len(p.sizes) > 0 && p.sizes[0].pos < p.pos+int64(size) {
			next := p.sizes[0]
			if next.pos > p.pos {
				at, n = escapedPrefix(esc, int(next.pos-p.pos), false)
				break
			}
			p.resize()
		}
		quoted := make([]byte, 0, at+2)
		quoted = append(append(append(quoted, '"'), esc[:at]...), '"')
		p.pos += int64(n)
		p.data(quoted)
		esc, size = esc[at:], size-n
	}
}

// resize adds the next change of size.
func (p *pieces) resize() {
	p.act(ahp.TerminalResized{Cols: int64(p.sizes[0].resized[0]), Rows: int64(p.sizes[0].resized[1])})
	p.sizes = p.sizes[1:]
}

// began and finished are the actions of a command.
func (c *command) began() ahp.Action {
	return ahp.TerminalCommandExecuted{CommandID: c.id, CommandLine: c.line, Timestamp: c.timestamp, Meta: ahp.NewCommandMeta(c.verified)}
}

func (c *command) finished() ahp.Action {
	return ahp.TerminalCommandFinished{CommandID: c.id, ExitCode: c.exitCode, DurationMs: c.duration}
}

// resync collects the envelopes of one resynchronisation.
type resync struct {
	pieces
	h         *Host
	t         *terminal
	uri       string // of the channel
	envelopes []channel.Piece
}

func (r *resync) add(a ahp.Action) {
	r.envelopes = append(r.envelopes, r.h.pieceLocked(r.uri, a, nil))
}

func (r *resync) addText(quoted []byte) {
	seq := r.h.envelopes.Next()
	r.envelopes = append(r.envelopes, channel.Piece{Seq: seq, Msg: ahp.AppendData(nil, r.uri, seq, nil, quoted)})
}

// text replaces the subscriber's content with the tail of the terminal's.
func (r *resync) text(s *subscription) {
	most := s.conn.resyncingLocked()
	since := s.conn.fromLocked(r.t)
	parts, from := r.t.content.viewSince(most, since)
	r.act(ahp.TerminalCleared{})
	line, skipped := "", max(from-max(s.At(), r.t.content.base, since), 0)
	if skipped > 0 {
		line = fmt.Sprintf("[tether-host: %d bytes skipped, this viewer fell behind]\r\n", skipped)
	}
	if line != "" || from > r.t.content.base {
		seq := r.h.envelopes.Next()
		at := r.t.unknownScreenLocked()
		if since <= r.t.content.base { // otherwise the screen may show text that this subscriber may not see
			at = r.h.screenAtLocked(r.t, from, most)
		}
		msg := appendNote(r.uri, seq, line, noteMeta{Skipped: skipped, Screen: at})
		r.envelopes = append(r.envelopes, channel.Piece{Seq: seq, Msg: msg})
	}
	r.pos, r.sizes = from, r.t.resizesLocked(from)
	for i := range parts {
		r.part(&parts[i])
	}
}

func (r *resync) part(p *part) {
	if c := p.command; c != nil {
		r.act(c.began())
	}
	for _, run := range p.runs {
		r.run(run.esc, run.size)
	}
	if c := p.command; c != nil && c.complete {
		r.act(c.finished())
	}
}

// rest sends the state except for the content. Actions that the subscriber has seen
// already have no effect.
func (r *resync) rest(s *subscription) {
	st := r.t.state
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
	if !r.t.remote() {
		r.act(ahp.TerminalClaimed{Claim: st.Claim})
	}
	if st.Lifecycle.Exited() {
		code := st.Lifecycle.ExitCode
		if code == nil && s.conn.client.old() {
			code = &noCode
		}
		r.act(ahp.TerminalExited{ExitCode: code})
	}
}
