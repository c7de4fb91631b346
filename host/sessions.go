package host

import (
	"tether/agenttools"
	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/host/shells"
)

// This file gives sessions, and agents' shells in them, what they need of connections and
// terminals.

// openSessions makes the book of sessions, and the tools by which agents use shells.
func (h *Host) openSessions() {
	o := sessions.Options{Lock: &h.mu, Context: h.ctx, Go: h.work.Go, Order: h.envelopes, Shells: hostShells{h}, Audit: h.auditOf,
		Audiences: func() bool { return h.roster.On }}
	if h.opts.Sessions {
		o.Max = h.opts.MaxSessions
	}
	h.sessions, h.callers = sessions.New(o, sessions.AgentOptions{Lasting: h.names.Lasting, NameOf: h.shortName, Nodes: h.opts.Nodes,
		Sync: func() { h.agents.Sync() }})
	if h.opts.AgentShells && h.opts.Runner != nil {
		h.shellTools = &shells.Tools{Agents: h.callers, IDOf: idOf, URIOf: h.uriOf, Audit: h.auditOf,
			View: func(p rights.Principal) agenttools.Terminals { return catalogue{h, &p} }}
	}
}

// auditOf writes a record of what a principal did at no known place.
func (h *Host) auditOf(kind string, p rights.Principal, ev rights.AuditEvent) {
	h.audit(kind, remote{principal: p}, ev)
}

// Session returns the caller of the session with that URI, or sessions.ErrNoSession.
func (h *Host) Session(uri string) (*sessions.Caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions.Caller(uri)
}

// NewSession makes a session of the host's own, in which all machines may publish their
// tools. It fails without Options.Sessions, and when there are too many.
func (h *Host) NewSession(title string) (*sessions.Caller, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions.Add(title)
}

// hostShells implements sessions.Shells.
type hostShells struct{ h *Host }

// Shell implements sessions.Shells.
func (x hostShells) Shell(uri string) sessions.Shell {
	if t := x.h.terminals[uri]; t != nil && !t.remote() {
		return t
	}
	return nil
}

// Held implements sessions.Shells.
func (x hostShells) Held(session string) (all []sessions.Shell) {
	for _, t := range x.h.order {
		if c := t.state.Claim; c.Kind == ahp.ClaimSession && c.Session == session {
			all = append(all, t)
		}
	}
	return all
}

// Start implements sessions.Shells.
func (x hostShells) Start(creator sessions.Client, p ahp.CreateTerminalParams, started func(sessions.Shell, error)) error {
	return x.h.startServerLocked(creator.(*client), p, func(t *terminal, err error) { started(t, err) })
}

// Creator implements sessions.Shells.
func (x hostShells) Creator(session string, p rights.Principal) sessions.Client {
	return &client{id: session, principal: p, party: x.h.envelopes.NewParty()}
}

// Foreign implements sessions.Shells.
func (x hostShells) Foreign(uri string, by sessions.Client, person string) bool {
	t := x.h.terminals[uri]
	if t == nil || t.creator == by {
		return false
	}
	v := x.h.roster.Viewer(rights.Principal{Role: rights.RoleObserver, Owner: person})
	_, ok := v.Sees(t.subject, x.h.roster)
	return ok
}

// Taken implements sessions.Shells.
func (x hostShells) Taken(uri string) bool {
	return x.h.channelLocked(uri).ch != nil || x.h.starting[uri]
}

// uriOf returns the URI of the terminal with that id in the catalogue, "" if there is
// none.
func (h *Host) uriOf(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.byID[id]; t != nil && t.parked() == nil {
		return t.uri
	}
	return ""
}

// The methods of a terminal that sessions need. The first ones are called with the lock.

// URI implements sessions.Shell.
func (t *terminal) URI() string { return t.uri }

// Creator implements sessions.Shell.
func (t *terminal) Creator() sessions.Client { return t.creator }

// State implements sessions.Shell.
func (t *terminal) State() *ahp.TerminalState { return t.state }

// Claim implements sessions.Shell.
func (t *terminal) Claim(c ahp.Claim) { t.host.applyLocked(t, ahp.TerminalClaimed{Claim: c}, nil) }

// Next implements sessions.Shell.
func (t *terminal) Next() <-chan struct{} { return t.moved.Next() }

// Dispose implements sessions.Shell.
func (t *terminal) Dispose() { t.host.disposeLocked(t, nil) }

// Tail implements sessions.Shell.
func (t *terminal) Tail(max int) (text string, cut bool) {
	v := t.out.View(max, 0)
	return string(v.AppendText(nil)), v.From > 0
}

// Kill implements sessions.Shell.
func (t *terminal) Kill() {
	if t.proc() != nil {
		t.proc().Kill()
	}
}

// Input implements sessions.Shell.
func (t *terminal) Input(text string) error { return t.proc().Input(text) }

// Reports implements sessions.Shell.
func (t *terminal) Reports() bool {
	will, ok := t.proc().(shells.Reporter)
	return ok && will.Reports()
}

// ID implements sessions.Client.
func (c *client) ID() string { return c.id }

// Party implements sessions.Client.
func (c *client) Party() channel.Party { return c.party }

// Principal implements sessions.Client.
func (c *client) Principal() *rights.Principal { return &c.principal }

// Conn implements sessions.Client.
func (c *client) Conn() sessions.Conn {
	if c.conn == nil {
		return nil
	}
	return c.conn
}

// Client implements sessions.Conn.
func (c *conn) Client() sessions.Client { return c.client }

// Principal implements sessions.Conn.
func (c *conn) Principal() *rights.Principal { return &c.remote.principal }

// Closing implements sessions.Conn.
func (c *conn) Closing() bool { return c.closing }

// Owns implements sessions.Conn.
func (c *conn) Owns(person string) bool { return c.hold.Belongs(person) }

// Follows implements sessions.Conn.
func (c *conn) Follows(uri string) bool { return c.subs[uri] != nil }

// Echo implements sessions.Conn.
func (c *conn) Echo(uri string, a ahp.Action, origin *ahp.Origin) {
	if c.echoes.Allow() {
		c.directLocked(c.h.pieceLocked(uri, a, origin))
	}
}

// Audit implements sessions.Conn.
func (c *conn) Audit(what string) {
	c.h.audit(rights.AuditSession, c.remote, rights.AuditEvent{Client: c.client.id, Detail: what})
}

// absentLocked is called when a client's connection is gone, and when it has another one.
// Where the client does not take part again in time, its sessions go on without it.
func (h *Host) absentLocked(cl *client) {
	if h.closed {
		return
	}
	if cl.absence != nil {
		cl.absence.Stop()
	}
	h.afterLocked(&cl.absence, h.opts.Grace, func() {
		cl.absence = nil
		killed := h.sessions.Leave(cl)
		h.work.Go(func() { sessions.Kill(killed) }) // without the mutex
	})
}
