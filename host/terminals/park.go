package terminals

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
)

// A parked terminal is one whose machine has been away for longer than the grace time. It
// is not in AHP's catalogue any more: everybody who followed it there was told that it
// has exited. The host's own doors show it as away, with its text, until the machine is
// back. If the owner then announces a terminal with this one as its former one, that
// terminal continues it, with the same id and continuing offsets. Parked terminals are
// only in memory. Of several nodes, the node to which the machine was connected keeps the
// text; the others have mirrors, as of any terminal.

// parkTerms are the limits that the owner of a terminal sets for parking it.
type parkTerms struct {
	during  time.Duration // from when the machine went away; 0: nothing is kept beyond the grace time
	loanEnd time.Time     // when its lending ends; zero: no known end
}

// SetPark sets for how long the owner lets the terminal be parked, counted from now.
func (t *Terminal) SetPark(p ahp.Park) {
	t.keep = parkTerms{during: p.During(), loanEnd: p.LoanEnd(time.Now())}
}

// Parked is the feeder of a parked terminal: nothing, until the machine is back.
type Parked struct {
	Since   time.Time // when the machine went away
	Until   time.Time
	timer   *time.Timer
	revoked func() bool // stops waiting for the end of the machine's token
	Dropped string      // why its text was dropped; empty while it is kept
	of      *Mirror     // what is known of it if another node keeps it, else nil
}

// Why a parked terminal has no text.
const (
	droppedForMemory = "the host needed its memory for other terminals"
	droppedWithNode  = "the node of the host that kept it is not reached"
)

func (p *Parked) stop() {
	p.timer.Stop()
	p.revoked()
	if p.of != nil {
		p.of.stop()
	}
}

// Every yields all terminals that the host's own doors know: those of AHP's
// catalogue, and parked ones. The loop must not add or remove any.
func (b *Book) Every() iter.Seq[*Terminal] {
	return func(yield func(*Terminal) bool) {
		for _, all := range [][]*Terminal{b.Listed, b.Parked} {
			for _, t := range all {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// parkUntil returns until when an orphaned terminal may be kept: for the shorter of
// the times that its owner and the host allow, and not beyond its loan. It returns the
// zero time if the terminal must not be kept.
func (b *Book) parkUntil(t *Terminal, o *orphaned) time.Time {
	during := min(b.opts.Park, t.keep.during)
	if during <= 0 || !t.Creator.Resume || b.opts.Names.Known(t.Creator.Who).Err() != nil {
		return time.Time{}
	}
	until := o.since.Add(during)
	if end := t.keep.loanEnd; !end.IsZero() && end.Before(until) {
		until = end
	}
	return until
}

// park removes a terminal whose machine is away from AHP's catalogue, and keeps it
// for the host's own doors. If one machine would have too many parked terminals, the one
// that has been away longest is dropped.
func (b *Book) park(t *Terminal, p *Parked) {
	own, first := 0, (*Terminal)(nil)
	for _, o := range b.Parked {
		if ownerOf(o.Creator) == ownerOf(t.Creator) {
			first = cmp.Or(first, o)
			own++
		}
	}
	if own >= b.opts.MaxTerminals {
		b.Unpark(first, "the machine has too many parked terminals")
	}
	if len(b.Parked) >= allTerminals*b.opts.MaxConnections {
		b.Unpark(b.Parked[0], "the host has too many parked terminals")
	}
	if !t.State.Lifecycle.Exited() { // only for AHP: readers at the host's own doors wait for the machine
		t.Add(channel.Entry{Piece: b.envelopes.Piece(t.URI, ahp.TerminalExited{ExitCode: &NoCode}, nil), At: t.Out.End(), Here: true}, nil)
	}
	over := func(why string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t.Parked() == p && !b.closed {
			b.Unpark(t, why)
		}
	}
	p.timer = time.AfterFunc(max(0, time.Until(p.Until)), func() { over("its time is up") })
	p.revoked = context.AfterFunc(b.opts.Names.Known(t.Creator.Who), func() { over("its machine's token was revoked or has expired") })
	b.leave(t, p)
	b.Parked = append(b.Parked, t)
	b.trimParked(t)
	t.touch(inCatalogue)
	b.log.Info().Str("terminal", t.URI).Time("until", p.Until).Msg("terminal parked: its machine is away")
}

// Unpark ends a parked terminal for good. Whoever waits for it sees an exit, as at a
// host without parking when a machine does not come back.
func (b *Book) Unpark(t *Terminal, why string) {
	if m := t.Mirror(); m != nil {
		m.fillDone()
	} else {
		b.noteGone(t, false)
	}
	b.unlistParked(t, nil)
	delete(b.ByID, t.ID)
	if !t.State.Lifecycle.Exited() {
		t.Out.Abandon(ahp.TerminalExited{ExitCode: &NoCode})
		t.exited = time.Now()
		b.endInput(t)
	}
	t.Moved.Raise()
	t.weigh()
	b.unlist(t)
	b.log.Info().Str("terminal", t.URI).Str("why", why).Msg("parked terminal dropped")
}

// unlistParked removes t from the parked terminals. by feeds it then.
func (b *Book) unlistParked(t *Terminal, by feeder) {
	t.feedBy(by)
	b.Parked = slices.DeleteFunc(b.Parked, func(o *Terminal) bool { return o == t })
}

// trimParked drops the part of a parked terminal's log that will not be sent to
// anybody any more.
func (b *Book) trimParked(t *Terminal) {
	if !t.subscribed() {
		t.Channel.Shrink(0)
	}
	t.weigh()
}

// dropText drops the text of a parked terminal, which stays listed with the reason.
func (b *Book) dropText(t *Terminal, why string) {
	p := t.Parked()
	if p.Dropped != "" {
		return
	}
	p.Dropped = why
	t.Out.DropText()
	t.Channel.Shrink(0)
	t.weigh()
	t.touch(inRows)
	t.Moved.Raise()
	b.log.Info().Str("terminal", t.URI).Str("why", why).Msg("text of a parked terminal dropped")
}

// Known returns the terminal with that URI, in AHP's catalogue or parked, or nil.
func (b *Book) Known(uri string) *Terminal {
	if t := b.ByURI[uri]; t != nil {
		return t
	}
	for _, t := range b.Parked {
		if t.URI == uri {
			return t
		}
	}
	return nil
}

// parkMirror parks the mirror m if its owner has done so.
func (b *Book) parkMirror(t *Terminal, m *Mirror, said *NodeParked) {
	if said == nil {
		return
	}
	p := t.Parked()
	if p == nil {
		p = &Parked{Since: plausible(said.Since, time.Time{}), Until: said.Until, of: m}
		b.park(t, p)
	}
	switch {
	case said.Dropped != "":
		b.dropText(t, said.Dropped)
	case p.Dropped == droppedWithNode:
		p.Dropped = ""
	}
}

// parkedBy returns the parked terminal with that URI if it belongs to the owner for
// whom c speaks, else nil.
func (b *Book) parkedBy(c *Client, uri string) *Terminal {
	if uri == "" {
		return nil
	}
	for _, t := range b.Parked {
		if t.URI == uri {
			if ownerOf(t.Creator) != ownerOf(c) || t.Creator.Who.Owner != c.Who.Owner {
				return nil
			}
			return t
		}
	}
	return nil
}

// continueParked puts a parked terminal back into the catalogue, under the URI by which
// its owner announces it now. by feeds it from now on.
func (b *Book) continueParked(t *Terminal, c *Client, by feeder, uri string, now ahp.TerminalState, a rights.Audience) {
	b.envelopes.Next() // as for a new terminal
	former := t.URI
	t.endFeeds()
	t.URI, t.Channel, t.Creator = uri, b.envelopes.NewChannel(uri), c
	b.unlistParked(t, by)
	for _, g := range b.endedBefore(uri, former) {
		if !slices.Contains(t.Withdrawn, g) {
			t.Withdrawn = append(t.Withdrawn, g)
		}
	}
	t.watch, t.watchers, t.due = watchState{}, watcherState{}, notices[*Link]{}
	t.State.Claim = now.Claim
	t.State.Meta.Former = now.Meta.Former
	b.ByURI[uri] = t
	i, _ := slices.BinarySearchFunc(b.Listed, t.number, func(t *Terminal, n int64) int { return cmp.Compare(t.number, n) })
	b.Listed = slices.Insert(b.Listed, i, t)
	c.terminals++
	b.count(c.Who, 1)
	b.SetAudience(t, a)
	b.update(t, now)
	t.weigh()
	t.touch(inCatalogue)
	b.log.Info().Str("terminal", uri).Str("former", former).Msg("parked terminal continues")
}

// ShortName returns the short name of the terminal with that URI. For a terminal that
// continues another one, the name does not follow from its URI. It takes the lock.
func (b *Book) ShortName(uri string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.ByURI[uri]; t != nil {
		return t.ID
	}
	return IDOf(uri)
}

// handOverParked is called when a client's machine has connected to another node,
// which owns its terminals from now on. Terminals that are parked here stay until that
// node reports what has happened to them.
func (b *Book) handOverParked(cl *Client) {
	for _, t := range b.Parked {
		if t.Mirror() == nil && t.LentBy(cl) {
			m := &Mirror{Node: cl.Node, epoch: cl.Epoch, end: t.Out.Applied()}
			t.followNode(m)
			b.noteGone(t, true)
			b.loseMirror(t, m, NodeLost)
		}
	}
}

// LentBy reports whether the client has lent the parked terminal t. It does not compare
// records, because the host may have dropped the client's record meanwhile.
func (t *Terminal) LentBy(c *Client) bool {
	return t.Creator.id == c.id && ownerOf(t.Creator) == ownerOf(c) && t.Creator.Who.Owner == c.Who.Owner
}
