package term

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"tether/internal/clip"
)

// Past is a holder's record of a terminal that an earlier daemon has started.
type Past struct {
	ID      ID
	Started time.Time
	Size    Size
	Meta    []byte // the terminal's last HolderPTY.SetMeta
	// The holder's log has the raw range [Base, End). Daemons had the output up to Taken, or up to Window bytes more.
	Base, End, Taken, Window int64
	Notes                    []Note // by ascending offset
	Screens                  []Note // given by the terminal to a holder that keeps them, by ascending offset
	// Exited says that the child has ended: Adopt returns when that was recorded.
	Exited bool
	// Ended is Spec.Ended.
	Ended func()
}

// Note is an argument of HolderPTY.Checkpoint.
type Note struct {
	Off  int64
	Text []byte
}

// adoption is the adoption of a terminal that an earlier daemon has left: its holder's output is scanned again. The zero value belongs to a
// terminal that was started here. Guarded by the terminal's mutex.
type adoption struct {
	caught   chan struct{}   // closed and nil when the log reaches target
	target   int64           // the end of all that was there
	recalled map[int]Command // earlier ones, by number, until caught
	sizes    []recordedSize  // earlier ones that were not scanned yet
}

func (a *adoption) underWay() bool { return a.caught != nil }

func (a *adoption) end() {
	close(a.caught)
	a.caught, a.recalled = nil, nil
}

// recallTimes gives a command that is scanned again the times it had.
func (a *adoption) recallTimes(c *Command) {
	if was, ok := a.recalled[c.N]; ok && was.Start == c.Start {
		c.Started = was.Started
		if c.Done && was.Done {
			c.Duration = was.Duration
		}
	}
}

// Adopt adopts a terminal that an earlier daemon has left, with its log, marks and commands, which follow from the holder's record: raw and
// text offsets stay the same. It returns when all output was scanned and the terminal is listed, or when h ended before. If ctx ends first,
// the terminal is left again.
//
// A terminal that was never listed anywhere, because the daemon died while starting it, is killed: nobody knows of it.
func (p *Pool) Adopt(ctx context.Context, h HolderPTY, past Past) error {
	if len(past.Meta) == 0 {
		discard(h, 0)
		return nil
	}
	r := parseRecord(past.Meta)
	if err := p.reserve(Start{ID: past.ID, Owner: r.startedBy(), Unsigned: r.Unsigned}, math.MaxInt); err != nil {
		h.Close()
		return err
	}
	t := p.adopted(h, past)
	caught := t.adoption.caught
	t.caughtLocked() // nobody else has t yet
	p.start(t, past.Ended)
	if past.Exited {
		caught = nil // and the exit follows
	}
	select {
	case <-caught:
	case <-t.life.done:
	case <-t.life.left:
		return ErrLeft
	case <-ctx.Done():
		t.leave()
		return ctx.Err()
	}
	t.watchInput()
	t.recheckLending(t.Info()) // only now is known where its shell is
	p.noteEnded(t)
	if !p.list(t) {
		t.leave()
		return ErrClosed
	}
	select {
	case <-t.life.left: // while it was being listed
		p.drop(t)
		return ErrLeft
	default:
	}
	p.changed()
	if isClosed(t.life.done) {
		p.forget() // its own end may not have found it listed
	}
	time.AfterFunc(returnWithin, t.endReturn)
	return nil
}

// returnWithin is how long after an adoption the child waits, when the log is full, for people and hosts to come back. Where slow hosts
// hold it anyway it waits for them as long as it does else.
const returnWithin = 3 * time.Second

// endReturn ends the wait.
func (t *Terminal) endReturn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range maxPeople {
		t.readers.arrived(awaitedPerson(i))
	}
	for _, host := range t.lending.to {
		if t.origin.onSlow != Hold {
			t.readers.arrived(awaitedHost(host))
		}
	}
	t.needLocked()
}

// adopted makes the terminal as it was at the oldest place in the holder's log from where it can be scanned.
func (p *Pool) adopted(h HolderPTY, past Past) *Terminal {
	r := parseRecord(past.Meta)
	t := p.newTerminal(r.owner(), Spec{
		ID: past.ID, Name: cmp.Or(r.Name, string(past.ID)), Command: r.Command, Cwd: r.Cwd, Size: past.Size, Private: r.Private,
		OnSlow: r.onSlow(), IdleTimeout: time.Duration(r.IdleMs) * time.Millisecond, TimeLimit: time.Duration(r.LimitMs) * time.Millisecond, Leased: r.Leased, Unsigned: r.Unsigned, Door: clip.Text(r.Door, 16), Nonce: r.Nonce,
	}, h)
	t.origin.started = past.Started
	t.ownership.visible, t.ownership.promoted, t.ownership.starter = r.Visible || r.owner() == User, r.Promoted, r.starter()
	if r.Started > 0 {
		t.origin.started = time.Unix(0, r.Started)
	}
	t.origin.secrets, t.origin.clipboard = r.Secrets, r.Clipboard
	if r.Exit != nil {
		t.ending.known, t.ending.reason = true, r.Exit.Reason
	}
	if len(r.Lent) > 0 {
		t.prepare()
	}
	t.keeper.keep = -1
	t.adoption = adoption{caught: make(chan struct{}), target: past.End, recalled: map[int]Command{}}
	raw, text, n := past.place()
	if raw == past.Base {
		n.countLost(r.Commands, raw)
	}
	if raw > 0 {
		t.restore(raw, text, &n)
	}
	t.takeScreens(past.Screens, raw, t.expectSizes(r.Sizes, raw, &past))
	t.recall(r.Commands, &n)
	t.expect(&r, raw)
	return t
}

// countLost continues the numbers of commands after those that began in lost output: a number names one command.
func (n *note) countLost(all []recordedOutput, base int64) {
	for _, c := range all {
		if c.Start < base {
			n.Tracker.IDs = max(n.Tracker.IDs, int64(c.N))
		}
	}
}

// expect lends a new terminal to the hosts it was lent to, and has them and the people who were at it hold the child from the raw offset on
// until they are back.
func (t *Terminal) expect(r *record, raw int64) {
	t.lending.linkStates = map[string]string{}
	for _, l := range r.Lent {
		loan := l.loan(t.origin.started)
		if !t.pool.lendable(l.Host) {
			continue // the pairing has ended meanwhile
		}
		if loan.over() {
			t.lending.rememberEnd(l.Host, l.LinkState)
			continue
		}
		t.beginLoanLocked(loan)
		t.readers.await(awaitedHost(l.Host), raw)
		if l.LinkState != "" {
			t.lending.linkStates[l.Host] = l.LinkState
		}
		if l.Heard {
			t.ending.hear(l.Host)
		}
	}
	for i := range min(r.Attached, maxPeople) {
		t.readers.await(awaitedPerson(i), raw)
	}
}

// noteEnded has the hosts told, by Access.Ended, that an adopted terminal is not lent to them any more.
func (p *Pool) noteEnded(t *Terminal) {
	t.mu.Lock()
	ended := slices.Clone(t.lending.ended)
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range ended {
		p.ended[l.Host] = append(p.ended[l.Host], l.LinkState)
	}
}

// place chooses where to begin: at the start, or at the oldest checkpoint in the log. Without one, output before the log is lost, and only
// a bound of its length in text is known: no byte becomes more than one replacement character, and only output that a daemon may have had
// needs that bound. So an offset never names two texts, and a host sees the gap, perhaps longer than it is.
func (p *Past) place() (raw, text int64, n note) {
	if p.Base == 0 {
		return 0, 0, n
	}
	off := int64(0) // of n
	for _, one := range p.Notes {
		parsed, ok := parseNote(one.Text)
		if !ok || one.Off > p.End {
			continue
		}
		if n, off = parsed, one.Off; off >= p.Base {
			return off, n.Text, n
		}
	}
	shown := max(min(p.Base, p.Taken+p.Window)-off, 0)
	n.Lost += max(p.Base-p.Taken, 0)
	n.Tracker.Seen = p.Base
	return p.Base, n.Text + p.Base - off + shown*int64(len(replacement)-1), n
}

// recall remembers the commands that began before the log, and the times of those that will be scanned again.
func (t *Terminal) recall(all []recordedOutput, n *note) {
	for _, c := range n.Open {
		if !slices.ContainsFunc(all, func(o recordedOutput) bool { return o.N == c.N }) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b recordedOutput) int { return a.N - b.N })
	for i := range all {
		c := all[i].command()
		t.adoption.recalled[c.N] = c
		if int64(c.N) > n.Tracker.IDs {
			continue // its beginning is to be scanned again
		}
		if c.End > t.stream.log.Start() {
			c.Done, c.End, c.Duration, c.Exit = false, 0, 0, nil // its end is
		}
		t.commands.remember(c, t.stream.log.Limit())
	}
}

// caughtLocked notes that an adopted terminal has scanned all there was.
func (t *Terminal) caughtLocked() {
	if t.adoption.underWay() && t.stream.log.End() >= t.adoption.target {
		t.putSizesLocked(math.MaxInt64)
		t.adoption.end()
		t.needLocked()
	}
}
