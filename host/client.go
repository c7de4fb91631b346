package host

import (
	"maps"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
)

// clientMemory is how long a disconnected client can come back with reconnect. VS Code's
// host keeps its records for the same time.
const clientMemory = 300 * time.Second

// client is the host's record of one logical client, across its connections. Guarded by
// the host's mutex.
type client struct {
	machine   string           // the client's name for its machine
	id        string           // never changes
	party     channel.Party    // its number, never changes
	principal rights.Principal // who authenticated as this client; nobody else may use its id
	version   string           // negotiated by its last initialize
	resume    bool             // it has sent our marker: it knows offsets, acknowledgements, and terminals that outlive a connection
	runs      bool             // it answers ahp.MethodRuns
	ports     bool             // it takes requests for lent ports
	conn      *conn            // its newest connection; nil while it is away
	left      time.Time
	lends     bool // it has lent terminals, so its id is not free while it is away
	terminals int  // number of existing terminals that it has created
	anew      bool // it has to initialize again, because the host's marker has changed

	node    string      // the node that owns its terminals; "": this one, or none
	epoch   int64       // of that ownership; 0: there has been no owner
	owned   time.Time   // since when this node has owned them, if it does
	absence *time.Timer // ends its part in sessions; nil while it is connected

	// exact is the first serverSeq from which lastSeenServerSeq identifies the client's
	// state. A smaller one may lie within a resynchronisation, or belong to a snapshot
	// which overtook envelopes of other channels.
	exact int64
}

// may reports whether the connection's principal has a right.
func (c *conn) may(r rights.Right) bool { return c.remote.principal.May(r) }

// old reports whether the client speaks a version without lifecycle.
func (c *client) old() bool { return !ahp.HasLifecycle(c.version) }

// clientLocked returns the client with that id, and makes it if it is unknown. A
// principal that may lend takes the id from one that may not: a machine's claims and
// terminals depend on its id, so an observer that uses the id while the machine is away
// must not keep the machine out.
func (h *Host) clientLocked(id string, p rights.Principal) (*client, error) {
	cl := h.clients[id]
	switch {
	case cl == nil:
		if h.ownedByAnother(id, p) {
			return nil, errTakenID
		}
	case cl.principal.Same(p):
		h.ownedAnewLocked(cl, p)
		return cl, nil
	case cl.principal.May(rights.Lend) || !p.May(rights.Lend):
		return nil, errTakenID
	case cl.conn != nil:
		cl.conn.closeLocked(closePolicy, "this machine is registered at the host under another token; unpair, then pair again")
	}
	h.forgetLocked()
	cl = &client{id: id, party: h.envelopes.NewParty(), principal: p}
	h.clients[id] = cl
	return cl, nil
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
	known := c.client.lends
	h.mu.Unlock()
	if known || p.Name == "" {
		return nil
	}
	if err := c.keepOwner(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.client.lends = true
	return nil
}

// keepOwner makes the host remember the owner of the client's id, and returns an error if
// it is another.
func (c *conn) keepOwner() error {
	h, p := c.h, c.remote.principal
	if h.opts.Owners == nil {
		return nil
	}
	ours, err := h.opts.Owners.Own(c.client.id, p.Name)
	if err != nil {
		h.log.Error().Err(err).Msg("who a clientId belongs to was not kept")
	}
	if !ours && err == nil {
		return errTakenID
	}
	return nil
}

// forgetLocked drops the records of clients that are gone for good. It looks once in
// clientMemory. If there are too many records, it looks at once and drops those of absent
// clients, too.
func (h *Host) forgetLocked() {
	now, crowded := time.Now(), len(h.clients) >= 2*h.opts.MaxConnections
	if now.Sub(h.forgot) < clientMemory && !crowded {
		return
	}
	h.forgot = now
	maps.DeleteFunc(h.clients, func(_ string, cl *client) bool {
		return cl.conn == nil && cl.terminals == 0 && (crowded || !cl.lends && now.Sub(cl.left) >= clientMemory)
	})
}

// attachLocked makes c the newest connection of cl, and closes an older one with a
// reason.
func (h *Host) attachLocked(c *conn, cl *client) {
	if old := cl.conn; old != nil {
		old.closeLocked(closeReplaced, "replaced by a newer connection of this client")
	}
	cl.conn, c.client = c, cl
	c.out.Party, c.out.Old = cl.party, cl.old()
	c.news.Begin()
}
