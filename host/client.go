package host

import (
	"tether/host/rights"
	"tether/host/terminals"
)

// may reports whether the connection's principal has a right.
func (c *conn) may(r rights.Right) bool { return c.remote.principal.May(r) }

// clientLocked returns the client with that id, and makes it if it is unknown. A
// principal that may lend takes the id from one that may not: a machine's claims and
// terminals depend on its id, so an observer that uses the id while the machine is away
// must not keep the machine out.
func (h *Host) clientLocked(id string, p rights.Principal) (*terminals.Client, error) {
	cl := h.terminals.Clients[id]
	switch {
	case cl == nil:
		if h.ownedByAnother(id, p) {
			return nil, errTakenID
		}
	case cl.Who.Same(p):
		h.terminals.OwnedAnew(cl, p)
		return cl, nil
	case cl.Who.May(rights.Lend) || !p.May(rights.Lend):
		return nil, errTakenID
	case cl.Link != nil:
		cl.Link.Close(closePolicy, "this machine is registered at the host under another token; unpair, then pair again")
	}
	return h.terminals.AddClient(id, p), nil
}

// ownedByAnother reports whether a clientId belonged to another principal already before
// the host was started.
func (h *Host) ownedByAnother(id string, p rights.Principal) bool {
	if h.opts.Owners == nil {
		return false
	}
	owner, ok := h.opts.Owners.Owner(id)
	return ok && owner != p.Name
}

// own makes the client's id belong to its principal even after a restart of the host,
// from its first lent terminal on. The host's own token has no name to remember.
func (c *conn) own() error {
	h, p := c.h, c.remote.principal
	h.mu.Lock()
	known := c.link.Client.Lends
	h.mu.Unlock()
	if known || p.Name == "" {
		return nil
	}
	if err := c.keepOwner(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.link.Client.Lends = true
	return nil
}

// keepOwner makes the host remember the owner of the client's id, and returns an error if
// it is another.
func (c *conn) keepOwner() error {
	h, p := c.h, c.remote.principal
	if h.opts.Owners == nil {
		return nil
	}
	ours, err := h.opts.Owners.Own(c.link.Client.ID(), p.Name)
	if err != nil {
		h.log.Error().Err(err).Msg("who a clientId belongs to was not kept")
	}
	if !ours && err == nil {
		return errTakenID
	}
	return nil
}

// attachLocked makes c the newest connection of cl, and closes an older one with a
// reason.
func (h *Host) attachLocked(c *conn, cl *terminals.Client) {
	if old := cl.Link; old != nil {
		old.Close(terminals.CloseReplaced, "replaced by a newer connection of this client")
	}
	cl.Link, c.link.Client = &c.link, cl
	c.link.Out.Party, c.link.Out.Old = cl.Party(), cl.Old()
	c.news.Begin()
}
