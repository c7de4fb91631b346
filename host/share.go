package host

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/share"
	"tether/host/terminals"
	"tether/jsonrpc"
)

// openShares takes up the links of the host before, and follows other nodes.
func (h *Host) openShares() {
	o := share.Options{Store: h.opts.Shares, Nodes: h.opts.Nodes != nil, Log: h.log}
	if h.opts.NoShares {
		o.Store = nil
	}
	h.shares = share.New(o)
	if o.Nodes {
		h.work.Go(func() { h.every(terminals.LookEvery, h.shares.Look) })
	}
}

// share serves ahp.MethodShare: the machine of a terminal lets everyone with a link watch
// it. The same id with the same secret is the same share: it follows a terminal that its
// machine announces again.
func (c *conn) share(r *jsonrpc.Request) error {
	var p ahp.ShareParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	if h.opts.NoShares || !c.may(rights.Lend) {
		return c.Denied("share terminals by links")
	}
	if now := time.Now(); !now.Before(p.ExpiresAt) || p.ExpiresAt.After(now.Add(ahp.MaxShareTime)) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "expiresAt must be in the future, by at most 30 days"}
	}
	if why, shown := h.page.NoPreviews(); p.Port != 0 && !shown {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}
	}
	if err := h.shares.Put(func() (share.Link, error) { return c.linkOf(&p) }); err != nil {
		return err
	}
	h.audit(rights.AuditShared, c.remote, rights.AuditEvent{Terminal: p.Channel, Detail: "until " + p.ExpiresAt.UTC().Format(time.RFC3339)})
	return r.Reply(ahp.ShareResult{URL: h.opts.ShareURL})
}

// linkOf returns the link that a machine asks for, or why it cannot have it.
func (c *conn) linkOf(p *ahp.ShareParams) (one share.Link, err error) {
	var secret [sha256.Size]byte
	_, _ = hex.Decode(secret[:], []byte(p.SecretHash)) // Validate has seen to it
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals.ByURI[p.Channel]
	if t == nil || !t.OwnedBy(&c.link) {
		return one, errUnknownChannel
	}
	owner := &t.Creator.Who
	return share.Link{ID: p.ID, Channel: p.Channel, Port: int(p.Port), Secret: secret, Machine: owner.Name, Owner: owner.Owner, Name: t.Creator.Machine() + "/" + t.Name,
		Created: time.Now().UTC(), Until: p.ExpiresAt, Once: p.Once}, nil
}

// endSharesLocked ends the links to a terminal that is disposed of, and was lent by p:
// the loan to which they were bound is over. Guests are told that their link has ended,
// and not that the terminal has exited: it may run on.
func (h *Host) endSharesLocked(uri string, p *rights.Principal) {
	if !h.shares.EndOf(uri, p) {
		return
	}
	for c := range h.conns {
		if c.remote.principal.Guest == uri {
			c.expelLocked(closePolicy, share.ErrEnded.Error())
		}
	}
}

// unshare serves ahp.MethodUnshare. A share that is gone already is no error.
func (c *conn) unshare(r *jsonrpc.Request) error {
	var p ahp.UnshareParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	c.h.shares.Look() // another node may have made it a moment ago
	if c.may(rights.Lend) {
		c.h.shares.EndBy(p.ID, &c.remote.principal)
	}
	return r.Reply(struct{}{})
}
