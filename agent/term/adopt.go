package term

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

// Past is a holder's record of a terminal that an earlier daemon has started.
type Past struct {
	ID      ID
	Started time.Time
	Size    Size
	Meta    []byte // the terminal's last HolderPTY.SetMeta
	// The holder's log has the raw range [Base, End). Earlier daemons have received the
	// output up to Taken, and perhaps up to Window bytes more.
	Base, End, Taken, Window int64
	Notes                    []Note // by ascending offset
	Screens                  []Note // given by the terminal to a holder that keeps them, by ascending offset
	// Exited says that the child has ended. Adopt then returns once the exit was
	// recorded.
	Exited bool
	// Ended is Spec.Ended.
	Ended func()
}

// Note is an argument of HolderPTY.Checkpoint.
type Note struct {
	Off  int64
	Text []byte
}

// adoption is the adoption of a terminal that an earlier daemon has left: its holder's
// output is scanned again. The zero value belongs to a terminal that was started here.
// Guarded by the terminal's mutex.
type adoption struct {
	caught   chan struct{}         // closed, and set to nil, when the log reaches target
	target   int64                 // end of the output that the holder had at the start of the adoption
	recalled map[int]vocab.Command // commands of the earlier daemons, by number; until caught is closed
	sizes    []recordedSize        // recorded sizes whose offsets were not scanned yet
}

func (a *adoption) underWay() bool { return a.caught != nil }

func (a *adoption) end() {
	close(a.caught)
	a.caught, a.recalled = nil, nil
}

// recallTimes gives a command that is scanned again the times and the checkout that an
// earlier daemon recorded.
func (a *adoption) recallTimes(c *vocab.Command) {
	if was, ok := a.recalled[c.N]; ok && was.Start == c.Start {
		c.Started, c.Checkout = was.Started, was.Checkout
		if !c.Running && !was.Running {
			c.DurationMs = was.DurationMs
		}
	}
}

// Adopt adopts a terminal that an earlier daemon has left. It restores the log, marks and
// commands from the holder's record; raw and text offsets stay the same. It returns when
// all output was scanned and the terminal is listed, or when h has ended before. If ctx
// ends first, the terminal is left to its holder again.
//
// A terminal that was never listed anywhere, because the daemon died while starting it,
// is killed: nobody knows of it.
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
	t.recheckLending(t.Info()) // the shell's present directory is known only now
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
		p.forget() // forget at its exit may have come before it was listed
	}
	time.AfterFunc(returnWithin, t.endReturn)
	return nil
}

// returnWithin is how long after an adoption the child waits, when the log is full, for
// people and hosts to come back. A terminal with OnSlow Hold waits for hosts for its
// usual stall time instead.
const returnWithin = 3 * time.Second

// endReturn ends the wait of returnWithin.
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

// adopted makes the terminal in the state that it had at the oldest offset in the
// holder's log from which the output can be scanned.
func (p *Pool) adopted(h HolderPTY, past Past) *Terminal {
	r := parseRecord(past.Meta)
	t := p.newTerminal(r.owner(), Spec{
		ID: past.ID, Name: cmp.Or(r.Name, string(past.ID)), Command: r.Command, Cwd: r.Cwd, Size: past.Size, Private: r.Private,
		OnSlow: r.onSlow(), IdleTimeout: time.Duration(r.IdleMs) * time.Millisecond, TimeLimit: time.Duration(r.LimitMs) * time.Millisecond, Leased: r.Leased, Unsigned: r.Unsigned, Port: r.Port, Door: clip.Text(r.Door, 16), Nonce: r.Nonce, Adopted: r.Adopted,
	}, h)
	t.origin.started, t.origin.short = past.Started, clip.Text(r.Short, maxName)
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
	t.adoption = adoption{caught: make(chan struct{}), target: past.End, recalled: map[int]vocab.Command{}}
	raw, text, n := past.place()
	if raw == past.Base {
		n.countLost(r.Commands, raw)
	}
	if raw > 0 {
		t.restore(raw, text, &n)
	}
	t.takeScreens(past.Screens, raw, t.expectSizes(r.Sizes, raw, &past))
	t.recall(&r, &n)
	t.expect(&r, raw)
	return t
}

// countLost makes later commands get higher numbers than those that began in lost output,
// so that a number names one command.
func (n *note) countLost(all []recordedOutput, base int64) {
	for _, c := range all {
		if c.Start < base {
			n.Tracker.IDs = max(n.Tracker.IDs, int64(c.N))
		}
	}
}

// expect lends a new terminal to the hosts to which it was lent. These hosts, and the
// people who were attached, hold the child from the raw offset on until they are back.
func (t *Terminal) expect(r *meta, raw int64) {
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
	if r.Attached > 0 {
		t.expectSeatLocked()
	}
	for i := range min(r.Attached, maxPeople) {
		t.readers.await(awaitedPerson(i), raw)
	}
}

// noteEnded makes Access.Ended report to hosts that an adopted terminal is not lent to
// them any more.
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

// place chooses where to begin: at the start, or at the oldest checkpoint in the log.
// Without a checkpoint, the output before the log is lost, and only an upper bound of its
// length as text is known: each byte became at most one replacement character. The bound
// is needed only for output that a daemon may have received. With it an offset never
// names two different texts; a host may see a longer gap than there is.
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
	return p.Base, n.Text + p.Base - off + shown*int64(len("\uFFFD")-1), n
}

// recall remembers the commands that began before the log, and the times of those that
// will be scanned again.
func (t *Terminal) recall(r *meta, n *note) {
	all := r.Commands
	for _, c := range n.Open {
		if !slices.ContainsFunc(all, func(o recordedOutput) bool { return o.N == c.N }) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b recordedOutput) int { return a.N - b.N })
	for i := range all {
		c := all[i].command()
		if at := all[i].Checkout; at > 0 && at <= len(r.Checkouts) {
			c.Checkout = &r.Checkouts[at-1]
		}
		t.adoption.recalled[c.N] = c
		if int64(c.N) > n.Tracker.IDs {
			continue // its beginning will be scanned again
		}
		if c.End > t.log.Start() {
			c.Running, c.End, c.DurationMs, c.Exit = true, 0, nil, nil // its end will be scanned again
		}
		t.commands.remember(c, t.log.Limit())
	}
}

// caughtLocked ends the adoption if all output that the holder had was scanned.
func (t *Terminal) caughtLocked() {
	if t.adoption.underWay() && t.log.End() >= t.adoption.target {
		t.putSizesLocked(math.MaxInt64)
		t.adoption.end()
		t.needLocked()
	}
}
