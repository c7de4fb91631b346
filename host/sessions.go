package host

import (
	"context"
	"slices"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/host/shells"
	"tether/host/terminals"
)

// This file gives sessions, and agents' shells in them, what they need of connections and
// terminals.

// openSessions makes the book of sessions, and the tools by which agents use shells.
func (h *Host) openSessions() {
	o := sessions.Options{Lock: &h.mu, Context: h.ctx, Go: h.work.Go, Order: h.envelopes, Shells: hostShells{h}, Audit: h.auditOf,
		Audiences: func() bool { return h.terminals.Roster.On }}
	if h.opts.Sessions {
		o.Max = h.opts.MaxSessions
	}
	h.sessions, h.callers = sessions.New(o, sessions.AgentOptions{Lasting: h.names.Lasting, NameOf: h.terminals.ShortName, Nodes: h.opts.Nodes,
		Sync: func() { h.agents.Sync() }})
	if h.opts.AgentShells && h.opts.Runner != nil {
		h.shellTools = &shells.Tools{Agents: h.callers, IDOf: terminals.IDOf, URIOf: h.uriOf, Audit: h.auditOf,
			View: func(p rights.Principal) agenttools.Terminals { return h.terminals.View(&p) }}
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
	if t := x.h.terminals.ByURI[uri]; t != nil && !t.Remote() {
		return shell{t, x.h}
	}
	return nil
}

// Held implements sessions.Shells.
func (x hostShells) Held(session string) (all []sessions.Shell) {
	for _, t := range x.h.terminals.Listed {
		if c := t.State.Claim; c.Kind == ahp.ClaimSession && c.Session == session {
			all = append(all, shell{t, x.h})
		}
	}
	return all
}

// Start implements sessions.Shells.
func (x hostShells) Start(creator sessions.Client, p ahp.CreateTerminalParams, started func(sessions.Shell, error)) error {
	return x.h.startServerLocked(creator.(*terminals.Client), p, func(t *terminals.Terminal, err error) { started(shell{t, x.h}, err) })
}

// Creator implements sessions.Shells.
func (x hostShells) Creator(session string, p rights.Principal) sessions.Client {
	return terminals.NewClient(session, x.h.envelopes.NewParty(), p)
}

// Foreign implements sessions.Shells.
func (x hostShells) Foreign(uri string, by sessions.Client, person string) bool {
	t := x.h.terminals.ByURI[uri]
	if t == nil || t.Creator == by {
		return false
	}
	v := x.h.terminals.Roster.Viewer(rights.Principal{Role: rights.RoleObserver, Owner: person})
	_, ok := v.Sees(t.Subject, x.h.terminals.Roster)
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
	if t := h.terminals.ByID[id]; t != nil && t.Parked() == nil {
		return t.URI
	}
	return ""
}

// shell implements sessions.Shell.
type shell struct {
	t *terminals.Terminal
	h *Host
}

// URI implements sessions.Shell.
func (s shell) URI() string { return s.t.URI }

// Creator implements sessions.Shell.
func (s shell) Creator() sessions.Client { return s.t.Creator }

// State implements sessions.Shell.
func (s shell) State() *ahp.TerminalState { return s.t.State }

// Claim implements sessions.Shell.
func (s shell) Claim(c ahp.Claim) { s.h.terminals.Apply(s.t, ahp.TerminalClaimed{Claim: c}, nil) }

// Next implements sessions.Shell.
func (s shell) Next() <-chan struct{} { return s.t.Moved.Next() }

// Dispose implements sessions.Shell.
func (s shell) Dispose() { s.h.terminals.Dispose(s.t, nil) }

// Tail implements sessions.Shell.
func (s shell) Tail(max int) (text string, cut bool) {
	v := s.t.Out.View(max, 0)
	return string(v.AppendText(nil)), v.From > 0
}

// Kill implements sessions.Shell.
func (s shell) Kill() {
	if s.t.Proc() != nil {
		s.t.Proc().Kill()
	}
}

// Input implements sessions.Shell.
func (s shell) Input(text string) error { return s.t.Proc().Input(text) }

// Reports implements sessions.Shell.
func (s shell) Reports() bool {
	will, ok := s.t.Proc().(shells.Reporter)
	return ok && will.Reports()
}

// Client implements sessions.Conn.
func (c *conn) Client() sessions.Client { return c.link.Client }

// Principal implements sessions.Conn.
func (c *conn) Principal() *rights.Principal { return &c.remote.principal }

// Closing implements sessions.Conn.
func (c *conn) Closing() bool { return c.closing }

// Owns implements sessions.Conn.
func (c *conn) Owns(person string) bool { return c.link.Hold.Belongs(person) }

// Follows implements sessions.Conn.
func (c *conn) Follows(uri string) bool { return c.subs[uri] != nil }

// Echo implements sessions.Conn.
func (c *conn) Echo(uri string, a ahp.Action, origin *ahp.Origin) {
	if c.echoes.Allow() {
		c.Tell(c.h.envelopes.Piece(uri, a, origin))
	}
}

// Audit implements sessions.Conn.
func (c *conn) Audit(what string) {
	c.h.audit(rights.AuditSession, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Detail: what})
}

// connOf returns the connection of a client, nil while it has none.
func connOf(cl *terminals.Client) *conn {
	if cl.Link == nil {
		return nil
	}
	return cl.Link.Conn.(*conn)
}

// absentLocked is called when a client's connection is gone, and when it has another one.
// Where the client does not take part again in time, its sessions go on without it.
func (h *Host) absentLocked(cl *terminals.Client) {
	if h.closed {
		return
	}
	if cl.Absence != nil {
		cl.Absence.Stop()
	}
	h.terminals.After(&cl.Absence, h.opts.Grace, func() {
		cl.Absence = nil
		killed := h.sessions.Leave(cl)
		h.work.Go(func() { sessions.Kill(killed) }) // without the mutex
	})
}

// ownTerminals are the terminals that an agent sees. It says which are of its session.
type ownTerminals struct {
	agenttools.Terminals
	h     *Host
	agent string // the name of its principal
}

// List implements agenttools.Terminals.
func (c ownTerminals) List() []agenttools.Info {
	all := c.Terminals.List()
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, t := range c.h.callers.Held(c.agent) {
		if i := slices.IndexFunc(all, func(info agenttools.Info) bool { return info.ID == terminals.IDOf(t.URI()) }); i >= 0 {
			all[i].Owner = agenttools.OwnerAgent
		}
	}
	return all
}

// Lasting is rights.Names.Lasting.
func (h *Host) Lasting(p rights.Principal) context.Context { return h.names.Lasting(p) }
