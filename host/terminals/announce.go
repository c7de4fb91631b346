package terminals

import (
	"cmp"
	"errors"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

var (
	errClosed = errors.New("the host is going away")
	// ErrClosing answers a request on a connection that is being closed.
	ErrClosing = jsonrpc.Errorf(jsonrpc.CodeInternal, "this connection is being closed")
	// ErrExists answers a request for a terminal whose URI is taken.
	ErrExists = jsonrpc.Errorf(ahp.CodeAlreadyExists, "a terminal with this URI exists")
)

const (
	createBurst = 256 // terminals that a machine may create at once, or MaxTerminals if that is more
	createRate  = 16  // terminals per second after that
	// allTerminals is how many terminals the host may have for each of its
	// MaxConnections.
	allTerminals = 16
)

// defaultTitle is the title of a terminal that was created without a name.
const defaultTitle = "terminal"

// before returns the parked terminal that an owner announces again, under the same
// URI or with it as the former one.
func (b *Book) before(c *Client, uri, former string) *Terminal {
	return cmp.Or(b.parkedBy(c, uri), b.parkedBy(c, former))
}

// StateOf returns the initial state of a requested terminal.
func StateOf(p *ahp.CreateTerminalParams) ahp.TerminalState {
	isPty := true
	s := ahp.TerminalState{Title: p.Name, Cwd: p.Cwd, Claim: p.Claim, IsPty: &isPty, ExecutionTarget: ahp.TargetServer,
		Meta: ahp.TerminalMeta{Former: ahp.FindFormer(p.Meta)}}
	s.Meta.Adopted, s.Meta.Picture = ahp.FindAdopted(p.Meta)
	s.Meta.Ports = ahp.FindPorts(p.Meta)
	s.Title = cmp.Or(s.Title, defaultTitle)
	if p.ExecutionTarget == ahp.TargetClient {
		s.ExecutionTarget = ahp.TargetClient
	} else {
		s.Cwd = ahp.FileURI(p.Cwd)
	}
	if p.Cols != nil {
		s.Cols = *p.Cols
	}
	if p.Rows != nil {
		s.Rows = *p.Rows
	}
	return s
}

// update updates a terminal to the state in its owner's new announcement.
func (b *Book) update(t *Terminal, now ahp.TerminalState) {
	if now.Title != t.State.Title && now.Title != defaultTitle {
		b.Apply(t, ahp.TerminalTitleChanged{Title: now.Title}, nil)
	}
	if now.Cwd != t.State.Cwd && now.Cwd != "" {
		b.Apply(t, ahp.TerminalCwdChanged{Cwd: now.Cwd}, nil)
	}
	b.SetPorts(t, now.Meta.Ports)
	cols, rows := cmp.Or(now.Cols, t.State.Cols), cmp.Or(now.Rows, t.State.Rows)
	switch {
	case cols == t.State.Cols && rows == t.State.Rows:
	case cols > 0 && rows > 0:
		b.Apply(t, ahp.TerminalResized{Cols: cols, Rows: rows}, nil)
	default: // no action changes columns or rows alone
		t.State.Cols, t.State.Rows = cols, rows
	}
}

// Dispose ends and removes t. Unless the owner itself has asked for that, it is
// told, even without a subscription, and even if t had exited before: the owner knows of
// the exit, but not of the removal.
func (b *Book) Dispose(t *Terminal, by *Link) {
	owner, before := t.Bound(), t.Channel.Index()
	b.Exit(t)
	var exit channel.Piece // the last envelope, behind output that was held back
	entries, _ := t.Channel.Entries(before)
	for _, e := range entries {
		exit = e.Piece
	}
	switch {
	case owner == nil || owner == by:
	case exit.Msg == nil: // it had exited before
		owner.Tell(b.envelopes.Piece(t.URI, ahp.TerminalExited{ExitCode: t.State.Lifecycle.ExitCode}, nil))
	case !owner.Follows(t.URI):
		owner.Tell(exit)
	}
	b.remove(t)
}

// AdmitTerminal returns nil if the client may have one more terminal.
func (b *Book) AdmitTerminal(cl *Client) error {
	name := cl.Who.Name
	switch machine := name != "" && cl.Who.Role == rights.RoleMachine; {
	case cl.terminals >= b.opts.MaxTerminals || machine && b.perName[name] >= b.opts.MaxTerminals:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals of one client", b.opts.MaxTerminals)
	case len(b.Listed) >= allTerminals*b.opts.MaxConnections:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals at this host", allTerminals*b.opts.MaxConnections)
	case machine && !b.creates.Allow(name):
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "too many terminals are created: more than %d in a second", createRate)
	}
	return nil
}

// Announce creates a client-executed terminal, or returns an orphaned one to its owner.
// An owner that negotiated resume learns at once which position the host has. The
// audience is in force before any output; without one, only the machine's owner may
// Watch. A parked terminal continues, under its new URI. It takes the lock.
func (b *Book) Announce(c *Link, p *ahp.CreateTerminalParams, said Meant, told bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.ByURI[p.Channel]
	switch {
	case c.Closing():
		return ErrClosing
	case t == nil && (b.opts.Taken(p.Channel)):
		return ErrExists
	case t == nil:
		if err := b.AdmitTerminal(c.Client); err != nil {
			return err
		}
		state := StateOf(p)
		state.Meta.Former = b.formerOf(c.Client, state.Meta.Former)
		if before := b.before(c.Client, p.Channel, state.Meta.Former); before != nil && c.Client.Resume {
			a := b.Resolve(said, before)
			a.Declared = told
			b.continueParked(before, c.Client, served{c}, p.Channel, state, a)
			b.claimed(c.Client, p.Channel)
			t = before
			break
		}
		if b.ByID[IDOf(p.Channel)] != nil { // another terminal had this URI first
			return ErrExists
		}
		a := b.Resolve(said, nil)
		a.Declared = told
		t = b.AddTerminal(p.Channel, c.Client, served{c}, state, a)
		b.auditPorts(t, nil)
		b.claimed(c.Client, p.Channel)
		t.Out.SetEnded(ahp.FindCommands(p.Meta))
		t.Created = plausible(ahp.FindTime(p.Meta, ahp.CreatedKey), time.Time{})
	case !t.OwnedBy(c) || !c.Client.Resume:
		return ErrExists
	default:
		a := b.Resolve(said, t)
		a.Declared = told
		b.SetAudience(t, a)
		t.Bind(c)
		if t.Out.Blank() { // another node owned it, and nobody at this node has read it
			t.Out.SetEnded(ahp.FindCommands(p.Meta))
		}
		b.update(t, StateOf(p))
	}
	if b.setCheckout(t, ahp.FindCheckout(p.Meta)) {
		t.touch(inRows)
	}
	t.Channel.Holds = ahp.FindHolds(p.Meta)
	t.SetPark(ahp.FindPark(p.Meta))
	t.AckNow()
	return nil
}
