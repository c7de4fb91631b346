package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/jsonrpc"
)

// A host may be one of several nodes, which carry what they have to each other (package cluster). A machine's terminals belong to the node
// at which the machine is: that is their owner. Every other node has a mirror of each: what the catalogue says of it always, its text only
// while somebody there follows it. Nobody but the owner acknowledges anything to the machine, so that the machine keeps what is not safe.

// Nodes is how a host reaches the other nodes of its cluster. Its methods may be called from any goroutine.
type Nodes interface {
	// Own makes this node the owner of a client's terminals and returns the epoch of that: greater than each before, and than least. It may
	// take seconds.
	Own(ctx context.Context, clientID string, least int64) (epoch int64, err error)
	// ID names this node.
	ID() string
	// Ask asks a node about something and returns its answer, by the deadline of ctx, which it must have. The error is ErrNoNode if there is
	// no such node any more.
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
	// Wanted says that somebody follows the terminal of another node. It is called with the host's mutex, and returns at once.
	Wanted(uri string)
}

// Bounds of what nodes tell each other.
const (
	// NodeLost is how long terminals of a node that is not heard any more are shown as away.
	NodeLost = 5 * time.Minute
	// nodeHeartbeat is the time between signs of life that machines are asked for: one that finds its node silent has others to go to.
	nodeHeartbeat = 5 * time.Second
	// fillTime is how long who asks for a terminal of another node waits for its text, at most. Then they are shown what is here.
	fillTime = 2 * time.Second
	// wantTime is how long the text of a terminal is followed for after somebody has looked at it.
	wantTime = 30 * time.Second
	// maxNodeGone bounds how many terminals are remembered that are gone. A node that has missed more is told all there are.
	maxNodeGone = 4096
	// ChangesAtOnce bounds the entries in one answer.
	ChangesAtOnce = 500
	// listedEvery is the shortest time between two answers to one node that tell of changes.
	listedEvery = 50 * time.Millisecond
)

// ErrNotOwner is returned where another node has become a terminal's owner, or the terminal is gone.
var ErrNotOwner = errors.New("host: this node is not the terminal's owner")

// ErrNoNode is returned where a node is asked that is gone.
var ErrNoNode = errors.New("host: there is no such node")

// NodeEntry is what a node tells the others of one of its terminals.
type NodeEntry struct {
	URI     string `json:"uri"`
	Client  string `json:"client"` // clientId of the machine
	Epoch   int64  `json:"epoch"`
	Machine string `json:"machine,omitempty"` // what the machine says of itself
	Name    string `json:"principal,omitempty"`
	Role    Role   `json:"role,omitempty"`
	Owner   string `json:"owner,omitempty"`

	Announced string           `json:"name"` // name with which the terminal was announced
	Title     string           `json:"title"`
	Cwd       string           `json:"cwd,omitempty"`
	Cols      int64            `json:"cols,omitempty"`
	Rows      int64            `json:"rows,omitempty"`
	Detection bool             `json:"detection,omitempty"`
	Lifecycle ahp.Lifecycle    `json:"lifecycle"`
	Meta      ahp.TerminalMeta `json:"meta,omitzero"`
	Created   time.Time        `json:"created"`
	Exited    time.Time        `json:"exited,omitzero"`
	Away      bool             `json:"away,omitempty"` // its machine is
	Holds     bool             `json:"holds,omitempty"`
	Input     *ahp.StateParams `json:"input,omitempty"`   // what its owner has said, without the channel; nil: nothing
	Running   string           `json:"running,omitempty"` // the command line that runs, cut
	Start     int64            `json:"start"`             // offsets of readers
	End       int64            `json:"end"`
	Commands  int64            `json:"commands"` // that have ended
	Watching  int              `json:"watching,omitempty"`
	Audience  ahp.Audience     `json:"audience,omitzero"`
	Told      bool             `json:"told,omitempty"`   // the machine has said an audience
	Unsaid    bool             `json:"unsaid,omitempty"` // it has not said yet whether it lends where everybody sees everything
	Over      []NodeGrantee    `json:"over,omitempty"`   // to whom an administrator has ended what was granted
}

// NodeGrantee is a Grantee as nodes tell it.
type NodeGrantee struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// NodeGone is a terminal that a node does not have any more.
type NodeGone struct {
	URI   string `json:"uri"`
	Moved bool   `json:"moved,omitempty"` // its machine has gone to another node; else it has ended
}

// NodeChanges are what has changed at a node.
type NodeChanges struct {
	Version int64       `json:"version"`         // to be asked for next
	Whole   bool        `json:"whole,omitempty"` // Entries, with those of further answers while More, are all there are
	More    bool        `json:"more,omitempty"`
	On      bool        `json:"on,omitempty"` // audiences are in force there
	Entries []NodeEntry `json:"entries,omitempty"`
	Gone    []NodeGone  `json:"gone,omitempty"`
}

// nodeBook is what other nodes are told from. Guarded by the host's mutex.
type nodeBook struct {
	moved chan struct{} // closed at the next change; nil when nobody waits
	gone  []nodeGone    // oldest first
	from  int64         // version up to which those were forgotten

	conns   map[string]map[string]int // of names that have many, by the node at which they are
	resyncs int64                     // how often a mirror's text began anew
}

type nodeGone struct {
	NodeGone
	version int64
}

// firstSeq is the serverSeq from which the host counts: apart from that of all others where there are several nodes, so that what a client
// has seen at another one is not taken for what it has seen here.
func (o *Options) firstSeq() int64 {
	if o.Nodes == nil {
		return 0
	}
	return 1<<40 + rand.Int64N(1<<52) // exact in every JSON reader, with room for what comes
}

// take makes this node the owner of the client's terminals, once for each connection that lends.
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
	case epoch > cl.epoch: // also if the connection has ended meanwhile: the lease says that this node is the owner in this epoch
		cl.epoch, cl.node, cl.anew, cl.owned = epoch, "", false, time.Now()
		for _, t := range slices.Clone(h.order) {
			if t.creator == cl {
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

// arriveLocked makes this node the owner of a terminal, whose machine has come. It is away until the machine announces it.
func (h *Host) arriveLocked(t *terminal) {
	if m := t.mirror; m != nil {
		if !m.fed && t.state.Lifecycle.Exited() { // its last text may not be here
			t.state.Lifecycle, t.exited = ahp.Lifecycle{Status: ahp.StatusRunning}, time.Time{}
		}
		h.endMirrorLocked(t)
		h.orphanLocked(t)
	}
	h.rowChangedLocked(t)
}

// Released says that another node owns a client's terminals since an epoch. Its connection here ends.
func (h *Host) Released(clientID, node string, epoch int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cl := h.clients[clientID]; cl != nil && epoch > cl.epoch {
		h.movedLocked(cl, node, epoch)
	}
}

// movedLocked notes at which node a client is.
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
	h.unparkAllLocked(cl)
	for _, t := range h.order {
		if t.creator == cl && t.remote() && t.mirror == nil {
			h.noteGoneLocked(t, true)
		}
	}
}

// nodesLocked says that what other nodes are told has changed.
func (h *Host) nodesLocked() {
	if b := &h.nodes; b.moved != nil {
		close(b.moved)
		b.moved = nil
	}
}

// noteGoneLocked lets other nodes know that a terminal of this one is not here any more.
func (h *Host) noteGoneLocked(t *terminal, moved bool) {
	if h.opts.Nodes == nil {
		return
	}
	b := &h.nodes
	b.gone = append(b.gone, nodeGone{NodeGone{t.uri, moved}, h.nextRowLocked()})
	if len(b.gone) > maxNodeGone {
		b.from = b.gone[maxNodeGone/4].version
		b.gone = slices.Delete(b.gone, 0, maxNodeGone/4+1)
	}
	h.nodesLocked()
}

// NodeChanges returns what has changed here since a version, which is 0 for a node that knows nothing: at most so many entries, 1 to
// ChangesAtOnce. It waits for a change until ctx ends, and then returns none.
func (h *Host) NodeChanges(ctx context.Context, since int64, most int) NodeChanges {
	for first := true; ; first = false {
		h.mu.Lock()
		c := h.changesLocked(since, most)
		if c.Whole || len(c.Entries)+len(c.Gone) > 0 || ctx.Err() != nil {
			h.mu.Unlock()
			return c
		}
		if h.nodes.moved == nil {
			h.nodes.moved = make(chan struct{})
		}
		moved := h.nodes.moved
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		if first { // what changes together is told together
			select {
			case <-time.After(listedEvery):
			case <-ctx.Done():
			}
		}
	}
}

func (h *Host) changesLocked(since int64, most int) NodeChanges {
	c := NodeChanges{Version: h.rowVersion, On: h.roster.On, Whole: since == 0 || since < h.nodes.from}
	if c.Whole {
		since = 0
	}
	var due []*terminal
	for _, t := range h.order {
		if t.remote() && t.mirror == nil && t.creator.node == "" && t.rowVersion > since {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *terminal) int { return int(a.rowVersion - b.rowVersion) })
	if len(due) > most { // versions are of one terminal each
		due, c.More = due[:most], true
		c.Version = due[most-1].rowVersion
	}
	for _, t := range due {
		c.Entries = append(c.Entries, h.nodeEntryLocked(t))
	}
	for _, g := range h.nodes.gone {
		if !c.Whole && g.version > since && g.version <= c.Version {
			c.Gone = append(c.Gone, g.NodeGone)
		}
	}
	return c
}

// nodeEntryLocked is what other nodes are told of a terminal of this one.
func (h *Host) nodeEntryLocked(t *terminal) NodeEntry {
	s, cl, i := &t.state, t.creator, t.infoLocked(0)
	e := NodeEntry{URI: t.uri, Client: cl.id, Epoch: cl.epoch, Machine: cl.machine, Name: cl.principal.Name, Role: cl.principal.Role, Owner: cl.principal.Owner,
		Announced: t.name, Title: s.Title, Cwd: s.Cwd, Cols: s.Cols, Rows: s.Rows, Detection: s.SupportsCommandDetection, Lifecycle: s.Lifecycle,
		Meta: ahp.TerminalMeta{Former: s.Meta.Former, Missing: s.Meta.Missing}, Created: t.created, Exited: t.exited, Away: t.bound == nil, Holds: t.holds,
		Running: head(i.Running), Start: i.Start, End: i.End, Commands: t.marks.ended, Watching: t.observersLocked(),
		Audience: t.audience.said, Told: t.audience.told, Unsaid: t.audience.unsaid}
	if in := &t.input; in.state != "" || in.ready != "" {
		p := ahp.NewState("", in.state, in.since)
		if in.ready != "" {
			p.SetReady(in.ready, in.readySince, in.readyWhy)
		}
		e.Input = &p
	}
	for _, g := range t.over {
		e.Over = append(e.Over, NodeGrantee{string(g.kind), g.name, g.id})
	}
	return e
}

// isAwayLocked reports whether the machine of a lent terminal is not there, or its node.
func (t *terminal) isAwayLocked() bool {
	if m := t.mirror; m != nil {
		return m.lost || m.away
	}
	return t.remote() && t.bound == nil
}

// awayWhyLocked is why a terminal that is away is, if its machine may still be connected: "" otherwise.
func (t *terminal) awayWhyLocked() string {
	if t.mirror != nil && t.mirror.lost {
		return nodeNotReached
	}
	return ""
}

// nodeNotReached is why terminals of another node are away.
const nodeNotReached = "its node of the host is not reached"

// mirrorInfoLocked puts what its node says of a mirror in the place of what follows from its text, which is not here.
func (t *terminal) mirrorInfoLocked(i *agenttools.Info) {
	if m := t.mirror; m != nil && !m.fed {
		i.Start, i.End = m.start, m.end
	}
}
