package host

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

// terminal is one terminal. Guarded by the host's mutex.
type terminal struct {
	host    *Host // set once
	uri     string
	channel *channel.Channel
	feeder  feeder
	creator *client // for a client-executed terminal, its owner; changes only when a parked one is continued
	out     *output.Log
	state   *ahp.TerminalState // of out

	// Client-executed terminals.
	due     notices[*conn] // the connections that are to be told
	watch   watchState
	input   input
	printed string    // the first URL of its machine that the running command has printed
	keep    parkTerms // what its owner allows while the machine is away

	feeds map[string]*feed // the nodes that follow it, by id; nil if there are none

	unwatched time.Time // when an agent last began or ended watching, or a subscription last ended

	ports ports.Lent

	audience  rights.Audience
	subject   *rights.Subject  // see publishLocked; never nil
	withdrawn []rights.Grantee // grantees whose grants an administrator has ended
	number    int64            // number in the order of creation; never changes
	listers   []*lister        // the listers that show it

	// For readers.
	id              string // idOf its first URI; never changes
	name            string // the name with which it was announced
	created, exited time.Time
	moved           change.Signal     // raised when text, a mark, or the right to see it was added or removed
	waits           []*awaitingReader // the readers that wait for output
	watchers        watcherState
	agents          int // number of agents that wait for output or have subscribed to the terminal as a resource

	// For web pages: when the listed data last changed, and which state is encoded.
	rowVersion, rowEncoded int64
	row                    []byte

	memory record.Share // its part of the memory of all terminals; see weigh
}

// remote reports whether the pty is on the client's machine.
func (t *terminal) remote() bool { return t.state.ExecutionTarget == ahp.TargetClient }

// ownedBy reports whether c speaks for the owner of the client-executed terminal t.
func (t *terminal) ownedBy(c *conn) bool {
	return t.remote() && c.client == t.creator && t.mirror() == nil
}

// addTerminalLocked adds a new terminal to the catalogue.
func (h *Host) addTerminalLocked(uri string, creator *client, by feeder, state ahp.TerminalState, a rights.Audience) *terminal {
	h.envelopes.Next() // so that a snapshot of an earlier terminal with this URI is not taken for one of this terminal
	t := &terminal{host: h, uri: uri, channel: h.envelopes.NewChannel(uri), creator: creator, memory: h.memory.NewShare(),
		id: idOf(uri), name: state.Title, created: time.Now(), audience: a, withdrawn: h.endedBeforeLocked(uri, state.Meta.Former), number: h.nextRowLocked()}
	t.out = output.New(h.opts.Scrollback, state, emitter{t})
	t.state = &t.out.State
	t.feedBy(by)
	t.rowVersion = t.number
	h.terminals[uri] = t
	h.order = append(h.order, t)
	h.byID[t.id] = t
	creator.terminals++
	h.countLocked(creator.principal, 0, 1)
	h.reindexLocked(t)
	t.touch(inRows)
	return t
}

// removeLocked removes t from the catalogue. Its subscribers still get everything that is
// in its log.
func (h *Host) removeLocked(t *terminal) {
	if t.channel.Ended() {
		return
	}
	delete(h.byID, t.id)
	if t.mirror() == nil {
		h.noteGoneLocked(t, false)
	}
	h.leaveLocked(t, nil)
	h.unlistLocked(t)
}

// leaveLocked removes t from AHP's catalogue, and ends its channel. by feeds it then,
// unless it is a shell.
func (h *Host) leaveLocked(t *terminal, by feeder) {
	delete(h.terminals, t.uri)
	m := t.mirror()
	if m != nil {
		m.fillDone()
	}
	h.former.Put(t.uri, ownerOf(t.creator), time.Now().Add(forever))
	h.order = slices.DeleteFunc(h.order, func(o *terminal) bool { return o == t })
	t.creator.terminals--
	h.countLocked(t.creator.principal, 0, -1)
	t.channel.Release()
	t.stopTimersLocked()
	if t.remote() {
		t.feedBy(by)
	}
	t.channel.End()
	t.weigh()
	if m == nil {
		h.setPortsLocked(t, nil) // its owner says them when it announces the terminal again
	}
	h.recheckPortsLocked(t)
}

// unlistLocked removes t from all lists that show it.
func (h *Host) unlistLocked(t *terminal) {
	for _, l := range t.listers {
		h.loseLocked(l, t)
	}
	t.listers = nil
}

func (t *terminal) stopTimersLocked() {
	if t.watchers.timer != nil {
		t.watchers.timer.Stop()
		t.watchers.timer = nil
	}
	t.channel.Stop()
	if t.feeder != nil {
		t.feeder.stop()
	}
}

// gone reports whether the host does not show t to anybody any more.
func (t *terminal) gone() bool { return t.channel.Ended() && t.parked() == nil }

// noCode is the exit code that clients up to 0.8 get if none is known: without a code
// they would show the terminal as running. It is never modified.
var noCode int64 = -1

// applyLocked applies an action without terminal text to t and broadcasts it to the
// subscribers.
func (h *Host) applyLocked(t *terminal, a ahp.Action, origin *ahp.Origin) {
	switch a := a.(type) {
	case ahp.TerminalExited:
		h.endInputLocked(t)
		t.exited = exitTime(a)
		defer h.recheckPortsLocked(t)
	case ahp.TerminalCleared, ahp.TerminalCommandExecuted:
		t.printed = ""
	}
	before := *t.state
	t.out.Apply(a, origin)
	t.addedLocked()
	t.settleSoonLocked()
	if before.Title != t.state.Title || before.Claim != t.state.Claim || before.Lifecycle != t.state.Lifecycle {
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

// exitLocked records that t has exited, with the code -1, unless t has exited already.
func (h *Host) exitLocked(t *terminal) {
	if !t.state.Lifecycle.Exited() {
		h.applyLocked(t, ahp.TerminalExited{ExitCode: new(int64(-1))}, nil)
	}
}

// ackNowLocked schedules an acknowledgement even if subscribers have not caught up.
func (t *terminal) ackNowLocked() {
	t.channel.Release()
	t.watchedLocked()
	if t.creator.resume {
		t.channel.AckNow(t.out.Applied())
	}
}

// addLocked appends an envelope to the terminal's channel, whose subscribers w may wake.
func (t *terminal) addLocked(e channel.Entry, w *channel.Wakes) {
	t.channel.Add(e, w)
	t.addedLocked()
}

// subs yields the subscriptions to t. None may begin or end meanwhile.
func (t *terminal) subs(yield func(*subscription) bool) {
	for _, s := range t.channel.Subscriptions() {
		if !yield(s.Of.(*subscription)) {
			return
		}
	}
}

// subscribed reports whether anybody has subscribed to t.
func (t *terminal) subscribed() bool { return len(t.channel.Subscriptions()) > 0 }

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

// timed returns an owner's action with a plausible time, and with nothing else in _meta.
func (t *terminal) timed(a ahp.Action) ahp.Action {
	if x, ok := a.(ahp.TerminalExited); ok {
		x.Meta = ahp.AddTime(nil, ahp.ExitedKey, plausible(ahp.FindTime(x.Meta, ahp.ExitedKey), t.created))
		return x
	}
	return a
}
