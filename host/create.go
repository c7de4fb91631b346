package host

import (
	"cmp"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

// defaultTitle is the title of a terminal that was created without a name.
const defaultTitle = "terminal"

var (
	errClosing  = jsonrpc.Errorf(jsonrpc.CodeInternal, "this connection is being closed")
	errExists   = jsonrpc.Errorf(ahp.CodeAlreadyExists, "a terminal with this URI exists")
	errNotOurs  = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "claim: a client-executed terminal must be claimed by the client that creates it")
	errNoRunner = jsonrpc.Errorf(ahp.CodePermissionDenied,
		`this host runs no terminals of its own: create them with executionTarget "client"`)
)

// createTerminal creates a terminal with its pty on the client's machine or on this host.
func (c *conn) createTerminal(r *jsonrpc.Request) error {
	var p ahp.CreateTerminalParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	p.Name = ahp.CleanTitle(p.Name)
	if p.Channel == ahp.RootURI {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "channel: %q is not a terminal", p.Channel)
	}
	if p.ExecutionTarget != ahp.TargetClient {
		if !c.may(rights.Shells) {
			return c.Denied("start shells of the host")
		}
		return c.createServer(r, p)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend terminals")
	}
	if !p.Claim.HeldBy(c.client.id) {
		return errNotOurs
	}
	if err := c.own(); err != nil {
		return err
	}
	if err := c.take(); err != nil {
		return err
	}
	said, told, err := audienceOf(&p)
	if err != nil {
		return err
	}
	if err := c.announce(&p, c.h.understand(said), told); err != nil {
		return err
	}
	c.h.audit(rights.AuditCreated, c.remote, rights.AuditEvent{Client: c.client.id, Terminal: p.Channel})
	return r.Reply(nil)
}

// announce creates a client-executed terminal, or returns an orphaned one to its owner.
// An owner that negotiated resume learns at once which position the host has. The
// audience is in force before any output; without one, only the machine's owner may
// watch. A parked terminal continues, under its new URI.
func (c *conn) announce(p *ahp.CreateTerminalParams, said meant, told bool) error {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	switch {
	case c.closing:
		return errClosing
	case t == nil && (h.starting[p.Channel] || h.sessions.Session(p.Channel) != nil):
		return errExists
	case t == nil:
		if err := h.admitTerminalLocked(c.client); err != nil {
			return err
		}
		state := stateOf(p)
		state.Meta.Former = h.formerLocked(c.client, state.Meta.Former)
		if before := h.beforeLocked(c.client, p.Channel, state.Meta.Former); before != nil && c.client.resume {
			a := h.resolveLocked(said, before)
			a.Declared = told
			h.continueLocked(before, c.client, served{c}, p.Channel, state, a)
			h.claimedLocked(c.client, p.Channel)
			t = before
			break
		}
		if h.byID[idOf(p.Channel)] != nil { // another terminal had this URI first
			return errExists
		}
		a := h.resolveLocked(said, nil)
		a.Declared = told
		t = h.addTerminalLocked(p.Channel, c.client, served{c}, state, a)
		h.auditPortsLocked(t, nil)
		h.claimedLocked(c.client, p.Channel)
		t.out.SetEnded(ahp.FindCommands(p.Meta))
		t.created = plausible(ahp.FindTime(p.Meta, ahp.CreatedKey), time.Time{})
	case !t.ownedBy(c) || !c.client.resume:
		return errExists
	default:
		a := h.resolveLocked(said, t)
		a.Declared = told
		h.setAudienceLocked(t, a)
		t.bindLocked(c)
		if t.out.Blank() { // another node owned it, and nobody at this node has read it
			t.out.SetEnded(ahp.FindCommands(p.Meta))
		}
		h.updateLocked(t, stateOf(p))
	}
	if h.setCheckoutLocked(t, ahp.FindCheckout(p.Meta)) {
		t.touch(inRows)
	}
	t.channel.Holds, t.keep = ahp.FindHolds(p.Meta), termsOf(ahp.FindPark(p.Meta))
	t.ackNowLocked()
	return nil
}

// beforeLocked returns the parked terminal that an owner announces again, under the same
// URI or with it as the former one.
func (h *Host) beforeLocked(c *client, uri, former string) *terminal {
	return cmp.Or(h.parkedByLocked(c, uri), h.parkedByLocked(c, former))
}

// stateOf returns the initial state of a requested terminal.
func stateOf(p *ahp.CreateTerminalParams) ahp.TerminalState {
	isPty := true
	s := ahp.TerminalState{Title: p.Name, Cwd: p.Cwd, Claim: p.Claim, IsPty: &isPty, ExecutionTarget: ahp.TargetServer,
		Meta: ahp.TerminalMeta{Former: ahp.FindFormer(p.Meta)}}
	s.Meta.Adopted, s.Meta.Picture = ahp.FindAdopted(p.Meta)
	s.Meta.Ports = ahp.FindPorts(p.Meta)
	s.Title = cmp.Or(s.Title, defaultTitle)
	if p.ExecutionTarget == ahp.TargetClient {
		s.ExecutionTarget = ahp.TargetClient
	} else {
		s.Cwd = ahp.FileURI(p.Cwd)
	}
	if p.Cols != nil {
		s.Cols = *p.Cols
	}
	if p.Rows != nil {
		s.Rows = *p.Rows
	}
	return s
}

// updateLocked updates a terminal to the state in its owner's new announcement.
func (h *Host) updateLocked(t *terminal, now ahp.TerminalState) {
	if now.Title != t.state.Title && now.Title != defaultTitle {
		h.applyLocked(t, ahp.TerminalTitleChanged{Title: now.Title}, nil)
	}
	if now.Cwd != t.state.Cwd && now.Cwd != "" {
		h.applyLocked(t, ahp.TerminalCwdChanged{Cwd: now.Cwd}, nil)
	}
	h.setPortsLocked(t, now.Meta.Ports)
	cols, rows := cmp.Or(now.Cols, t.state.Cols), cmp.Or(now.Rows, t.state.Rows)
	switch {
	case cols == t.state.Cols && rows == t.state.Rows:
	case cols > 0 && rows > 0:
		h.applyLocked(t, ahp.TerminalResized{Cols: cols, Rows: rows}, nil)
	default: // no action changes columns or rows alone
		t.state.Cols, t.state.Rows = cols, rows
	}
}

// disposeTerminal removes a terminal for its creator or for any administrator: otherwise
// a terminal whose claimant is gone would stay for ever. The owner is told with
// terminal/exited.
func (c *conn) disposeTerminal(r *jsonrpc.Request) error {
	var p ahp.DisposeTerminalParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	h.mu.Lock()
	t := c.terminalLocked(p.Channel)
	if c.may(rights.Dispose) {
		t = h.knownLocked(p.Channel) // administrators may know that it exists
	}
	if (t == nil || t.parked() != nil && t.mirror() == nil) && c.unparkLocked(p.Channel) {
		h.mu.Unlock()
		h.audit(rights.AuditDisposed, c.remote, rights.AuditEvent{Client: c.client.id, Terminal: p.Channel, Detail: "while its machine was away"})
		return r.Reply(nil)
	}
	switch {
	case t == nil:
		if c.may(rights.Lend) {
			h.endSharesLocked(p.Channel, &c.remote.principal) // a terminal of an earlier host, whose shares have not ended
		}
		h.mu.Unlock()
		return jsonrpc.Errorf(ahp.CodeNotFound, "no such terminal")
	case t.creator != c.client && !c.may(rights.Dispose):
		h.mu.Unlock()
		return c.Denied("dispose of others' terminals")
	case t.mirror() != nil:
		h.mu.Unlock()
		return jsonrpc.Errorf(ahp.CodePermissionDenied, "this terminal is at node %s: dispose of it there", t.mirror().node)
	}
	h.endSharesLocked(p.Channel, &t.creator.principal)
	h.disposeLocked(t, c)
	proc := t.proc()
	h.mu.Unlock()
	h.audit(rights.AuditDisposed, c.remote, rights.AuditEvent{Client: c.client.id, Terminal: p.Channel})
	h.log.Info().Str("terminal", p.Channel).Str("by", c.client.id).Msg("terminal disposed")
	if proc != nil {
		proc.Kill()
	}
	return r.Reply(nil)
}

// unparkLocked removes the parked terminal with that URI, and reports whether there was
// one that the client may dispose of.
func (c *conn) unparkLocked(uri string) bool {
	for _, t := range c.h.parked {
		if t.uri == uri && (t.lentBy(c.client) || c.may(rights.Dispose)) {
			c.h.unparkLocked(t, "it was disposed of")
			return true
		}
	}
	return false
}

// disposeLocked ends and removes t. Unless the owner itself has asked for that, it is
// told, even without a subscription, and even if t had exited before: the owner knows of
// the exit, but not of the removal.
func (h *Host) disposeLocked(t *terminal, by *conn) {
	owner, before := t.bound(), t.channel.Index()
	h.exitLocked(t)
	var exit channel.Piece // the last envelope, behind output that was held back
	entries, _ := t.channel.Entries(before)
	for _, e := range entries {
		exit = e.Piece
	}
	switch {
	case owner == nil || owner == by:
	case exit.Msg == nil: // it had exited before
		owner.directLocked(h.pieceLocked(t.uri, ahp.TerminalExited{ExitCode: t.state.Lifecycle.ExitCode}, nil))
	case owner.subs[t.uri] == nil:
		owner.directLocked(exit)
	}
	h.removeLocked(t)
}
