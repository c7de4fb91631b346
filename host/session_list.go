package host

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

// defaultSessionTitle is a session's title until it gets another one.
const defaultSessionTitle = "session"

// createSession makes a session under the client's URI.
func (c *conn) createSession(r *jsonrpc.Request) error {
	var p ahp.CreateSessionParams
	switch err := ahp.DecodeParams(r.Params, &p); {
	case !c.h.opts.Sessions:
		return jsonrpc.MethodNotFound(r.Method)
	case err != nil:
		return invalid(err)
	case !utf8.Valid(r.Params):
		return invalid(errNotText)
	case len(r.Params) > maxPublished:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the params have %d bytes, at most %d are allowed", len(r.Params), maxPublished)
	case !c.may(rights.Tools) && !c.may(rights.Sessions):
		return c.denied("create sessions")
	case p.Provider != "" && p.Provider != provider:
		return jsonrpc.Errorf(ahp.CodeProviderNotFound, "unknown provider %.80q; this host has %q", p.Provider, provider)
	case p.ActiveClient != nil && p.ActiveClient.ClientID != c.client.id:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "activeClient: clientId must be the client that creates the session")
	}
	c.h.mu.Lock()
	s, err := c.createSessionLocked(&p)
	if err == nil && p.ActiveClient != nil {
		s.joinLocked(c, *p.ActiveClient, nil)
	}
	c.h.mu.Unlock()
	if err != nil {
		return err
	}
	c.h.audit(rights.AuditSession, c.remote, rights.AuditEvent{Client: c.client.id, Detail: "created " + p.Channel})
	return r.Reply(nil)
}

func (c *conn) createSessionLocked(p *ahp.CreateSessionParams) (*Session, error) {
	own := 0
	for _, s := range c.h.sessionsLocked() {
		if s.creator == c.client {
			own++
		}
	}
	switch {
	case c.closing:
		return nil, errClosing
	case c.h.channelLocked(p.Channel).ch != nil || c.h.starting[p.Channel]:
		return nil, jsonrpc.Errorf(ahp.CodeSessionAlreadyExists, "a channel with this URI exists")
	case own >= maxClientSessions:
		return nil, jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d sessions of one client", maxClientSessions)
	}
	s, err := c.h.addSessionLocked(p.Channel, c.client, c.remote.principal.Owner, ahp.SessionState{WorkingDirectories: p.WorkingDirectories})
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeOverloaded, "%s", err.Error())
	}
	return s, nil
}

// disposeSession ends a session for who created it, and for every administrator.
func (c *conn) disposeSession(r *jsonrpc.Request) error {
	var p ahp.DisposeSessionParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	h.mu.Lock()
	s := h.sessions[p.Channel]
	switch {
	case s == nil || s.uri != p.Channel || !c.seesSessionLocked(s):
		h.mu.Unlock()
		return jsonrpc.Errorf(ahp.CodeSessionNotFound, "no such session")
	case s.creator != c.client && !c.may(rights.Dispose):
		h.mu.Unlock()
		return c.denied("dispose of others' sessions")
	}
	procs := s.disposeLocked("the session was disposed of")
	h.mu.Unlock()
	kill(procs)
	h.audit(rights.AuditSession, c.remote, rights.AuditEvent{Client: c.client.id, Detail: "disposed of " + p.Channel})
	return r.Reply(nil)
}

// maxPage bounds the sessions in one answer.
const maxPage = 256

// listSessions answers with a page of the sessions that the connection may know of, the
// newest first.
func (c *conn) listSessions(r *jsonrpc.Request) error {
	var p ahp.ListSessionsParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	from := 0
	if p.Cursor != "" {
		n, err := strconv.Atoi(p.Cursor)
		if err != nil || n < 0 {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cursor is not from this host")
		}
		from = n
	}
	if p.Limit < 0 {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "limit is %d, want 1 or more", p.Limit)
	}
	limit := maxPage
	if p.Limit > 0 {
		limit = int(min(p.Limit, maxPage))
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var result ahp.ListSessionsResult
	for _, s := range c.h.sessionsLocked() {
		switch {
		case !c.seesSessionLocked(s):
		case from > 0:
			from--
		case len(result.Items) == limit:
			if result.NextCursor == "" {
				offset, _ := strconv.Atoi(p.Cursor) // read above
				result.NextCursor = strconv.Itoa(offset + limit)
			}
		default:
			result.Items = append(result.Items, s.summaryLocked())
		}
	}
	return r.Reply(result)
}

// seesSessionLocked reports whether c may know of s. A machine sees, besides its own,
// those in which it may publish tools; Session.shows decides which parts of them.
func (c *conn) seesSessionLocked(s *Session) bool {
	return s.open(c) || c.may(rights.Tools) && (s.creator == nil || s.creator.principal.May(rights.Sessions)) && s.offered(&c.remote.principal)
}

// open reports whether c may see everything in s: also the chat, and messages between the
// session and others.
func (s *Session) open(c *conn) bool {
	if s.h.roster.On && !c.hold.Belongs(s.person) {
		return false
	}
	return c.may(rights.Sessions) || s.creator != nil && s.creator.principal.Same(c.remote.principal)
}

// offered reports whether a machine may publish its tools in s: while audiences are in
// force, only where both belong to one person.
func (s *Session) offered(machine *rights.Principal) bool {
	return !s.h.roster.On || machine.Owner == s.person
}

// lostLocked is called when the subscriber has not kept up: AHP has no way to replace the
// state of a session, so its client has to come back for a snapshot.
func (s *subscription) lostLocked() {
	s.endLocked()
	s.conn.closeLocked(closeStalled, "this client fell behind in a session: reconnect")
}

// seesChannelLocked reports whether c may subscribe to one of the channels of s.
func (c *conn) seesChannelLocked(s *Session, ch *channel.Channel) bool {
	return s.open(c) || ch == s.channel && c.seesSessionLocked(s)
}

// showsLocked is the state of one of the session's channels for c, of a chat with at most
// about limit bytes of turns that have ended: the newest.
func (s *Session) showsLocked(ch *channel.Channel, c *conn, limit int) json.Marshaler {
	if ch == s.chat {
		talk, from := s.talk, len(s.kept)
		for from > 0 && s.kept[from-1] <= limit {
			from--
			limit -= s.kept[from]
		}
		talk.Turns = talk.Turns[from:]
		return talk
	}
	state := s.state
	if s.open(c) {
		return state
	}
	state.ActiveClients, state.InputNeeded = nil, nil
	for _, a := range s.state.ActiveClients {
		if s.members[a.ClientID] == c.client {
			state.ActiveClients = append(state.ActiveClients, a)
		}
	}
	for _, r := range s.state.InputNeeded {
		if r.ClientID == c.client.id {
			state.InputNeeded = append(state.InputNeeded, r)
		}
	}
	return state
}

// sessionChangedLocked lets the connections that may know of s be told: that it is there,
// how it is, or that it is gone.
func (h *Host) sessionChangedLocked(s *Session) {
	for c := range h.conns {
		told := c.announced[s]
		if c.client == nil || c.closing || !c.seesSessionLocked(s) || told && !s.ended && !s.open(c) {
			continue
		}
		if _, due := c.dueSessions[s]; !due {
			c.dueSessions[s] = struct{}{}
			c.Wake()
		}
	}
}

// nextSessionLocked is this connection's next message about sessions, or nil. A slow
// client gets the newest.
func (c *conn) nextSessionLocked() []byte {
	for s := range c.dueSessions {
		delete(c.dueSessions, s)
		told := c.announced[s]
		switch {
		case s.ended && told:
			delete(c.announced, s)
			return notification(ahp.MethodSessionRemoved, ahp.SessionRemovedParams{Channel: ahp.RootURI, Session: s.uri})
		case s.ended:
		case !told:
			c.announced[s] = true
			return notification(ahp.MethodSessionAdded, ahp.SessionAddedParams{Channel: ahp.RootURI, Summary: s.summaryLocked()})
		default:
			sum := s.summaryLocked()
			return notification(ahp.MethodSessionSummaryChanged, ahp.SessionSummaryChangedParams{Channel: ahp.RootURI, Session: s.uri,
				Changes: ahp.PartialSessionSummary{Title: &sum.Title, Status: &sum.Status, ModifiedAt: &sum.ModifiedAt}})
		}
	}
	return nil
}

func notification(method string, params any) []byte {
	msg, _ := json.Marshal(struct { // values made here can be encoded
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	return msg
}

// knowSessionsLocked is called when c has identified its client: it lists the sessions
// itself, and is told changes.
func (c *conn) knowSessionsLocked() {
	if !c.h.opts.Sessions {
		return
	}
	c.announced, c.dueSessions = make(map[*Session]bool), make(map[*Session]struct{})
	for _, s := range c.h.sessionsLocked() {
		if c.seesSessionLocked(s) {
			c.announced[s] = true
		}
	}
}

// sessionsLocked are all sessions, the newest first.
func (h *Host) sessionsLocked() []*Session {
	all := make([]*Session, 0, len(h.sessions)/2)
	for uri, s := range h.sessions {
		if s.uri == uri {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Session) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.uri, b.uri))
	})
	return all
}
