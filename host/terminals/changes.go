package terminals

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/rights"
	"tether/internal/change"
	"tether/internal/retry"
	"tether/vocab"
)

// A host may be one of several nodes, which share their terminals (package cluster). The
// node to which a machine is connected owns the machine's terminals. Every other node has
// a mirror of each: always its entry in the catalogue, and its text only while somebody
// follows it there. Only the owner acknowledges output to the machine, which keeps
// everything that is not acknowledged.

// Bounds of the exchange between nodes.
const (
	// NodeLost is how long the terminals of a silent node are listed as away.
	NodeLost = 5 * time.Minute
	// NodeHeartbeat is the interval between heartbeats that machines are asked for: a
	// machine whose node is silent can go to another one.
	NodeHeartbeat = 5 * time.Second
	// FillTime bounds the wait for the text of another node's terminal. After that,
	// readers get the text that is here.
	FillTime = 2 * time.Second
	// wantTime is how long this node follows a terminal's text after the last reader
	// Left.
	wantTime = 30 * time.Second
	// maxNodeGone bounds the removed terminals that are remembered. A node that has
	// missed more gets the whole list.
	maxNodeGone = 4096
	// ChangesAtOnce bounds the entries in one answer.
	ChangesAtOnce = 500
	// listedEvery is the shortest time between two answers with changes to one node.
	listedEvery = 50 * time.Millisecond
)

// ErrNotOwner means that another node has become the terminal's owner, or that the
// terminal is gone.
var ErrNotOwner = errors.New("host: this node is not the terminal's owner")

// NodeEntry describes a terminal to the other nodes.
type NodeEntry struct {
	URI     string      `json:"uri"`
	Client  string      `json:"client"` // clientId of the machine
	Epoch   int64       `json:"epoch"`
	Machine string      `json:"machine,omitempty"` // the machine's own name
	Name    string      `json:"principal,omitempty"`
	Role    rights.Role `json:"role,omitempty"`
	Owner   string      `json:"owner,omitempty"`

	Announced string `json:"name"` // name with which the terminal was announced
	feedState
	Meta     ahp.TerminalMeta `json:"meta,omitzero"`
	Created  time.Time        `json:"created"`
	Away     bool             `json:"away,omitempty"`   // its machine is
	Parked   *NodeParked      `json:"parked,omitempty"` // it is parked
	Holds    bool             `json:"holds,omitempty"`
	Input    *ahp.StateParams `json:"input,omitempty"`   // the owner's last report, without the channel; nil: none
	Running  string           `json:"running,omitempty"` // the command line that runs, cut
	Printed  string           `json:"printed,omitempty"` // the URL that its program has printed
	Start    int64            `json:"start"`             // offsets of readers
	End      int64            `json:"end"`
	Commands int64            `json:"commands"` // finished ones
	Watching int              `json:"watching,omitempty"`
	Ports    bool             `json:"ports,omitempty"`   // its machine takes requests for lent ports
	Fetched  map[int64]int64  `json:"fetched,omitempty"` // how often each lent port was asked
	Audience ahp.Audience     `json:"audience,omitzero"`
	Told     bool             `json:"told,omitempty"`   // the machine has sent an audience
	Unsaid   bool             `json:"unsaid,omitempty"` // the machine has not answered yet whether it lends to a host that shows everything to everybody
	Over     []NodeGrantee    `json:"over,omitempty"`   // grantees whose grant an administrator has ended
}

// NodeParked describes a parked terminal to other nodes.
type NodeParked struct {
	Since   time.Time `json:"since"` // when its machine went away
	Until   time.Time `json:"until"`
	Dropped string    `json:"dropped,omitempty"` // why it has no text
}

// NodeGrantee is a Grantee on the wire.
type NodeGrantee struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// NodeGone is a terminal that a node has removed.
type NodeGone struct {
	URI   string `json:"uri"`
	Moved bool   `json:"moved,omitempty"` // its machine is at another node now; otherwise the terminal has ended
}

// NodeChanges are the changes of a node's catalogue.
type NodeChanges struct {
	Version int64       `json:"version"`         // the next request's since
	Whole   bool        `json:"whole,omitempty"` // Entries, together with those of the following answers while More, are the whole catalogue
	More    bool        `json:"more,omitempty"`
	On      bool        `json:"on,omitempty"` // audiences are in force there
	Entries []NodeEntry `json:"entries,omitempty"`
	Gone    []NodeGone  `json:"gone,omitempty"`
}

// nodeBook records the changes for other nodes.
type nodeBook struct {
	moved change.Signal // entries have changed
	gone  tombstones[NodeGone]
}

// Released is called when another node has become the owner of a client's terminals. It
// closes the client's connection here.
func (b *Book) Released(clientID, node string, epoch int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cl := b.Clients[clientID]; cl != nil && epoch > cl.Epoch {
		b.moved(cl, node, epoch)
	}
}

// moved records at which node a client is.
func (b *Book) moved(cl *Client, node string, epoch int64) {
	here := cl.Node == ""
	cl.Epoch, cl.Node, cl.Anew = epoch, node, true
	if cl.Link != nil && cl.Link.Taken {
		cl.Link.Close(CloseReplaced, "replaced by a newer connection of this client, at another node")
	}
	if !here {
		return
	}
	b.log.Info().Str("client", cl.id).Str("peer", node).Int64("epoch", epoch).Msg("a machine's terminals are owned by another node")
	b.handOverParked(cl)
	for _, t := range b.Listed {
		if t.Creator == cl && t.Remote() && t.Mirror() == nil {
			b.noteGone(t, true)
		}
	}
}

// noteGone records the removal of a terminal for the other nodes.
func (b *Book) noteGone(t *Terminal, moved bool) {
	if !b.opts.Nodes {
		return
	}
	b.nodes.gone.add(NodeGone{t.URI, moved}, b.nextRow(), maxNodeGone)
	b.nodes.moved.Raise()
}

// NodeChanges returns the changes since a version, 0 for a node that knows nothing: at
// most most entries, 1 to ChangesAtOnce. It waits for a change until ctx ends, and then
// returns none.
func (b *Book) NodeChanges(ctx context.Context, since int64, most int) NodeChanges {
	for first := true; ; first = false {
		b.mu.Lock()
		c := b.changes(since, most)
		if c.Whole || len(c.Entries)+len(c.Gone) > 0 || ctx.Err() != nil {
			b.mu.Unlock()
			return c
		}
		moved := b.nodes.moved.Next()
		b.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		if first { // changes that come together go into one answer
			retry.Wait(ctx, listedEvery)
		}
	}
}

func (b *Book) changes(since int64, most int) NodeChanges {
	c := NodeChanges{Version: b.rowVersion, On: b.Roster.On}
	after := since
	if _, some := b.nodes.gone.since(after, 0); !some {
		c.Whole, since = true, 0
	}
	var due []*Terminal
	for t := range b.Every() {
		if t.Remote() && t.Mirror() == nil && t.Creator.Node == "" && t.rowVersion > since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *Terminal) int { return int(a.rowVersion - b.rowVersion) })
	if len(due) > most { // each version belongs to one terminal
		due, c.More = due[:most], true
		c.Version = due[most-1].rowVersion
	}
	for _, t := range due {
		c.Entries = append(c.Entries, b.nodeEntry(t))
	}
	c.Gone, _ = b.nodes.gone.since(after, c.Version)
	return c
}

// nodeEntry describes a terminal of this node to the others.
func (b *Book) nodeEntry(t *Terminal) NodeEntry {
	s, cl, i := t.State, t.Creator, t.info(0)
	e := NodeEntry{URI: t.URI, Client: cl.id, Epoch: cl.Epoch, Machine: cl.Title, Name: cl.Who.Name, Role: cl.Who.Role, Owner: cl.Who.Owner,
		Announced: t.Name, feedState: t.feedState(),
		Meta: ahp.TerminalMeta{Former: s.Meta.Former, Missing: s.Meta.Missing, Adopted: s.Meta.Adopted, Picture: s.Meta.Picture, Ports: s.Meta.Ports}, Ports: cl.Ports, Fetched: maps.Clone(t.Ports.Asked), Created: t.Created, Away: t.IsAway(), Holds: t.Channel.Holds,
		Running: Head(i.Running), Printed: t.Printed, Start: i.Start, End: i.End, Commands: t.Out.Ended(), Watching: t.Observers(),
		Audience: t.audience.Said, Told: t.audience.Declared, Unsaid: t.audience.Unsaid}
	if in := &t.input; in.Input != "" || in.Ready != "" || in.checkout != (vocab.Checkout{}) {
		p := ahp.NewState("", string(in.Input), in.InputSince)
		p.Checkout = in.checkout
		if in.Ready != "" {
			p.SetReady(string(in.Ready), in.ReadySince, in.ReadyWhy)
		}
		e.Input = &p
	}
	if p := t.Parked(); p != nil {
		e.Parked = &NodeParked{p.Since, p.Until, p.Dropped}
	}
	for _, g := range t.Withdrawn {
		e.Over = append(e.Over, NodeGrantee{string(g.Kind), g.Name, g.ID})
	}
	return e
}

// nodeNotReached is why terminals of a silent node are away.
const nodeNotReached = "its node of the host is not reached"

// mirrorInfo fills in the offsets of a mirror without text from its node's
// description.
func (t *Terminal) mirrorInfo(i *agenttools.Info) {
	if m := t.Mirror(); m != nil && !m.Fed {
		i.Start, i.End = m.start, m.end
	}
}
