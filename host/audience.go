package host

import (
	"encoding/json"
	"slices"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

// seesLocked reports whether c sees t.
func (c *conn) seesLocked(t *terminal) bool {
	if c.client != nil && t.creator == c.client {
		return true
	}
	_, ok := c.hold.Sees(t.subject, c.h.roster)
	return ok
}

// terminalLocked returns the terminal with that URI, or nil if c sees none: one that it
// may not see is answered as one that does not exist.
func (c *conn) terminalLocked(uri string) *terminal {
	if t := c.h.terminals[uri]; t != nil && c.seesLocked(t) {
		return t
	}
	return nil
}

// showsLocked reports whether c sees the channel of a subscription.
func (c *conn) showsLocked(s *subscription) bool {
	switch {
	case s.withdrawn:
		return false
	case s.term != nil:
		return c.seesLocked(s.term)
	}
	return s.session == nil || s.session.Sees(c, s.ch.URI())
}

// fromLocked returns the position from which on c sees the text of t.
func (c *conn) fromLocked(t *terminal) int64 {
	from, _ := c.hold.Sees(t.subject, c.h.roster)
	return from
}

// meant is an audience with its grantees resolved.
type meant struct {
	ahp.Audience
	grants  []rights.Grantee // the grantee of each grant; the zero value if the name means nobody
	refused []string         // the refused names
}

// understand resolves an audience's grantees. It may read files, so it must not be called
// with the host's mutex.
func (h *Host) understand(said ahp.Audience) meant {
	m := meant{Audience: said}
	if len(said.Grants) == 0 {
		return m
	}
	r := h.lookAtPeople() // a person may be new
	for _, g := range said.Grants {
		to, ok := h.grantee(r, g.To)
		if !ok {
			m.refused = append(m.refused, g.To)
		}
		m.grants = append(m.grants, to)
	}
	return m
}

// grantee resolves a name.
func (h *Host) grantee(r *rights.Roster, name string) (g rights.Grantee, ok bool) {
	if h.opts.People == nil {
		return rights.Grantee{Kind: rights.ToEveryone}, name == ahp.ToEveryone
	}
	if g, ok = rights.Resolve(h.opts.People, r, name); !ok {
		g = rights.Grantee{}
	}
	return g, ok
}

// resolveLocked returns the audience that is in force for t from now on. t is nil for a
// terminal that does not exist yet.
func (h *Host) resolveLocked(m meant, t *terminal) rights.Audience {
	a := rights.Audience{Declared: true, Said: m.Audience, Refused: m.refused}
	for i, g := range m.Grants {
		if m.grants[i] == (rights.Grantee{}) || h.roster.Ended(m.grants[i]) {
			continue
		}
		one := rights.Grant{To: m.grants[i], Name: g.To, From: g.From}
		if g.From > 0 {
			one.Pos = t.positionLocked(g)
			a.Pending = a.Pending || one.Pos == rights.NotYet
		}
		a.Grants = append(a.Grants, one)
	}
	return a
}

// positionLocked returns the position in the recorded text where a grant begins. If the
// grant's text has arrived already, the host does not know its position and shows only
// later text.
func (t *terminal) positionLocked(g ahp.Grant) int64 {
	if t == nil || g.From > t.out.Applied() {
		return rights.NotYet
	}
	for _, before := range t.audience.Grants {
		if before.Name == g.To && before.From == g.From {
			return before.Pos
		}
	}
	return t.out.End()
}

// passedLocked is called after output was recorded while a grant waits for its text.
// applied and end are the values from before that output.
func (t *terminal) passedLocked(applied, end int64) {
	t.audience.Pending = false
	passed := false
	for i := range t.audience.Grants {
		g := &t.audience.Grants[i]
		switch {
		case g.Pos != rights.NotYet:
		case g.From > t.out.Applied():
			t.audience.Pending = true
		default: // because of removed marks, the position may be a little later than necessary
			g.Pos = min(end+max(0, g.From-applied), t.out.End())
			passed = true
		}
	}
	if passed {
		t.host.sight++
		t.host.reindexLocked(t)
		t.moved.Raise()
	}
}

// setAudienceLocked puts another audience in force, and ends the views of those who are
// not in it any more.
func (h *Host) setAudienceLocked(t *terminal, a rights.Audience) {
	t.audience = a
	h.sight++
	h.reindexLocked(t)
	h.recheckLocked(t)
	t.watchersLocked()
	if h.opts.Nodes != nil {
		t.touch(inRows) // see recheckLocked for the others
	}
}

// recheckLocked ends the views of those who do not see t any more.
func (h *Host) recheckLocked(t *terminal) {
	for _, s := range slices.Collect(t.subs) {
		if !s.conn.seesLocked(t) {
			s.withdrawLocked()
		}
	}
	h.recheckPortsLocked(t)
	t.moved.Raise()
}

// withdrawLocked ends a subscription to a terminal that its subscriber does not see any
// more. It tells the subscriber that the terminal has ended, as when a machine withdraws
// it.
func (s *subscription) withdrawLocked() {
	c, t := s.conn, s.term
	s.withdrawn = true
	shown := s.Started()
	s.endLocked()
	if shown && !t.state.Lifecycle.Exited() {
		a := ahp.TerminalExited{}
		if c.client.old() {
			a.ExitCode = &noCode
		}
		seq := c.h.envelopes.Next()
		c.directLocked(channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, t.uri, seq, nil, "", ahp.AppendActionFor(nil, a, c.client.version))})
	}
}

// audienceOf returns the audience in the _meta of a createTerminal; told is false if
// there is none.
func audienceOf(p *ahp.CreateTerminalParams) (said ahp.Audience, told bool, err error) {
	said, told, err = ahp.FindAudience(p.Meta)
	if err != nil {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error())
	}
	return said, told, err
}

// setAudience handles a terminal owner's request to set the audience. Without a channel,
// the request only asks which names the host would refuse.
func (c *conn) setAudience(r *jsonrpc.Request) error {
	var p ahp.AudienceParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend terminals")
	}
	h := c.h
	m := h.understand(p.Audience)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	if p.Channel != "" && (t == nil || !t.ownedBy(c)) {
		return errUnknownChannel
	}
	if len(m.refused) > 0 {
		data, _ := json.Marshal(ahp.RefusedNames{Names: m.refused}) // names
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nobody here is called so", Data: data}
	}
	if t != nil {
		h.setAudienceLocked(t, h.resolveLocked(m, t))
	}
	return r.Reply(struct{}{})
}
