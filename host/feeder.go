package host

import (
	"time"

	"tether/ahp"
	"tether/host/shells"
)

// feeder is where the output of a terminal comes from, with what is true of that source
// alone. feedBy and followNode change it. A nil feeder is that of a removed terminal. All
// are guarded by the host's mutex.
//
//	client-executed:  served ⇄ orphaned → parked, if the owner allows it → nil
//	                  parked → served, under another URI, when the owner is back
//	                  each of them ⇄ mirror, when the machine is at another node; a parked one keeps its mirror
//	server-executed:  process, for ever
type feeder interface {
	stop() // stops its timers
}

// served is a terminal whose owner is connected to this node.
type served struct{ conn *conn }

// orphaned is a terminal whose owner is away and may come back.
type orphaned struct {
	since time.Time
	grace *time.Timer // ends the wait; nil when the host is being closed
}

// process is the shell of a server-executed terminal. It is never replaced, so that it
// may be used without the mutex.
type process struct{ proc shells.Process }

func (served) stop()  {}
func (process) stop() {}

func (o *orphaned) stop() {
	if o.grace != nil {
		o.grace.Stop()
		o.grace = nil
	}
}

// feedBy makes f the feeder of t.
func (t *terminal) feedBy(f feeder) {
	if t.feeder != nil {
		t.feeder.stop()
	}
	t.feeder = f
	t.sourced()
}

// sourced tells the channel of t whose text it shows, and who wants acknowledgements.
func (t *terminal) sourced() {
	t.channel.Owner = 0
	if t.remote() && t.mirror() == nil {
		t.channel.Owner = t.creator.party
	}
	t.channel.Bind(nil)
	if c := t.bound(); c != nil {
		t.channel.Bind(c.out)
	}
}

// bound returns the connection through which the owner serves t, nil if there is none.
func (t *terminal) bound() *conn {
	s, _ := t.feeder.(served)
	return s.conn
}

// mirror returns what this node knows of t if it is another node's, else nil.
func (t *terminal) mirror() *mirror {
	switch f := t.feeder.(type) {
	case *mirror:
		return f
	case *parked:
		return f.of
	}
	return nil
}

// parked returns what is only true of a parked terminal, nil if t is not parked.
func (t *terminal) parked() *parked {
	p, _ := t.feeder.(*parked)
	return p
}

// proc returns the process of a server-executed terminal, nil for others.
func (t *terminal) proc() shells.Process {
	p, _ := t.feeder.(process)
	return p.proc
}

// isAway reports whether the machine of a lent terminal, or its node, is not connected.
func (t *terminal) isAway() bool {
	switch f := t.feeder.(type) {
	case served, process:
		return false
	case *mirror:
		return f.lost || f.away
	}
	return true
}

// away returns since when a terminal is away, and why if the reason is not that its
// machine is disconnected.
func (t *terminal) away() (since time.Time, why string) {
	switch f := t.feeder.(type) {
	case *orphaned:
		since = f.since
	case *parked:
		since = f.since
	case *mirror:
		since = f.since
	}
	if m := t.mirror(); m != nil && m.lost {
		why = nodeNotReached
	}
	return since, why
}

// bindLocked makes c the connection on which the owner serves t.
func (t *terminal) bindLocked(c *conn) {
	if t.bound() != c {
		t.feedBy(served{c})
		t.touchPresence()
	}
}

// orphanLocked handles the end of the connection that served t. If the owner negotiated
// resume, the terminal waits for it; otherwise it counts as exited.
func (h *Host) orphanLocked(t *terminal) {
	o := &orphaned{since: time.Now()}
	t.feedBy(o)
	t.touchPresence()
	switch {
	case h.closed:
		return
	case !t.creator.resume:
		h.abandonLocked(t)
		return
	}
	grace := h.opts.Grace
	if end := t.keep.loanEnd; !end.IsZero() {
		grace = min(grace, max(0, time.Until(end)))
	}
	h.afterLocked(&o.grace, grace, func() { h.abandonLocked(t) })
}

// abandonLocked parks a terminal whose owner did not come back, or ends and removes it if
// it must not be parked. It also ends mirrors whose node did not come back.
func (h *Host) abandonLocked(t *terminal) {
	switch f := t.feeder.(type) {
	case *parked:
		h.unparkLocked(t, "its node has not come back")
		return
	case *orphaned:
		if until := h.parkUntilLocked(t, f); time.Now().Before(until) {
			h.parkLocked(t, &parked{since: f.since, until: until})
			return
		}
	}
	h.exitLocked(t)
	h.removeLocked(t)
}

// followNode makes t another node's, which feeds it from now on; a parked terminal stays
// parked.
func (t *terminal) followNode(m *mirror) {
	if p := t.parked(); p != nil {
		p.of = m
		t.sourced()
	} else {
		t.feedBy(m)
	}
	t.channel.Release()
	t.due = notices[*conn]{}
	t.endFeedsLocked()
}

// arriveLocked makes this node the owner of a terminal after its machine has connected.
// The terminal is away until the machine announces it.
func (h *Host) arriveLocked(t *terminal) {
	if m := t.mirror(); m != nil {
		if !m.fed && t.state.Lifecycle.Exited() { // this node may lack the end of its text
			t.state.Lifecycle, t.exited = ahp.Lifecycle{Status: ahp.StatusRunning}, time.Time{}
		}
		m.stop()
		p := t.parked()
		if p != nil {
			p.of = nil
			t.sourced()
		}
		t.channel.Release()
		m.fillDone()
		t.moved.Raise()
		if p == nil {
			h.orphanLocked(t)
		}
	}
	t.touch(inRows)
}
