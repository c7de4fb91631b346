package terminals

import (
	"time"

	"tether/ahp"
	"tether/host/shells"
)

// feeder is where the output of a terminal comes from, with what is true of that source
// alone. feedBy and followNode change it. A nil feeder is that of a removed terminal. All
// are guarded by the host's lock.
//
//	client-executed:  served ⇄ orphaned → parked, if the owner allows it → nil
//	                  parked → served, under another URI, when the owner is back
//	                  each of them ⇄ mirror, when the machine is at another node; a parked one keeps its mirror
//	server-executed:  process, for ever
type feeder interface {
	stop() // stops its timers
}

// served is a terminal whose owner is connected to this node.
type served struct{ conn *Link }

// orphaned is a terminal whose owner is away and may come back.
type orphaned struct {
	since time.Time
	grace *time.Timer // ends the wait; nil when the host is being closed
}

// Process is the shell of a server-executed terminal. It is never replaced, so that it
// may be used without the mutex.
type Process struct{ Proc shells.Process }

func (served) stop() {}

func (Process) stop() {}

func (o *orphaned) stop() {
	if o.grace != nil {
		o.grace.Stop()
		o.grace = nil
	}
}

// feedBy makes f the feeder of t.
func (t *Terminal) feedBy(f feeder) {
	if t.feeder != nil {
		t.feeder.stop()
	}
	t.feeder = f
	t.sourced()
}

// sourced tells the channel of t whose text it shows, and who wants acknowledgements.
func (t *Terminal) sourced() {
	t.Channel.Owner = 0
	if t.Remote() && t.Mirror() == nil {
		t.Channel.Owner = t.Creator.number
	}
	t.Channel.Bind(nil)
	if c := t.Bound(); c != nil {
		t.Channel.Bind(c.Out)
	}
}

// Bound returns the connection through which the owner serves t, nil if there is none.
func (t *Terminal) Bound() *Link {
	s, _ := t.feeder.(served)
	return s.conn
}

// Mirror returns what this node knows of t if it is another node's, else nil.
func (t *Terminal) Mirror() *Mirror {
	switch f := t.feeder.(type) {
	case *Mirror:
		return f
	case *Parked:
		return f.of
	}
	return nil
}

// Parked returns what is only true of a parked terminal, nil if t is not parked.
func (t *Terminal) Parked() *Parked {
	p, _ := t.feeder.(*Parked)
	return p
}

// Proc returns the process of a server-executed terminal, nil for others.
func (t *Terminal) Proc() shells.Process {
	p, _ := t.feeder.(Process)
	return p.Proc
}

// IsAway reports whether the machine of a lent terminal, or its node, is not connected.
func (t *Terminal) IsAway() bool {
	switch f := t.feeder.(type) {
	case served, Process:
		return false
	case *Mirror:
		return f.lost || f.away
	}
	return true
}

// away returns since when a terminal is away, and why if the reason is not that its
// machine is disconnected.
func (t *Terminal) away() (since time.Time, why string) {
	switch f := t.feeder.(type) {
	case *orphaned:
		since = f.since
	case *Parked:
		since = f.Since
	case *Mirror:
		since = f.since
	}
	if m := t.Mirror(); m != nil && m.lost {
		why = nodeNotReached
	}
	return since, why
}

// Bind makes c the connection on which the owner serves t.
func (t *Terminal) Bind(c *Link) {
	if t.Bound() != c {
		t.feedBy(served{c})
		t.touchPresence()
	}
}

// Orphan handles the end of the connection that served t. If the owner negotiated
// resume, the terminal waits for it; otherwise it counts as exited.
func (b *Book) Orphan(t *Terminal) {
	o := &orphaned{since: time.Now()}
	t.feedBy(o)
	t.touchPresence()
	switch {
	case b.closed:
		return
	case !t.Creator.Resume:
		b.abandon(t)
		return
	}
	grace := b.opts.Grace
	if end := t.keep.loanEnd; !end.IsZero() {
		grace = min(grace, max(0, time.Until(end)))
	}
	b.After(&o.grace, grace, func() { b.abandon(t) })
}

// abandon parks a terminal whose owner did not come back, or ends and removes it if
// it must not be parked. It also ends mirrors whose node did not come back.
func (b *Book) abandon(t *Terminal) {
	switch f := t.feeder.(type) {
	case *Parked:
		b.Unpark(t, "its node has not come back")
		return
	case *orphaned:
		if until := b.parkUntil(t, f); time.Now().Before(until) {
			b.park(t, &Parked{Since: f.since, Until: until})
			return
		}
	}
	b.Exit(t)
	b.remove(t)
}

// followNode makes t another node's, which feeds it from now on; a parked terminal stays
// parked.
func (t *Terminal) followNode(m *Mirror) {
	if p := t.Parked(); p != nil {
		p.of = m
		t.sourced()
	} else {
		t.feedBy(m)
	}
	t.Channel.Release()
	t.due = notices[*Link]{}
	t.endFeeds()
}

// Arrive makes this node the owner of a terminal after its machine has connected.
// The terminal is away until the machine announces it.
func (b *Book) Arrive(t *Terminal) {
	if m := t.Mirror(); m != nil {
		if !m.Fed && t.State.Lifecycle.Exited() { // this node may lack the end of its text
			t.State.Lifecycle, t.exited = ahp.Lifecycle{Status: ahp.StatusRunning}, time.Time{}
		}
		m.stop()
		p := t.Parked()
		if p != nil {
			p.of = nil
			t.sourced()
		}
		t.Channel.Release()
		m.fillDone()
		t.Moved.Raise()
		if p == nil {
			b.Orphan(t)
		}
	}
	t.touch(inRows)
}
