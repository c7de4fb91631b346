package terminals

import (
	"slices"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
	"tether/host/ports"
	"tether/host/rights"
	"tether/internal/change"
	"tether/record"
)

// Terminal is one terminal.
type Terminal struct {
	book    *Book // set once
	URI     string
	Channel *channel.Channel
	feeder  feeder
	Creator *Client // for a client-executed terminal, its owner; changes only when a parked one is continued
	Out     *output.Log
	State   *ahp.TerminalState // of out

	// Client-executed terminals.
	due     notices[*Link] // the connections that are to be told
	watch   watchState
	input   input
	Printed string    // the first URL of its machine that the running command has printed
	keep    parkTerms // what its owner allows while the machine is away

	feeds map[string]*feed // the nodes that follow it, by id; nil if there are none

	Unwatched time.Time // when an agent last began or ended watching, or a subscription last ended

	Ports ports.Lent

	audience  rights.Audience
	Subject   *rights.Subject  // see publish; never nil
	Withdrawn []rights.Grantee // grantees whose grants an administrator has ended
	number    int64            // number in the order of creation; never changes
	listers   []*Lister        // the listers that show it

	// For readers.
	ID              string // IDOf its first URI; never changes
	Name            string // the name with which it was announced
	Created, exited time.Time
	Moved           change.Signal // raised when text, a mark, or the right to see it was added or removed
	waits           []*waiting    // the readers that wait for output
	watchers        watcherState
	agents          int // number of agents that wait for output or have subscribed to the terminal as a resource

	// For web pages: when the listed data last changed, and which state is encoded.
	rowVersion, rowEncoded int64
	row                    []byte

	memory record.Share // its part of the memory of all terminals; see weigh
}

// Remote reports whether the pty is on the client's machine.
func (t *Terminal) Remote() bool { return t.State.ExecutionTarget == ahp.TargetClient }

// OwnedBy reports whether c speaks for the owner of the client-executed terminal t.
func (t *Terminal) OwnedBy(c *Link) bool {
	return t.Remote() && c.Client == t.Creator && t.Mirror() == nil
}

// AddTerminal adds a new terminal to the catalogue.
func (b *Book) AddTerminal(uri string, creator *Client, by feeder, state ahp.TerminalState, a rights.Audience) *Terminal {
	b.envelopes.Next() // so that a snapshot of an earlier terminal with this URI is not taken for one of this terminal
	t := &Terminal{book: b, URI: uri, Channel: b.envelopes.NewChannel(uri), Creator: creator, memory: b.Memory.NewShare(),
		ID: IDOf(uri), Name: state.Title, Created: time.Now(), audience: a, Withdrawn: b.endedBefore(uri, state.Meta.Former), number: b.nextRow()}
	t.Out = output.New(b.opts.Scrollback, state, emitter{t})
	t.State = &t.Out.State
	t.feedBy(by)
	t.rowVersion = t.number
	b.ByURI[uri] = t
	b.Listed = append(b.Listed, t)
	b.ByID[t.ID] = t
	creator.terminals++
	b.count(creator.Who, 1)
	b.reindex(t)
	t.touch(inRows)
	return t
}

// remove removes t from the catalogue. Its subscribers still get everything that is
// in its log.
func (b *Book) remove(t *Terminal) {
	if t.Channel.Ended() {
		return
	}
	delete(b.ByID, t.ID)
	if t.Mirror() == nil {
		b.noteGone(t, false)
	}
	b.leave(t, nil)
	b.unlist(t)
}

// leave removes t from AHP's catalogue, and ends its channel. by feeds it then,
// unless it is a shell.
func (b *Book) leave(t *Terminal, by feeder) {
	delete(b.ByURI, t.URI)
	m := t.Mirror()
	if m != nil {
		m.fillDone()
	}
	b.former.Put(t.URI, ownerOf(t.Creator), time.Now().Add(forever))
	b.Listed = slices.DeleteFunc(b.Listed, func(o *Terminal) bool { return o == t })
	t.Creator.terminals--
	b.count(t.Creator.Who, -1)
	t.Channel.Release()
	t.stopTimers()
	if t.Remote() {
		t.feedBy(by)
	}
	t.Channel.End()
	t.weigh()
	if m == nil {
		b.SetPorts(t, nil) // its owner says them when it announces the terminal again
	}
	b.recheckPorts(t)
}

// unlist removes t from all lists that show it.
func (b *Book) unlist(t *Terminal) {
	for _, l := range t.listers {
		b.lose(l, t)
	}
	t.listers = nil
}

func (t *Terminal) stopTimers() {
	if t.watchers.timer != nil {
		t.watchers.timer.Stop()
		t.watchers.timer = nil
	}
	t.Channel.Stop()
	if t.feeder != nil {
		t.feeder.stop()
	}
}

// gone reports whether the host does not show t to anybody any more.
func (t *Terminal) gone() bool { return t.Channel.Ended() && t.Parked() == nil }

// NoCode is the exit code that clients up to 0.8 get if none is known: without a code
// they would show the terminal as running. It is never modified.
var NoCode int64 = -1

// Apply applies an action without terminal text to t and broadcasts it to the
// subscribers.
func (b *Book) Apply(t *Terminal, a ahp.Action, origin *ahp.Origin) {
	switch a := a.(type) {
	case ahp.TerminalExited:
		b.endInput(t)
		t.exited = exitTime(a)
		defer b.recheckPorts(t)
	case ahp.TerminalCleared, ahp.TerminalCommandExecuted:
		t.Printed = ""
	}
	before := *t.State
	t.Out.Apply(a, origin)
	t.Added()
	t.settleSoon()
	if before.Title != t.State.Title || before.Claim != t.State.Claim || before.Lifecycle != t.State.Lifecycle {
		t.touch(inCatalogue)
	} else {
		t.touch(inRows)
	}
}

// exitTime returns when a terminal has exited: now, unless the owner has said it.
func exitTime(a ahp.TerminalExited) time.Time {
	if at := ahp.FindTime(a.Meta, ahp.ExitedKey); !at.IsZero() {
		return at
	}
	return time.Now()
}

// Exit records that t has exited, with the code -1, unless t has exited already.
func (b *Book) Exit(t *Terminal) {
	if !t.State.Lifecycle.Exited() {
		b.Apply(t, ahp.TerminalExited{ExitCode: new(int64(-1))}, nil)
	}
}

// AckNow schedules an acknowledgement even if subscribers have not caught up.
func (t *Terminal) AckNow() {
	t.Channel.Release()
	t.watched()
	if t.Creator.Resume {
		t.Channel.AckNow(t.Out.Applied())
	}
}

// Add appends an envelope to the terminal's channel, whose subscribers w may wake.
func (t *Terminal) Add(e channel.Entry, w *channel.Wakes) {
	t.Channel.Add(e, w)
	t.Added()
}

// subs yields the subscriptions to t. None may begin or end meanwhile.
func (t *Terminal) subs(yield func(Subscriber) bool) {
	for _, s := range t.Channel.Subscriptions() {
		if !yield(s.Of.(Subscriber)) {
			return
		}
	}
}

// subscribed reports whether anybody has subscribed to t.
func (t *Terminal) subscribed() bool { return len(t.Channel.Subscriptions()) > 0 }

// maxPast is the greatest age of a start or exit time that an owner may report.
const maxPast = 366 * 24 * time.Hour

// plausible returns the time that an owner reports if it is not before earliest, not in
// the future and not older than maxPast. Otherwise the owner's clock is wrong, and it
// returns the current time, as it does without a report.
func plausible(said, earliest time.Time) time.Time {
	now := time.Now()
	if said.After(now) || said.Before(earliest) || now.Sub(said) > maxPast {
		return now
	}
	return said
}

// Timed returns an owner's action with a plausible time, and with nothing else in _meta.
func (t *Terminal) Timed(a ahp.Action) ahp.Action {
	if x, ok := a.(ahp.TerminalExited); ok {
		x.Meta = ahp.AddTime(nil, ahp.ExitedKey, plausible(ahp.FindTime(x.Meta, ahp.ExitedKey), t.Created))
		return x
	}
	return a
}
