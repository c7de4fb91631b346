package sessions

import (
	"strconv"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/rights"
	"tether/jsonrpc"
)

// defaultTitle is a session's title until it gets another one.
const defaultTitle = "session"

func invalid(err error) error { return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error()) }

// Create handles a client's request to make a session under the client's URI. It takes
// the lock, as Remove and List do.
func (b *Book) Create(c Conn, r *jsonrpc.Request) error {
	var p ahp.CreateSessionParams
	switch err := ahp.DecodeParams(r.Params, &p); {
	case b.o.Max == 0:
		return jsonrpc.MethodNotFound(r.Method)
	case err != nil:
		return invalid(err)
	case !utf8.Valid(r.Params):
		return invalid(errNotText)
	case len(r.Params) > maxPublished:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the params have %d bytes, at most %d are allowed", len(r.Params), maxPublished)
	case !c.Principal().May(rights.Tools) && !c.Principal().May(rights.Sessions):
		return c.Denied("create sessions")
	case p.Provider != "" && p.Provider != Provider:
		return jsonrpc.Errorf(ahp.CodeProviderNotFound, "unknown provider %.80q; this host has %q", p.Provider, Provider)
	case p.ActiveClient != nil && p.ActiveClient.ClientID != c.Client().ID():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "activeClient: clientId must be the client that creates the session")
	}
	if err := b.create(c, &p); err != nil {
		return err
	}
	c.Audit("created " + p.Channel)
	return r.Reply(nil)
}

func (b *Book) create(c Conn, p *ahp.CreateSessionParams) error {
	b.o.Lock.Lock()
	defer b.o.Lock.Unlock()
	own := 0
	for _, s := range b.all() {
		if s.creator == c.Client() {
			own++
		}
	}
	switch {
	case c.Closing():
		return errClosing
	case b.byURI[p.Channel] != nil || b.o.Shells.Taken(p.Channel):
		return jsonrpc.Errorf(ahp.CodeSessionAlreadyExists, "a channel with this URI exists")
	case own >= maxClientSessions:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d sessions of one client", maxClientSessions)
	}
	s, err := b.add(p.Channel, c.Client(), c.Principal().Owner, ahp.SessionState{WorkingDirectories: p.WorkingDirectories})
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "%s", err.Error())
	}
	if p.ActiveClient != nil {
		s.join(c, *p.ActiveClient, nil)
	}
	return nil
}

// Remove handles a request to dispose of a session, of its creator or an administrator.
func (b *Book) Remove(c Conn, r *jsonrpc.Request) error {
	var p ahp.DisposeSessionParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	b.o.Lock.Lock()
	s := b.named(p.Channel)
	known := s != nil && s.sees(c)
	allowed := known && (s.creator == c.Client() || c.Principal().May(rights.Dispose))
	var killed []Shell
	if allowed {
		killed = s.dispose("the session was disposed of")
	}
	b.o.Lock.Unlock()
	switch {
	case !known:
		return jsonrpc.Errorf(ahp.CodeSessionNotFound, "no such session")
	case !allowed:
		return c.Denied("dispose of others' sessions")
	}
	Kill(killed)
	c.Audit("disposed of " + p.Channel)
	return r.Reply(nil)
}

// maxPage bounds the sessions in one answer.
const maxPage = 256

// List handles a request for a page of the sessions that the connection may know of, the
// newest first.
func (b *Book) List(c Conn, r *jsonrpc.Request) error {
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
	b.o.Lock.Lock()
	defer b.o.Lock.Unlock()
	var result ahp.ListSessionsResult
	seen := 0
	for _, s := range b.all() {
		if !s.sees(c) {
			continue
		}
		switch seen++; {
		case seen <= from:
		case len(result.Items) < limit:
			result.Items = append(result.Items, s.summary())
		default:
			result.NextCursor = strconv.Itoa(from + limit)
		}
	}
	return r.Reply(result)
}

// News is what one connection is told about the list of sessions.
type News struct {
	b    *Book
	c    Conn
	told map[*Session]bool     // sessions of which its client knows
	due  map[*Session]struct{} // those about which it is to be told
}

// NewNews returns the news of a connection, which nobody is told before Begin.
func (b *Book) NewNews(c Conn) *News { return &News{b: b, c: c} }

// Begin is called when the connection has identified its client. The client lists the
// sessions itself; it is told what changes.
func (n *News) Begin() {
	if n.b.o.Max == 0 {
		return
	}
	n.told, n.due = map[*Session]bool{}, map[*Session]struct{}{}
	for _, s := range n.b.byURI {
		if s.sees(n.c) {
			n.told[s] = true
		}
	}
	n.b.news[n] = struct{}{}
}

// End ends the news.
func (n *News) End() { delete(n.b.news, n) }

// Due returns about how many sessions there is news.
func (n *News) Due() int { return len(n.due) }

// changed lets the connections that may know of s be told: that it is there, how it is,
// or that it is gone.
func (b *Book) changed(s *Session) {
	for n := range b.news {
		if n.c.Closing() || !s.sees(n.c) || n.told[s] && !s.ended && !s.Open(n.c) {
			continue
		}
		if _, due := n.due[s]; !due {
			n.due[s] = struct{}{}
			n.c.Wake()
		}
	}
}

// Next returns the next message, or nil. A slow client is told the newest state alone.
func (n *News) Next() []byte {
	for s := range n.due {
		delete(n.due, s)
		told, method, params := n.told[s], ahp.MethodSessionSummaryChanged, any(nil)
		switch sum := s.summary(); {
		case s.ended && !told:
			continue
		case s.ended:
			delete(n.told, s)
			method, params = ahp.MethodSessionRemoved, ahp.SessionRemovedParams{Channel: ahp.RootURI, Session: s.uri}
		case !told:
			n.told[s] = true
			method, params = ahp.MethodSessionAdded, ahp.SessionAddedParams{Channel: ahp.RootURI, Summary: sum}
		default:
			params = ahp.SessionSummaryChangedParams{Channel: ahp.RootURI, Session: s.uri,
				Changes: ahp.PartialSessionSummary{Title: &sum.Title, Status: &sum.Status, ModifiedAt: &sum.ModifiedAt}}
		}
		msg, _ := jsonrpc.EncodeNotification(method, params) // values made here can be encoded
		return msg
	}
	return nil
}

// Agents are those that the host shows in its root state: one, for clients that list
// sessions by agent; none without sessions.
func (b *Book) Agents() []ahp.AgentInfo {
	if b.o.Max == 0 {
		return nil
	}
	return []ahp.AgentInfo{{Provider: Provider, DisplayName: "Agents", Description: "Agents that use this host's MCP server"}}
}
