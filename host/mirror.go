package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/output"
	"tether/host/rights"
	"tether/internal/change"
)

// mirror is another node's terminal, as far as this node knows it. Guarded by the host's
// mutex.
//
// While nobody at this node follows the terminal, it is not fed: its state comes from the
// owner's catalogue, and its text is missing or old. Once it is fed (see mirror_feed.go),
// its state follows from the owner's actions, in order with the text.
type mirror struct {
	node  string
	epoch int64
	fed   bool        // text and state follow the owner's
	lost  bool        // its node is silent
	away  bool        // its machine is away
	since time.Time   // when lost or away was last reported
	grace *time.Timer // ends a lost one; nil when none runs
	// From the catalogue, while it is not fed.
	start, end int64 // offsets of readers
	running    string

	on       bool      // the owner's node enforced audiences when it sent this one
	unsaid   bool      // the owner's Audience.Unsaid
	wanted   time.Time // when somebody at this node last followed it
	waiters  []*conn   // connections with a reply that waits for its text
	filled   change.Signal
	lastSeen NodeEntry // for Commands and Lifecycle while it is not fed
}

func (m *mirror) stop() {
	if m.grace != nil {
		m.grace.Stop()
		m.grace = nil
	}
}

// Mirror applies a node's description of one of its terminals. on says whether audiences
// are in force at that node.
func (h *Host) Mirror(node string, on bool, e NodeEntry) error {
	if err := e.check(); err != nil {
		return err
	}
	said := h.understand(e.Audience)
	h.mu.Lock()
	defer h.mu.Unlock()
	cl, t := h.clients[e.Client], h.knownLocked(e.URI)
	p := rights.Principal{Name: e.Name, Role: e.Role, Owner: e.Owner}
	switch {
	case h.closed:
		return errGoingAway
	case t != nil && (t.creator.id != e.Client || !t.remote()) || h.sessions.Session(e.URI) != nil || h.starting[e.URI]:
		return fmt.Errorf("%s has another owner here", e.URI)
	case t == nil && len(h.order) >= allTerminals*h.opts.MaxConnections:
		return fmt.Errorf("more than %d terminals at this host", allTerminals*h.opts.MaxConnections)
	case cl != nil && !cl.principal.Same(p):
		return fmt.Errorf("the client of %s has another name here", e.URI)
	case cl != nil && (e.Epoch < cl.epoch || e.Epoch == cl.epoch && cl.node != node):
		return nil // another node has become its owner, possibly this one
	}
	if cl == nil {
		h.forgetLocked()
		cl = &client{id: e.Client, party: h.envelopes.NewParty(), principal: p, machine: e.Machine, resume: true, anew: true, epoch: e.Epoch, node: node, left: time.Now()}
		h.clients[e.Client] = cl
	} else {
		h.ownedAnewLocked(cl, p)
	}
	if e.Epoch > cl.epoch {
		h.movedLocked(cl, node, e.Epoch)
	}
	a := h.resolveLocked(said, nil)
	a.Declared = e.Told
	state := ahp.TerminalState{Title: e.Title, Claim: ahp.Claim{Kind: ahp.ClaimClient, ClientID: e.Client}, ExecutionTarget: ahp.TargetClient, IsPty: new(true), Meta: e.Meta}
	if t == nil && e.Parked == nil {
		t = h.parkedByLocked(cl, e.Meta.Former)
	}
	var m *mirror
	if t == nil {
		m = &mirror{}
		t = h.addTerminalLocked(e.URI, cl, m, state, a)
		t.name, t.created = ahp.CleanTitle(e.Announced), plausible(e.Created, time.Time{})
	} else if m = t.mirror(); m == nil {
		m = &mirror{wanted: time.Now()}
		t.followNode(m)
	}
	if t.parked() != nil && e.Parked == nil {
		h.continueLocked(t, cl, m, e.URI, state, a)
	}
	if m.node != node || m.epoch != e.Epoch {
		m.node, m.epoch = node, e.Epoch
		if t.subscribed() || t.moved.Awaited() {
			h.wantLocked(t)
		}
	}
	h.sayMirrorLocked(t, m, e, on, a)
	h.parkMirrorLocked(t, m, e.Parked)
	return nil
}

// check validates a node's description.
func (e *NodeEntry) check() error {
	name := func(s string, most int) bool { return len(s) <= most }
	switch {
	case ahp.CheckURI(e.URI) != nil || e.Client == "" || !name(e.Client, ahp.MaxClientID) || e.Epoch < 1:
		return fmt.Errorf("the entry of %.80q is invalid", e.URI)
	case !name(e.Title, ahp.MaxTitle) || !name(e.Announced, ahp.MaxTitle) || !name(e.Machine, ahp.MaxTitle) || !name(e.Name, ahp.MaxTitle):
		return fmt.Errorf("a name in the entry of %s is too long", e.URI)
	case len(e.Fetched) > ahp.MaxLentPorts:
		return fmt.Errorf("the entry of %s counts too many ports", e.URI)
	case e.Cols < 0 || e.Cols > ahp.MaxSize || e.Rows < 0 || e.Rows > ahp.MaxSize || e.Start < 0 || e.End < e.Start || e.End > output.MaxPosition || e.Commands < 0 || e.Commands > output.MaxCommandNumber:
		return fmt.Errorf("a number in the entry of %s is out of range", e.URI)
	}
	if e.Input != nil {
		e.Input.Channel = e.URI
		if err := e.Input.Validate(); err != nil {
			return err
		}
	}
	if e.Parked != nil && !name(e.Parked.Dropped, ahp.MaxTitle) || !name(e.Printed, ahp.MaxTitle) {
		return fmt.Errorf("a text in the entry of %s is too long", e.URI)
	}
	return e.Audience.Validate()
}

// sayMirrorLocked updates a mirror from its owner's catalogue.
func (h *Host) sayMirrorLocked(t *terminal, m *mirror, e NodeEntry, on bool, a rights.Audience) {
	away := t.isAway()
	m.lost, m.away, m.start, m.end, m.running, m.on, m.unsaid, m.lastSeen = false, e.Away, e.Start, e.End, e.Running, on, e.Unsaid, e
	if m.away {
		m.since = time.Now()
	}
	var in ahp.StateParams
	if e.Input != nil {
		in = *e.Input
	}
	h.setInputLocked(t, in)
	t.printed = e.Printed
	if t.isAway() != away {
		t.touchPresence()
	}
	m.stop()
	t.channel.Holds = e.Holds
	where := inRows
	if !slices.Equal(t.state.Meta.Ports, e.Meta.Ports) {
		where = inCatalogue
	}
	t.state.Meta, t.ports.Asked, t.creator.ports = e.Meta, e.Fetched, e.Ports
	t.withdrawn = nil
	for _, g := range e.Over {
		kind := []rune(g.Kind)
		if len(kind) == 1 {
			t.withdrawn = append(t.withdrawn, rights.Grantee{Kind: kind[0], Name: g.Name, ID: g.ID})
		}
	}
	for _, g := range h.roster.Withdrawn[t.uri] { // the owner may not know of it yet
		if !slices.Contains(t.withdrawn, g) {
			t.withdrawn = append(t.withdrawn, g)
		}
	}
	a.Unsaid = h.mirrorUnsaidLocked(m)
	t.placeGrantsLocked(&a)
	h.setAudienceLocked(t, a)
	if !m.fed {
		h.setMirrorStateLocked(t, e)
	}
	t.touch(where)
}

// mirrorUnsaidLocked reports whether a mirror is hidden until its machine has answered
// whether it lends to a host that shows everything to everybody.
func (h *Host) mirrorUnsaidLocked(m *mirror) bool {
	return m.unsaid || !h.roster.On && m.on
}

// placeGrantsLocked finds the beginning of each grant in the recorded text of a mirror. A
// grant that begins in text that is not here yet is placed when the text arrives.
func (t *terminal) placeGrantsLocked(a *rights.Audience) {
	a.Pending = false
	for i := range a.Grants {
		switch g := &a.Grants[i]; {
		case g.From == 0:
		case g.From > max(t.out.Applied(), t.mirror().end):
			g.Pos, a.Pending = rights.NotYet, true
		default:
			g.Pos = t.out.PosOf(g.From)
		}
	}
}

// setMirrorStateLocked sets the state of a mirror that is not fed from the catalogue. It
// makes no mark: marks come with the text.
func (h *Host) setMirrorStateLocked(t *terminal, e NodeEntry) {
	before, s := *t.state, t.state
	s.Title, s.Cwd, s.Cols, s.Rows, s.SupportsCommandDetection, s.Lifecycle = ahp.CleanTitle(e.Title), e.Cwd, e.Cols, e.Rows, e.Detection, e.Lifecycle
	t.exited = e.Exited
	if t.subscribed() {
		t.state.Lifecycle = before.Lifecycle // readers get the exit after the text
	}
	if before.Title != s.Title || before.Lifecycle != s.Lifecycle {
		t.touch(inCatalogue)
	}
}

// mirrorLocked returns the terminal with that URI if it is another node's, else nil.
func (h *Host) mirrorLocked(uri string) (*terminal, *mirror) {
	if t := h.knownLocked(uri); t != nil {
		return t, t.mirror()
	}
	return nil, nil
}

// MirrorGone is called when a node has removed a terminal.
func (h *Host) MirrorGone(node string, g NodeGone) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, m := h.mirrorLocked(g.URI)
	switch {
	case m == nil || m.node != node:
	case g.Moved && t.parked() != nil:
		h.loseMirrorLocked(t, m, NodeLost)
	case g.Moved:
		h.loseMirrorLocked(t, m, h.opts.Grace)
	case t.parked() != nil:
		h.unparkLocked(t, "its node has dropped it")
	default:
		h.abandonLocked(t)
	}
}

// MirrorsOf returns the URIs of the terminals of a node.
func (h *Host) MirrorsOf(node string) (uris []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.everyLocked() {
		if m := t.mirror(); m != nil && m.node == node {
			uris = append(uris, t.uri)
		}
	}
	return uris
}

// NodeSilent is called when a node has gone silent or has announced that it stops. Its
// terminals are away until a node lists them again.
func (h *Host) NodeSilent(node string) {
	h.callers.Forget(node)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.nodes.conns, node)
	for t := range h.everyLocked() {
		if m := t.mirror(); m != nil && m.node == node {
			within := NodeLost
			if p := t.parked(); p != nil { // it stays listed, with the reason
				within = time.Until(p.until)
			}
			h.loseMirrorLocked(t, m, within)
		}
		if f := t.feeds[node]; f != nil {
			delete(t.feeds, node)
			f.End()
			t.watchedLocked() // it has no watchers at that node now
		}
	}
}

// loseMirrorLocked marks a mirror as away, and removes it after a time unless a node
// lists it again.
func (h *Host) loseMirrorLocked(t *terminal, m *mirror, within time.Duration) {
	if m.lost || h.closed {
		return
	}
	m.lost, m.since = true, time.Now()
	m.fillDone()
	if p := t.parked(); p != nil && t.out.Applied() < m.end && p.dropped == "" {
		p.dropped = droppedWithNode
	}
	h.afterLocked(&m.grace, within, func() { h.abandonLocked(t) })
	t.touchPresence()
}

// wantLocked records that somebody at this node follows the terminal.
func (h *Host) wantLocked(t *terminal) {
	if m := t.mirror(); m != nil {
		m.wanted = time.Now()
		h.opts.Nodes.Wanted(t.uri)
	}
}

// wanted reports whether somebody follows the mirror m, or did so within wantTime.
func (t *terminal) wanted(m *mirror) bool {
	return t.subscribed() || t.agents > 0 || t.moved.Awaited() || time.Since(m.wanted) < wantTime
}

// filling reports whether readers should wait for the text of another node's terminal,
// each for at most fillTime.
func (m *mirror) filling() bool {
	return m != nil && !m.fed && !m.lost
}

// fillDone wakes the readers that wait for the text of a mirror.
func (m *mirror) fillDone() {
	for _, c := range m.waiters {
		c.Wake()
	}
	m.waiters = nil
	m.filled.Raise()
}

// fillsLocked reports whether a reply of the connection waits for text of other nodes'
// terminals. The connection is woken when the wait is over.
func (c *conn) fillsLocked(l *later) bool {
	left := fillTime - time.Since(l.since)
	if c.h.opts.Nodes == nil || left <= 0 {
		return false
	}
	for _, s := range l.subs {
		t := s.term
		if t == nil || c.client == t.creator || !t.mirror().filling() {
			continue
		}
		if m := t.mirror(); !slices.Contains(m.waiters, c) {
			m.waiters = append(m.waiters, c)
			c.h.wantLocked(t)
		}
		if !l.filled {
			l.filled = true
			time.AfterFunc(left, c.Wake)
		}
		return true
	}
	return false
}

// fill waits until this node has the text of another node's terminal, at most for
// fillTime.
func (h *Host) fill(t *terminal) {
	if h.opts.Nodes == nil {
		return
	}
	late := time.After(fillTime)
	for {
		h.mu.Lock()
		m := t.mirror()
		if !m.filling() {
			h.mu.Unlock()
			return
		}
		h.wantLocked(t)
		filled := m.filled.Next()
		h.mu.Unlock()
		select {
		case <-filled:
			h.mu.Lock()
			h.wantLocked(t)
			h.mu.Unlock()
			return
		case <-late:
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// arrive waits until this node has the text that the terminal's node had at its last
// report, at most for fillTime.
func (h *Host) arrive(t *terminal) {
	h.fill(t)
	if h.opts.Nodes == nil {
		return
	}
	late := time.After(fillTime)
	for {
		h.mu.Lock()
		if m := t.mirror(); m == nil || !m.fed || m.lost || t.out.EndOffset() >= m.end {
			h.mu.Unlock()
			return
		}
		moved := t.moved.Next()
		h.mu.Unlock()
		select {
		case <-moved:
		case <-late:
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// Wants reports whether somebody at this node follows another node's terminal, and
// returns the next request to that node.
func (h *Host) Wants(uri string) (f FeedRequest, node string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, m := h.mirrorLocked(uri)
	if m == nil {
		return f, "", false
	}
	if !t.wanted(m) {
		m.fed = false
		h.setMirrorStateLocked(t, m.lastSeen)
		return f, m.node, false
	}
	f = FeedRequest{URI: uri, Epoch: m.epoch, Offset: -1, Watching: t.observersLocked(), Watchers: t.watchingLocked()}
	if t.out.End() > t.out.Base() || t.out.Applied() > 0 {
		f.Offset = t.out.Applied()
	}
	return f, m.node, true
}

// Pace blocks while observers here of another node's terminal are slow, if the terminal
// waits for slow observers.
func (h *Host) Pace(ctx context.Context, uri string) {
	h.mu.Lock()
	t, m := h.mirrorLocked(uri)
	var wait <-chan struct{}
	if m != nil {
		wait = t.channel.Pace()
	}
	h.mu.Unlock()
	if wait == nil {
		return
	}
	select {
	case <-wait:
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
}
