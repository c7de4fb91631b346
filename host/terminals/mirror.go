package terminals

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

// Mirror is another node's terminal, as far as this node knows it.
//
// While nobody at this node follows the terminal, it is not fed: its state comes from the
// owner's catalogue, and its text is missing or old. Once it is fed (see mirror_feed.go),
// its state follows from the owner's actions, in order with the text.
type Mirror struct {
	Node  string
	epoch int64
	Fed   bool        // text and state follow the owner's
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
	waiters  []*Link   // connections with a reply that waits for its text
	filled   change.Signal
	lastSeen NodeEntry // for Commands and Lifecycle while it is not fed
}

func (m *Mirror) stop() {
	if m.grace != nil {
		m.grace.Stop()
		m.grace = nil
	}
}

// Mirror applies a node's description of one of its terminals. on says whether audiences
// are in force at that node.
func (b *Book) Mirror(node string, on bool, e NodeEntry) error {
	if err := e.check(); err != nil {
		return err
	}
	said := b.Understand(e.Audience)
	b.mu.Lock()
	defer b.mu.Unlock()
	cl, t := b.Clients[e.Client], b.Known(e.URI)
	p := rights.Principal{Name: e.Name, Role: e.Role, Owner: e.Owner}
	switch {
	case b.closed:
		return errClosed
	case t != nil && (t.Creator.id != e.Client || !t.Remote()) || b.opts.Taken(e.URI):
		return fmt.Errorf("%s has another owner here", e.URI)
	case t == nil && len(b.Listed) >= allTerminals*b.opts.MaxConnections:
		return fmt.Errorf("more than %d terminals at this host", allTerminals*b.opts.MaxConnections)
	case cl != nil && !cl.Who.Same(p):
		return fmt.Errorf("the client of %s has another name here", e.URI)
	case cl != nil && (e.Epoch < cl.Epoch || e.Epoch == cl.Epoch && cl.Node != node):
		return nil // another node has become its owner, possibly this one
	}
	if cl == nil {
		cl = b.AddClient(e.Client, p)
		cl.Title, cl.Resume, cl.Anew, cl.Epoch, cl.Node, cl.Left = e.Machine, true, true, e.Epoch, node, time.Now()
	} else {
		b.OwnedAnew(cl, p)
	}
	if e.Epoch > cl.Epoch {
		b.moved(cl, node, e.Epoch)
	}
	a := b.Resolve(said, nil)
	a.Declared = e.Told
	state := ahp.TerminalState{Title: e.Title, Claim: ahp.Claim{Kind: ahp.ClaimClient, ClientID: e.Client}, ExecutionTarget: ahp.TargetClient, IsPty: new(true), Meta: e.Meta}
	if t == nil && e.Parked == nil {
		t = b.parkedBy(cl, e.Meta.Former)
	}
	var m *Mirror
	if t == nil {
		m = &Mirror{}
		t = b.AddTerminal(e.URI, cl, m, state, a)
		t.Name, t.Created = ahp.CleanTitle(e.Announced), plausible(e.Created, time.Time{})
	} else if m = t.Mirror(); m == nil {
		m = &Mirror{wanted: time.Now()}
		t.followNode(m)
	}
	if t.Parked() != nil && e.Parked == nil {
		b.continueParked(t, cl, m, e.URI, state, a)
	}
	if m.Node != node || m.epoch != e.Epoch {
		m.Node, m.epoch = node, e.Epoch
		if t.subscribed() || t.Moved.Awaited() {
			b.want(t)
		}
	}
	b.sayMirror(t, m, e, on, a)
	b.parkMirror(t, m, e.Parked)
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

// sayMirror updates a mirror from its owner's catalogue.
func (b *Book) sayMirror(t *Terminal, m *Mirror, e NodeEntry, on bool, a rights.Audience) {
	away := t.IsAway()
	m.lost, m.away, m.start, m.end, m.running, m.on, m.unsaid, m.lastSeen = false, e.Away, e.Start, e.End, e.Running, on, e.Unsaid, e
	if m.away {
		m.since = time.Now()
	}
	var in ahp.StateParams
	if e.Input != nil {
		in = *e.Input
	}
	b.SetInput(t, in)
	t.Printed = e.Printed
	if t.IsAway() != away {
		t.touchPresence()
	}
	m.stop()
	t.Channel.Holds = e.Holds
	where := inRows
	if !slices.Equal(t.State.Meta.Ports, e.Meta.Ports) {
		where = inCatalogue
	}
	t.State.Meta, t.Ports.Asked, t.Creator.Ports = e.Meta, e.Fetched, e.Ports
	t.Withdrawn = nil
	for _, g := range e.Over {
		kind := []rune(g.Kind)
		if len(kind) == 1 {
			t.Withdrawn = append(t.Withdrawn, rights.Grantee{Kind: kind[0], Name: g.Name, ID: g.ID})
		}
	}
	for _, g := range b.Roster.Withdrawn[t.URI] { // the owner may not know of it yet
		if !slices.Contains(t.Withdrawn, g) {
			t.Withdrawn = append(t.Withdrawn, g)
		}
	}
	a.Unsaid = b.mirrorUnsaid(m)
	t.placeGrants(&a)
	b.SetAudience(t, a)
	if !m.Fed {
		b.setMirrorState(t, e)
	}
	t.touch(where)
}

// mirrorUnsaid reports whether a mirror is hidden until its machine has answered
// whether it lends to a host that shows everything to everybody.
func (b *Book) mirrorUnsaid(m *Mirror) bool {
	return m.unsaid || !b.Roster.On && m.on
}

// placeGrants finds the beginning of each grant in the recorded text of a mirror. A
// grant that begins in text that is not here yet is placed when the text arrives.
func (t *Terminal) placeGrants(a *rights.Audience) {
	a.Pending = false
	for i := range a.Grants {
		switch g := &a.Grants[i]; {
		case g.From == 0:
		case g.From > max(t.Out.Applied(), t.Mirror().end):
			g.Pos, a.Pending = rights.NotYet, true
		default:
			g.Pos = t.Out.PosOf(g.From)
		}
	}
}

// setMirrorState sets the state of a mirror that is not fed from the catalogue. It
// makes no mark: marks come with the text.
func (b *Book) setMirrorState(t *Terminal, e NodeEntry) {
	before, s := *t.State, t.State
	s.Title, s.Cwd, s.Cols, s.Rows, s.SupportsCommandDetection, s.Lifecycle = ahp.CleanTitle(e.Title), e.Cwd, e.Cols, e.Rows, e.Detection, e.Lifecycle
	t.exited = e.Exited
	if t.subscribed() {
		t.State.Lifecycle = before.Lifecycle // readers get the exit after the text
	}
	if before.Title != s.Title || before.Lifecycle != s.Lifecycle {
		t.touch(inCatalogue)
	}
}

// mirror returns the terminal with that URI if it is another node's, else nil.
func (b *Book) mirror(uri string) (*Terminal, *Mirror) {
	if t := b.Known(uri); t != nil {
		return t, t.Mirror()
	}
	return nil, nil
}

// MirrorGone is called when a node has removed a terminal.
func (b *Book) MirrorGone(node string, g NodeGone) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, m := b.mirror(g.URI)
	switch {
	case m == nil || m.Node != node:
	case g.Moved && t.Parked() != nil:
		b.loseMirror(t, m, NodeLost)
	case g.Moved:
		b.loseMirror(t, m, b.opts.Grace)
	case t.Parked() != nil:
		b.Unpark(t, "its node has dropped it")
	default:
		b.abandon(t)
	}
}

// MirrorsOf returns the URIs of the terminals of a node.
func (b *Book) MirrorsOf(node string) (uris []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.Every() {
		if m := t.Mirror(); m != nil && m.Node == node {
			uris = append(uris, t.URI)
		}
	}
	return uris
}

// NodeSilent is called when a node has gone silent or has announced that it stops. Its
// terminals are away until a node lists them again. It is called with the lock.
func (b *Book) NodeSilent(node string) {
	for t := range b.Every() {
		if m := t.Mirror(); m != nil && m.Node == node {
			within := NodeLost
			if p := t.Parked(); p != nil { // it stays listed, with the reason
				within = time.Until(p.Until)
			}
			b.loseMirror(t, m, within)
		}
		if f := t.feeds[node]; f != nil {
			delete(t.feeds, node)
			f.End()
			t.watched() // it has no watchers at that node now
		}
	}
}

// loseMirror marks a mirror as away, and removes it after a time unless a node lists
// it again.
func (b *Book) loseMirror(t *Terminal, m *Mirror, within time.Duration) {
	if m.lost || b.closed {
		return
	}
	m.lost, m.since = true, time.Now()
	m.fillDone()
	if p := t.Parked(); p != nil && t.Out.Applied() < m.end && p.Dropped == "" {
		p.Dropped = droppedWithNode
	}
	b.After(&m.grace, within, func() { b.abandon(t) })
	t.touchPresence()
}

// want records that somebody at this node follows the terminal.
func (b *Book) want(t *Terminal) {
	if m := t.Mirror(); m != nil {
		m.wanted = time.Now()
		b.opts.Wanted(t.URI)
	}
}

// wanted reports whether somebody follows the mirror m, or did so within wantTime.
func (t *Terminal) wanted(m *Mirror) bool {
	return t.subscribed() || t.agents > 0 || t.Moved.Awaited() || time.Since(m.wanted) < wantTime
}

// filling reports whether readers should wait for the text of another node's terminal,
// each for at most FillTime.
func (m *Mirror) filling() bool {
	return m != nil && !m.Fed && !m.lost
}

// fillDone wakes the readers that wait for the text of a mirror.
func (m *Mirror) fillDone() {
	for _, c := range m.waiters {
		c.Wake()
	}
	m.waiters = nil
	m.filled.Raise()
}

// FillsFor reports whether a reply to c has to wait for text of another node's terminal.
// The connection is woken when the text is there.
func (t *Terminal) FillsFor(c *Link) bool {
	m := t.Mirror()
	if c.Client == t.Creator || !m.filling() {
		return false
	}
	if !slices.Contains(m.waiters, c) {
		m.waiters = append(m.waiters, c)
		t.book.want(t)
	}
	return true
}

// fill waits until this node has the text of another node's terminal, at most for
// FillTime.
func (b *Book) fill(t *Terminal) {
	if !b.opts.Nodes {
		return
	}
	late := time.After(FillTime)
	for {
		b.mu.Lock()
		m := t.Mirror()
		if !m.filling() {
			b.mu.Unlock()
			return
		}
		b.want(t)
		filled := m.filled.Next()
		b.mu.Unlock()
		select {
		case <-filled:
			b.mu.Lock()
			b.want(t)
			b.mu.Unlock()
			return
		case <-late:
			return
		case <-b.opts.Context.Done():
			return
		}
	}
}

// arrive waits until this node has the text that the terminal's node had at its last
// report, at most for FillTime.
func (b *Book) arrive(t *Terminal) {
	b.fill(t)
	if !b.opts.Nodes {
		return
	}
	late := time.After(FillTime)
	for {
		b.mu.Lock()
		if m := t.Mirror(); m == nil || !m.Fed || m.lost || t.Out.EndOffset() >= m.end {
			b.mu.Unlock()
			return
		}
		moved := t.Moved.Next()
		b.mu.Unlock()
		select {
		case <-moved:
		case <-late:
			return
		case <-b.opts.Context.Done():
			return
		}
	}
}

// Wants reports whether somebody at this node follows another node's terminal, and
// returns the next request to that node.
func (b *Book) Wants(uri string) (f FeedRequest, node string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, m := b.mirror(uri)
	if m == nil {
		return f, "", false
	}
	if !t.wanted(m) {
		m.Fed = false
		b.setMirrorState(t, m.lastSeen)
		return f, m.Node, false
	}
	f = FeedRequest{URI: uri, Epoch: m.epoch, Offset: -1, Watching: t.Observers(), Watchers: t.watching()}
	if t.Out.End() > t.Out.Base() || t.Out.Applied() > 0 {
		f.Offset = t.Out.Applied()
	}
	return f, m.Node, true
}

// Pace blocks while observers here of another node's terminal are slow, if the terminal
// waits for slow observers.
func (b *Book) Pace(ctx context.Context, uri string) {
	b.mu.Lock()
	t, m := b.mirror(uri)
	var wait <-chan struct{}
	if m != nil {
		wait = t.Channel.Pace()
	}
	b.mu.Unlock()
	if wait == nil {
		return
	}
	select {
	case <-wait:
	case <-ctx.Done():
	case <-b.opts.Context.Done():
	}
}
