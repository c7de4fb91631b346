package host

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
	"tether/screen"
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

func termsOf(p ahp.Park) parkTerms {
	return parkTerms{during: p.During(), loanEnd: p.LoanEnd(time.Now())}
}

// parked is the feeder of a parked terminal: nothing, until the machine is back.
type parked struct {
	since   time.Time // when the machine went away
	until   time.Time
	timer   *time.Timer
	revoked func() bool // stops waiting for the end of the machine's token
	dropped string      // why its text was dropped; empty while it is kept
	of      *mirror     // what is known of it if another node keeps it, else nil
}

// Why a parked terminal has no text.
const (
	droppedForMemory = "the host needed its memory for other terminals"
	droppedWithNode  = "the node of the host that kept it is not reached"
)

func (p *parked) stop() {
	p.timer.Stop()
	p.revoked()
	if p.of != nil {
		p.of.stop()
	}
}

// everyLocked yields all terminals that the host's own doors know: those of AHP's
// catalogue, and parked ones. The loop must not add or remove any.
func (h *Host) everyLocked() iter.Seq[*terminal] {
	return func(yield func(*terminal) bool) {
		for _, all := range [][]*terminal{h.order, h.parked} {
			for _, t := range all {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// parkUntilLocked returns until when an orphaned terminal may be kept: for the shorter of
// the times that its owner and the host allow, and not beyond its loan. It returns the
// zero time if the terminal must not be kept.
func (h *Host) parkUntilLocked(t *terminal, o *orphaned) time.Time {
	during := min(h.opts.Park, t.keep.during)
	if during <= 0 || !t.creator.resume || h.names.Known(t.creator.principal).Err() != nil {
		return time.Time{}
	}
	until := o.since.Add(during)
	if end := t.keep.loanEnd; !end.IsZero() && end.Before(until) {
		until = end
	}
	return until
}

// parkLocked removes a terminal whose machine is away from AHP's catalogue, and keeps it
// for the host's own doors. If one machine would have too many parked terminals, the one
// that has been away longest is dropped.
func (h *Host) parkLocked(t *terminal, p *parked) {
	own, first := 0, (*terminal)(nil)
	for _, o := range h.parked {
		if ownerOf(o.creator) == ownerOf(t.creator) {
			first = cmp.Or(first, o)
			own++
		}
	}
	if own >= h.opts.MaxTerminals {
		h.unparkLocked(first, "the machine has too many parked terminals")
	}
	if len(h.parked) >= allTerminals*h.opts.MaxConnections {
		h.unparkLocked(h.parked[0], "the host has too many parked terminals")
	}
	if !t.state.Lifecycle.Exited() { // only for AHP: readers at the host's own doors wait for the machine
		t.addLocked(channel.Entry{Piece: h.pieceLocked(t.uri, ahp.TerminalExited{ExitCode: &noCode}, nil), At: t.out.End(), Here: true}, nil)
	}
	over := func(why string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.parked() == p && !h.closed {
			h.unparkLocked(t, why)
		}
	}
	p.timer = time.AfterFunc(max(0, time.Until(p.until)), func() { over("its time is up") })
	p.revoked = context.AfterFunc(h.names.Known(t.creator.principal), func() { over("its machine's token was revoked or has expired") })
	h.leaveLocked(t, p)
	h.parked = append(h.parked, t)
	h.trimParkedLocked(t)
	t.touch(inCatalogue)
	h.log.Info().Str("terminal", t.uri).Time("until", p.until).Msg("terminal parked: its machine is away")
}

// unparkLocked ends a parked terminal for good. Whoever waits for it sees an exit, as at
// a host without parking when a machine does not come back.
func (h *Host) unparkLocked(t *terminal, why string) {
	if m := t.mirror(); m != nil {
		m.fillDone()
	} else {
		h.noteGoneLocked(t, false)
	}
	h.unlistParkedLocked(t, nil)
	delete(h.byID, t.id)
	if !t.state.Lifecycle.Exited() {
		t.out.Abandon(ahp.TerminalExited{ExitCode: &noCode})
		t.exited = time.Now()
		h.endInputLocked(t)
	}
	t.moved.Raise()
	t.weigh()
	h.unlistLocked(t)
	h.log.Info().Str("terminal", t.uri).Str("why", why).Msg("parked terminal dropped")
}

// unlistParkedLocked removes t from the parked terminals. by feeds it then.
func (h *Host) unlistParkedLocked(t *terminal, by feeder) {
	t.feedBy(by)
	h.parked = slices.DeleteFunc(h.parked, func(o *terminal) bool { return o == t })
}

// trimParkedLocked drops the part of a parked terminal's log that will not be sent to
// anybody any more.
func (h *Host) trimParkedLocked(t *terminal) {
	if !t.subscribed() {
		t.channel.Shrink(0)
	}
	t.weigh()
}

// dropTextLocked drops the text of a parked terminal, which stays listed with the reason.
func (h *Host) dropTextLocked(t *terminal, why string) {
	p := t.parked()
	if p.dropped != "" {
		return
	}
	p.dropped = why
	t.out.DropText()
	t.channel.Shrink(0)
	t.weigh()
	t.touch(inRows)
	t.moved.Raise()
	h.log.Info().Str("terminal", t.uri).Str("why", why).Msg("text of a parked terminal dropped")
}

// knownLocked returns the terminal with that URI, in AHP's catalogue or parked, or nil.
func (h *Host) knownLocked(uri string) *terminal {
	if t := h.terminals[uri]; t != nil {
		return t
	}
	for _, t := range h.parked {
		if t.uri == uri {
			return t
		}
	}
	return nil
}

// parkMirrorLocked parks the mirror m if its owner has done so.
func (h *Host) parkMirrorLocked(t *terminal, m *mirror, said *NodeParked) {
	if said == nil {
		return
	}
	p := t.parked()
	if p == nil {
		p = &parked{since: plausible(said.Since, time.Time{}), until: said.Until, of: m}
		h.parkLocked(t, p)
	}
	switch {
	case said.Dropped != "":
		h.dropTextLocked(t, said.Dropped)
	case p.dropped == droppedWithNode:
		p.dropped = ""
	}
}

// parkedByLocked returns the parked terminal with that URI if it belongs to the owner for
// whom c speaks, else nil.
func (h *Host) parkedByLocked(c *client, uri string) *terminal {
	if uri == "" {
		return nil
	}
	for _, t := range h.parked {
		if t.uri == uri {
			if ownerOf(t.creator) != ownerOf(c) || t.creator.principal.Owner != c.principal.Owner {
				return nil
			}
			return t
		}
	}
	return nil
}

// continueLocked puts a parked terminal back into the catalogue, under the URI by which
// its owner announces it now. by feeds it from now on.
func (h *Host) continueLocked(t *terminal, c *client, by feeder, uri string, now ahp.TerminalState, a rights.Audience) {
	h.envelopes.Next() // as for a new terminal
	former := t.uri
	t.endFeedsLocked()
	t.uri, t.channel, t.creator = uri, h.envelopes.NewChannel(uri), c
	h.unlistParkedLocked(t, by)
	for _, g := range h.endedBeforeLocked(uri, former) {
		if !slices.Contains(t.withdrawn, g) {
			t.withdrawn = append(t.withdrawn, g)
		}
	}
	t.watch, t.watchers, t.due = watchState{}, watcherState{}, notices[*conn]{}
	t.state.Claim = now.Claim
	t.state.Meta.Former = now.Meta.Former
	h.terminals[uri] = t
	i, _ := slices.BinarySearchFunc(h.order, t.number, func(t *terminal, n int64) int { return cmp.Compare(t.number, n) })
	h.order = slices.Insert(h.order, i, t)
	c.terminals++
	h.countLocked(c.principal, 0, 1)
	h.setAudienceLocked(t, a)
	h.updateLocked(t, now)
	t.weigh()
	t.touch(inCatalogue)
	h.log.Info().Str("terminal", uri).Str("former", former).Msg("parked terminal continues")
}

// shortName returns the short name of the terminal with that URI. For a terminal that
// continues another one, the name does not follow from its URI.
func (h *Host) shortName(uri string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.terminals[uri]; t != nil {
		return t.id
	}
	return idOf(uri)
}

// handOverParkedLocked is called when a client's machine has connected to another node,
// which owns its terminals from now on. Terminals that are parked here stay until that
// node reports what has happened to them.
func (h *Host) handOverParkedLocked(cl *client) {
	for _, t := range h.parked {
		if t.mirror() == nil && t.lentBy(cl) {
			m := &mirror{node: cl.node, epoch: cl.epoch, end: t.out.Applied()}
			t.followNode(m)
			h.noteGoneLocked(t, true)
			h.loseMirrorLocked(t, m, NodeLost)
		}
	}
}

// park serves ahp.MethodPark: the owner of a terminal has changed what it allows.
func (c *conn) park(r *jsonrpc.Request) error {
	var p ahp.ParkParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend terminals")
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	t := c.h.terminals[p.Channel]
	if t == nil || !t.ownedBy(c) {
		return errUnknownChannel
	}
	t.keep = termsOf(p.Park)
	return r.Reply(struct{}{})
}

// listParked serves ahp.MethodParked.
func (c *conn) listParked(r *jsonrpc.Request) error {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var own, others []ahp.Parked
	for _, t := range c.h.parked {
		p := t.parked()
		if !c.seesLocked(t) {
			continue
		}
		one := ahp.Parked{Channel: t.uri, ID: t.id, Machine: screen.Clean(t.creator.Machine()), Name: screen.Clean(t.name), Title: screen.Clean(t.state.Title), Dropped: p.dropped,
			AwayMs: max(0, time.Since(p.since).Milliseconds()), LeftMs: max(0, time.Until(p.until).Milliseconds()), Own: t.lentBy(c.client)}
		if one.Own {
			own = append(own, one)
		} else {
			others = append(others, one)
		}
	}
	all := append(append([]ahp.Parked{}, own...), others...)
	some := all[:min(len(all), ahp.MaxParked)]
	return r.Reply(ahp.ParkedResult{Terminals: some, More: int64(len(all) - len(some))})
}

// lentBy reports whether the client has lent the parked terminal t. It does not compare
// records, because the host may have dropped the client's record meanwhile.
func (t *terminal) lentBy(c *client) bool {
	return t.creator.id == c.id && ownerOf(t.creator) == ownerOf(c) && t.creator.principal.Owner == c.principal.Owner
}
