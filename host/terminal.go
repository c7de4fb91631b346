package host

import (
	"slices"
	"time"

	"tether/ahp"
)

// terminal is one terminal and the channel it is shown on. Guarded by the host's mutex.
//
//	client-executed:  served (bound) ⇄ orphaned (the owner is away, grace runs) → removed
//	server-executed:  running → exited → removed, by disposal
type terminal struct {
	*channel
	creator *client           // never changes; for a client-executed terminal, its owner
	state   ahp.TerminalState // without Content
	content content

	// Client-executed terminals.
	bound   *conn       // the connection through which the owner serves it; nil while orphaned
	grace   *time.Timer // ends the orphan; nil when none runs
	applied int64       // position in the owner's stream up to which the host has its text, in UTF-8 bytes
	ack     ackState
	strip   *stripper // nil while the owner's text cannot be within a mark
	holds   bool      // the child waits for slow readers, so the slowest subscriber paces it
	watch   watchState

	unwatched time.Time // when who watches last changed by an agent, or by the end of a subscription

	proc ServerProcess // of a server-executed terminal, once started

	// For readers.
	id              string // see idOf; never changes
	name            string // that it was announced with
	created, exited time.Time
	marks           marks
	moved           chan struct{} // closed when something was added; nil when nobody waits
	agents          int           // that wait for that, or follow it as a resource

	// For pages: when what they list last changed, and as of when it is encoded.
	rowVersion, rowEncoded int64
	row                    []byte

	weight int64 // what it takes of the host's memory; see recordLocked
}

// remote reports whether the pty is at the client.
func (t *terminal) remote() bool { return t.state.ExecutionTarget == ahp.TargetClient }

// ownedBy reports whether c speaks for the owner of the client-executed terminal t.
func (t *terminal) ownedBy(c *conn) bool { return t.remote() && c.client == t.creator }

// addTerminalLocked puts a new terminal into the catalogue.
func (h *Host) addTerminalLocked(uri string, creator *client, state ahp.TerminalState) *terminal {
	h.nextSeqLocked() // so that no snapshot of an earlier terminal with this URI passes for one of this
	t := &terminal{channel: h.newChannel(uri), creator: creator, state: state, content: content{limit: h.opts.Scrollback},
		id: idOf(uri), name: state.Title, created: time.Now()}
	t.channel.term = t
	h.terminals[uri] = t
	h.order = append(h.order, t)
	creator.terminals++
	h.countLocked(creator.principal, 0, 1)
	h.rowChangedLocked(t)
	h.listChangedLocked(creator)
	return t
}

// removeLocked takes t out of the catalogue. What its subscribers have not been sent yet still reaches them.
func (h *Host) removeLocked(t *terminal) {
	if t.ended {
		return
	}
	delete(h.terminals, t.uri)
	h.former.add(t.uri, ownerOf(t.creator))
	h.order = slices.DeleteFunc(h.order, func(o *terminal) bool { return o == t })
	t.creator.terminals--
	h.countLocked(t.creator.principal, 0, -1)
	t.releaseAckLocked()
	t.stopTimersLocked()
	t.bound = nil
	t.endLocked()
	h.rowGoneLocked(t)
	h.listChangedLocked(t.creator)
}

func (t *terminal) stopTimersLocked() {
	for _, timer := range []*time.Timer{t.grace, t.ack.timer} {
		if timer != nil {
			timer.Stop()
		}
	}
	t.grace = nil
}

// noCode is the exit code for clients up to 0.8 where none is known: without one a terminal looks to them as if it ran. It never changes.
var noCode int64 = -1

// applyLocked changes t by an action that carries no text of the terminal and tells the subscribers.
func (h *Host) applyLocked(t *terminal, a ahp.Action, origin *ahp.Origin) {
	if _, ok := a.(ahp.TerminalExited); ok {
		h.endStripLocked(t)
	}
	before := t.state
	t.reduceLocked(a)
	t.markLocked(a)
	e := entry{seq: h.nextSeqLocked(), pos: t.content.end}
	e.msg = ahp.AppendEnvelope(nil, t.uri, e.seq, origin, "", ahp.AppendAction(nil, a))
	if x, ok := a.(ahp.TerminalExited); ok && x.ExitCode == nil {
		x.ExitCode = &noCode
		e.old = ahp.AppendEnvelope(nil, t.uri, e.seq, origin, "", ahp.AppendAction(nil, x))
	}
	t.addLocked(e)
	h.rowChangedLocked(t)
	if before.Title != t.state.Title || before.Claim != t.state.Claim || before.Lifecycle != t.state.Lifecycle {
		h.listChangedLocked(t.creator)
	}
}

func (t *terminal) reduceLocked(a ahp.Action) {
	switch a := a.(type) {
	case ahp.TerminalCleared:
		t.content.clear()
	case ahp.TerminalCommandExecuted:
		t.content.start(command{id: a.CommandID, line: a.CommandLine, timestamp: a.Timestamp, verified: !a.Meta.IsUnverified(), marks: t.marks.end()})
	case ahp.TerminalCommandFinished:
		t.content.finish(a.CommandID, a.ExitCode, a.DurationMs, t.marks.end())
	}
	t.state = ahp.ReduceTerminal(t.state, a)
	t.state.Content = nil
}

// exitLocked ends t with a code of the host's making, unless it has exited.
func (h *Host) exitLocked(t *terminal, code int64) {
	if !t.state.Lifecycle.Exited() {
		h.applyLocked(t, ahp.TerminalExited{ExitCode: &code}, nil)
	}
}

// bindLocked makes c the connection through which the owner serves t.
func (t *terminal) bindLocked(c *conn) {
	if t.grace != nil {
		t.grace.Stop()
		t.grace = nil
	}
	if t.bound != c {
		t.ack.due = false // what a connection before was still owed is owed no more
		c.h.rowChangedLocked(t)
	}
	t.bound = c
}

// orphanLocked is called when the connection that served t is gone. The terminal of an owner that negotiated resume waits
// for it; any other has exited.
func (h *Host) orphanLocked(t *terminal) {
	t.bound = nil
	h.rowChangedLocked(t)
	switch {
	case h.closed:
		return
	case !t.creator.resume:
		h.abandonLocked(t)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(h.opts.Grace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.grace == timer && !h.closed {
			h.abandonLocked(t)
		}
	})
	t.grace = timer
}

// abandonLocked ends and removes a terminal whose owner is gone.
func (h *Host) abandonLocked(t *terminal) {
	h.exitLocked(t, -1)
	h.removeLocked(t)
}

// maxPast bounds how long ago an owner may say that its terminal was started or has ended.
const maxPast = 366 * 24 * time.Hour

// plausible is the time that an owner says, if it may be true: not before earliest, not in the future, and no longer ago than
// maxPast. Otherwise its clock is wrong, or it says nothing, and the time is now.
func plausible(said, earliest time.Time) time.Time {
	now := time.Now()
	if said.After(now) || said.Before(earliest) || now.Sub(said) > maxPast {
		return now
	}
	return said
}

// timed is an action of a terminal's owner with a time that is plausible, and without anything else in _meta.
func (t *terminal) timed(a ahp.Action) ahp.Action {
	if x, ok := a.(ahp.TerminalExited); ok {
		x.Meta = ahp.AddTime(nil, ahp.ExitedKey, plausible(ahp.FindTime(x.Meta, ahp.ExitedKey), t.created))
		return x
	}
	return a
}
