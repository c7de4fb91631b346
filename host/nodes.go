package host

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/internal/change"
	"tether/internal/retry"
	"tether/jsonrpc"
	"tether/vocab"
)

// A host may be one of several nodes, which share their terminals (package cluster). The
// node to which a machine is connected owns the machine's terminals. Every other node has
// a mirror of each: always its entry in the catalogue, and its text only while somebody
// follows it there. Only the owner acknowledges output to the machine, which keeps
// everything that is not acknowledged.

// Nodes is how a host reaches the other nodes of its cluster. Its methods may be called
// from any goroutine.
type Nodes interface {
	sessions.Nodes
	// Own makes this node the owner of a client's terminals and returns the epoch of that
	// ownership, which is greater than all earlier ones and than least. It may take
	// seconds.
	Own(ctx context.Context, clientID string, least int64) (epoch int64, err error)
	// Dial opens a stream of bytes to a node, which passes it to ServeNode. It ends with
	// either node, or when one of them does not reach the cluster. Its two directions are
	// buffered: whoever uses it bounds what is under way. The error is sessions.ErrNoNode
	// if that node is gone.
	Dial(ctx context.Context, node string) (net.Conn, error)
	// Others returns the names of the other nodes.
	Others() []string
	// Wanted is called when somebody follows the terminal of another node. The caller
	// holds the host's mutex; Wanted does not block.
	Wanted(uri string)
}

// Bounds of the exchange between nodes.
const (
	// NodeLost is how long the terminals of a silent node are listed as away.
	NodeLost = 5 * time.Minute
	// nodeHeartbeat is the interval between heartbeats that machines are asked for: a
	// machine whose node is silent can go to another one.
	nodeHeartbeat = 5 * time.Second
	// fillTime bounds the wait for the text of another node's terminal. After that,
	// readers get the text that is here.
	fillTime = 2 * time.Second
	// wantTime is how long this node follows a terminal's text after the last reader
	// left.
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

// nodeBook records the changes for other nodes. Guarded by the host's mutex.
type nodeBook struct {
	moved change.Signal // entries have changed
	gone  tombstones[NodeGone]

	conns   map[string]map[string]int // connections of names that have many, by node
	resyncs int64                     // how often the text of a mirror was reset
}

// firstSeq is the host's first serverSeq. Nodes count from different random numbers, so
// that a client's position at another node is not mistaken for one here.
func (o *Options) firstSeq() int64 {
	if o.Nodes == nil {
		return 0
	}
	return 1<<40 + rand.Int64N(1<<52) // exact in every JSON reader, with room to count
}

// take makes this node the owner of the client's terminals, once for each connection that
// lends.
func (c *conn) take() error {
	h := c.h
	if h.opts.Nodes == nil {
		return nil
	}
	h.mu.Lock()
	taken, id, least := c.taken, c.client.id, c.client.epoch
	h.mu.Unlock()
	if taken {
		return nil
	}
	epoch, err := h.opts.Nodes.Own(h.ctx, id, least)
	if err != nil {
		h.log.Warn().Err(err).Str("client", id).Msg("a machine is not taken: the cluster's engine does not answer")
		c.close(closeGoingAway, "this node does not reach its cluster: try another address")
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "this node does not reach its cluster: try another address")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	cl := c.client
	switch {
	case epoch > cl.epoch: // even if the connection has ended meanwhile: by the lease, this node is the owner in this epoch
		cl.epoch, cl.node, cl.anew, cl.owned = epoch, "", false, time.Now()
		for _, t := range slices.Collect(h.everyLocked()) {
			if t.creator == cl || t.parked() != nil && t.lentBy(cl) {
				h.arriveLocked(t)
			}
		}
	case cl.node != "":
		return errClosing
	}
	if c.closing {
		return errClosing
	}
	c.taken = true
	h.log.Info().Str("client", id).Int64("epoch", epoch).Msg("a machine's terminals are owned here")
	return nil
}

// Released is called when another node has become the owner of a client's terminals. It
// closes the client's connection here.
func (h *Host) Released(clientID, node string, epoch int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cl := h.clients[clientID]; cl != nil && epoch > cl.epoch {
		h.movedLocked(cl, node, epoch)
	}
}

// movedLocked records at which node a client is.
func (h *Host) movedLocked(cl *client, node string, epoch int64) {
	here := cl.node == ""
	cl.epoch, cl.node, cl.anew = epoch, node, true
	if cl.conn != nil && cl.conn.taken {
		cl.conn.closeLocked(closeReplaced, "replaced by a newer connection of this client, at another node")
	}
	if !here {
		return
	}
	h.log.Info().Str("client", cl.id).Str("peer", node).Int64("epoch", epoch).Msg("a machine's terminals are owned by another node")
	h.handOverParkedLocked(cl)
	for _, t := range h.order {
		if t.creator == cl && t.remote() && t.mirror() == nil {
			h.noteGoneLocked(t, true)
		}
	}
}

// noteGoneLocked records the removal of a terminal for the other nodes.
func (h *Host) noteGoneLocked(t *terminal, moved bool) {
	if h.opts.Nodes == nil {
		return
	}
	h.nodes.gone.add(NodeGone{t.uri, moved}, h.nextRowLocked(), maxNodeGone)
	h.nodes.moved.Raise()
}

// NodeChanges returns the changes since a version, 0 for a node that knows nothing: at
// most most entries, 1 to ChangesAtOnce. It waits for a change until ctx ends, and then
// returns none.
func (h *Host) NodeChanges(ctx context.Context, since int64, most int) NodeChanges {
	for first := true; ; first = false {
		h.mu.Lock()
		c := h.changesLocked(since, most)
		if c.Whole || len(c.Entries)+len(c.Gone) > 0 || ctx.Err() != nil {
			h.mu.Unlock()
			return c
		}
		moved := h.nodes.moved.Next()
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		if first { // changes that come together go into one answer
			retry.Wait(ctx, listedEvery)
		}
	}
}

func (h *Host) changesLocked(since int64, most int) NodeChanges {
	c := NodeChanges{Version: h.rowVersion, On: h.roster.On}
	after := since
	if _, some := h.nodes.gone.since(after, 0); !some {
		c.Whole, since = true, 0
	}
	var due []*terminal
	for t := range h.everyLocked() {
		if t.remote() && t.mirror() == nil && t.creator.node == "" && t.rowVersion > since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *terminal) int { return int(a.rowVersion - b.rowVersion) })
	if len(due) > most { // each version belongs to one terminal
		due, c.More = due[:most], true
		c.Version = due[most-1].rowVersion
	}
	for _, t := range due {
		c.Entries = append(c.Entries, h.nodeEntryLocked(t))
	}
	c.Gone, _ = h.nodes.gone.since(after, c.Version)
	return c
}

// nodeEntryLocked describes a terminal of this node to the others.
func (h *Host) nodeEntryLocked(t *terminal) NodeEntry {
	s, cl, i := t.state, t.creator, t.infoLocked(0)
	e := NodeEntry{URI: t.uri, Client: cl.id, Epoch: cl.epoch, Machine: cl.machine, Name: cl.principal.Name, Role: cl.principal.Role, Owner: cl.principal.Owner,
		Announced: t.name, feedState: t.feedStateLocked(),
		Meta: ahp.TerminalMeta{Former: s.Meta.Former, Missing: s.Meta.Missing, Adopted: s.Meta.Adopted, Picture: s.Meta.Picture, Ports: s.Meta.Ports}, Ports: cl.ports, Fetched: maps.Clone(t.ports.Asked), Created: t.created, Away: t.isAway(), Holds: t.channel.Holds,
		Running: head(i.Running), Printed: t.printed, Start: i.Start, End: i.End, Commands: t.out.Ended(), Watching: t.observersLocked(),
		Audience: t.audience.Said, Told: t.audience.Declared, Unsaid: t.audience.Unsaid}
	if in := &t.input; in.Input != "" || in.Ready != "" || in.checkout != (vocab.Checkout{}) {
		p := ahp.NewState("", string(in.Input), in.InputSince)
		p.Checkout = in.checkout
		if in.Ready != "" {
			p.SetReady(string(in.Ready), in.ReadySince, in.ReadyWhy)
		}
		e.Input = &p
	}
	if p := t.parked(); p != nil {
		e.Parked = &NodeParked{p.since, p.until, p.dropped}
	}
	for _, g := range t.withdrawn {
		e.Over = append(e.Over, NodeGrantee{string(g.Kind), g.Name, g.ID})
	}
	return e
}

// nodeNotReached is why terminals of a silent node are away.
const nodeNotReached = "its node of the host is not reached"

// mirrorInfoLocked fills in the offsets of a mirror without text from its node's
// description.
func (t *terminal) mirrorInfoLocked(i *agenttools.Info) {
	if m := t.mirror(); m != nil && !m.fed {
		i.Start, i.End = m.start, m.end
	}
}
