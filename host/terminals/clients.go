package terminals

import (
	"maps"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/sessions"
)

// clientMemory is how long a disconnected client can come back with reconnect. VS Code's
// host keeps its records for the same time.
const clientMemory = 300 * time.Second

// Client is the host's record of one logical client, across its connections.
type Client struct {
	Title     string           // the client's name for its machine
	id        string           // never changes
	number    channel.Party    // its number, never changes
	Who       rights.Principal // who authenticated as this client; nobody else may use its id
	Version   string           // negotiated by its last initialize
	Resume    bool             // it has sent our marker: it knows offsets, acknowledgements, and terminals that outlive a connection
	Runs      bool             // it answers ahp.MethodRuns
	Ports     bool             // it takes requests for lent ports
	Link      *Link            // its newest connection; nil while it is away
	Left      time.Time
	Lends     bool // it has lent terminals, so its id is not free while it is away
	terminals int  // number of existing terminals that it has created
	Anew      bool // it has to initialize again, because the host's marker has changed

	Node    string      // the node that owns its terminals; "": this one, or none
	Epoch   int64       // of that ownership; 0: there has been no owner
	Owned   time.Time   // since when this node has owned them, if it does
	Absence *time.Timer // ends its part in sessions; nil while it is connected

	// exact is the first serverSeq from which lastSeenServerSeq identifies the client's
	// state. A smaller one may lie within a resynchronisation, or belong to a snapshot
	// which overtook envelopes of other channels.
	Exact int64
}

// count adds to the number of terminals of a principal. The host's own token has no name,
// and is not counted; there are at most as many names as tokens.
func (b *Book) count(p rights.Principal, more int) {
	if p.Name == "" {
		return
	}
	if b.perName[p.Name] += more; b.perName[p.Name] == 0 {
		delete(b.perName, p.Name)
	}
}

// Old reports whether the client speaks a version without lifecycle.
func (c *Client) Old() bool { return !ahp.HasLifecycle(c.Version) }

// NewClient returns a client with that id, which is nobody's yet.
func NewClient(id string, n channel.Party, p rights.Principal) *Client {
	return &Client{id: id, number: n, Who: p}
}

// AddClient makes the client with that id, instead of another one.
func (b *Book) AddClient(id string, p rights.Principal) *Client {
	b.forget()
	cl := NewClient(id, b.envelopes.NewParty(), p)
	b.Clients[id] = cl
	return cl
}

// forget drops the records of clients that are gone for good. It looks once in
// clientMemory. If there are too many records, it looks at once and drops those of absent
// clients, too.
func (b *Book) forget() {
	now, crowded := time.Now(), len(b.Clients) >= 2*b.opts.MaxConnections
	if now.Sub(b.forgot) < clientMemory && !crowded {
		return
	}
	b.forgot = now
	maps.DeleteFunc(b.Clients, func(_ string, cl *Client) bool {
		return cl.Link == nil && cl.terminals == 0 && (crowded || !cl.Lends && now.Sub(cl.Left) >= clientMemory)
	})
}

// ID implements sessions.Client.
func (c *Client) ID() string { return c.id }

// Party implements sessions.Client.
func (c *Client) Party() channel.Party { return c.number }

// Principal implements sessions.Client.
func (c *Client) Principal() *rights.Principal { return &c.Who }

// Conn implements sessions.Client.
func (c *Client) Conn() sessions.Conn {
	if c.Link == nil {
		return nil
	}
	return c.Link.Conn
}
