package host

import (
	"tether/ahp"
	"tether/host/rights"
	"tether/jsonrpc"
)

var (
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
	if !p.Claim.HeldBy(c.link.Client.ID()) {
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
	if err := c.h.terminals.Announce(&c.link, &p, c.h.terminals.Understand(said), told); err != nil {
		return err
	}
	c.h.audit(rights.AuditCreated, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Terminal: p.Channel})
	return r.Reply(nil)
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
		t = h.terminals.Known(p.Channel) // administrators may know that it exists
	}
	if (t == nil || t.Parked() != nil && t.Mirror() == nil) && c.unparkLocked(p.Channel) {
		h.mu.Unlock()
		h.audit(rights.AuditDisposed, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Terminal: p.Channel, Detail: "while its machine was away"})
		return r.Reply(nil)
	}
	switch {
	case t == nil:
		if c.may(rights.Lend) {
			h.endSharesLocked(p.Channel, &c.remote.principal) // a terminal of an earlier host, whose shares have not ended
		}
		h.mu.Unlock()
		return jsonrpc.Errorf(ahp.CodeNotFound, "no such terminal")
	case t.Creator != c.link.Client && !c.may(rights.Dispose):
		h.mu.Unlock()
		return c.Denied("dispose of others' terminals")
	case t.Mirror() != nil:
		h.mu.Unlock()
		return jsonrpc.Errorf(ahp.CodePermissionDenied, "this terminal is at node %s: dispose of it there", t.Mirror().Node)
	}
	h.endSharesLocked(p.Channel, &t.Creator.Who)
	h.terminals.Dispose(t, &c.link)
	proc := t.Proc()
	h.mu.Unlock()
	h.audit(rights.AuditDisposed, c.remote, rights.AuditEvent{Client: c.link.Client.ID(), Terminal: p.Channel})
	h.log.Info().Str("terminal", p.Channel).Str("by", c.link.Client.ID()).Msg("terminal disposed")
	if proc != nil {
		proc.Kill()
	}
	return r.Reply(nil)
}

// Unpark removes the parked terminal with that URI, and reports whether there was
// one that the client may dispose of.
func (c *conn) unparkLocked(uri string) bool {
	for _, t := range c.h.terminals.Parked {
		if t.URI == uri && (t.LentBy(c.link.Client) || c.may(rights.Dispose)) {
			c.h.terminals.Unpark(t, "it was disposed of")
			return true
		}
	}
	return false
}
