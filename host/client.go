package host

import (
	"time"

	"tether/ahp"
)

// clientMemory is how long a client that left can come back by reconnect. VS Code's host keeps its records as long.
const clientMemory = 300 * time.Second

// client is what the host knows of one logical client, across its connections. Guarded by the host's mutex.
type client struct {
	id        string // never changes
	principal string // who authenticated as this client; nobody else may use its id
	version   string // negotiated by its last initialize
	resume    bool   // it showed our marker: offsets, acknowledgements, terminals that outlive a connection
	conn      *conn  // its newest connection; nil while it is away
	left      time.Time
	terminals int // how many exist that it created

	// exact is the first serverSeq from which lastSeenServerSeq tells what the client has. A smaller one may lie within a
	// resynchronisation, or be that of a snapshot which overtook envelopes of other channels.
	exact int64
}

// old reports whether the client speaks a version without lifecycle.
func (c *client) old() bool { return !ahp.HasLifecycle(c.version) }

// clientLocked is the client with that id, which is made if it is not known.
func (h *Host) clientLocked(id, principal string) (*client, error) {
	if cl := h.clients[id]; cl != nil {
		if cl.principal != principal {
			return nil, errTakenID
		}
		return cl, nil
	}
	h.forgetLocked()
	cl := &client{id: id, principal: principal}
	h.clients[id] = cl
	return cl, nil
}

// forgetLocked drops the records of clients that are gone for good. It looks once in clientMemory; when too many have
// gathered, at once, and then whoever is away loses its record.
func (h *Host) forgetLocked() {
	now, crowded := time.Now(), len(h.clients) >= 2*h.opts.MaxConnections
	if now.Sub(h.forgot) < clientMemory && !crowded {
		return
	}
	h.forgot = now
	for id, cl := range h.clients {
		if cl.conn == nil && cl.terminals == 0 && (crowded || now.Sub(cl.left) >= clientMemory) {
			delete(h.clients, id)
		}
	}
}

// attachLocked makes c the newest connection of cl. An older one is told and closed.
func (h *Host) attachLocked(c *conn, cl *client) {
	if old := cl.conn; old != nil {
		old.closeLocked(closeReplaced, "replaced by a newer connection of this client")
	}
	cl.conn, c.client = c, cl
}
