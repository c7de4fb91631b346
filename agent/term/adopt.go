package term

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"tether/internal/clip"
)

// Past is what a holder has of a terminal that an earlier daemon has started.
type Past struct {
	ID      ID
	Started time.Time
	Size    Size
	Meta    []byte // what the terminal gave to Held.SetMeta last
	// The holder's log has the raw range [Base, End). Daemons had the output
	// up to Taken, or up to Window bytes more.
	Base, End, Taken, Window int64
	Notes                    []Note // by ascending offset
	// Ended is that of the Spec.
	Ended func()
}

// Note is what the terminal gave to Held.Checkpoint.
type Note struct {
	Off  int64
	Text []byte
}

// Adopt takes up a terminal that an earlier daemon has left, with its log, its
// marks and its commands, which follow from what the holder has recorded: raw
// and text offsets are those of before. It returns when all that was scanned and
// the terminal is listed, or when h ended before. If ctx ends first, the
// terminal is left again.
//
// One that was never listed anywhere, because the daemon died while it started,
// is killed: nobody knows of it.
func (p *Pool) Adopt(ctx context.Context, h Held, past Past) error {
	if len(past.Meta) == 0 {
		discard(h, 0)
		return nil
	}
	if err := p.reserve(past.ID, math.MaxInt); err != nil {
		h.Close()
		return err
	}
	t := p.adopted(h, past)
	caught := t.caught
	t.caughtLocked() // nobody else has t yet
	p.start(t, past.Ended)
	select {
	case <-caught:
	case <-t.done:
	case <-t.left:
		return ErrLeft
	case <-ctx.Done():
		t.leave()
		return ctx.Err()
	}
	if !p.list(t) {
		t.leave()
		return ErrClosed
	}
	select {
	case <-t.left: // while it was being listed
		p.drop(t)
		return ErrLeft
	default:
	}
	p.changed()
	time.AfterFunc(returnWithin, t.endReturn)
	return nil
}

// returnWithin is how long after an adoption the child waits, when the log is
// full, for people and hosts to come back. Where slow hosts hold it anyway it
// waits for them as long as it does else.
const returnWithin = 3 * time.Second

// endReturn ends the wait.
func (t *Terminal) endReturn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range maxPeople {
		t.arrivedLocked(awaitedPerson(i))
	}
	for _, host := range t.lentTo {
		if t.onSlow != Hold {
			t.arrivedLocked(awaitedHost(host))
		}
	}
	t.needLocked()
}

// adopted makes the terminal as it was at the oldest place in the holder's log
// from where it can be scanned.
func (p *Pool) adopted(h Held, past Past) *Terminal {
	r := parseRecord(past.Meta)
	t := p.newTerminal(r.owner(), Spec{
		ID: past.ID, Name: cmp.Or(r.Name, string(past.ID)), Command: r.Command, Cwd: r.Cwd, Size: past.Size, Private: r.Private,
		OnSlow: r.onSlow(), IdleTimeout: time.Duration(r.IdleMs) * time.Millisecond, Leased: r.Leased, Door: clip.Text(r.Door, 16), Nonce: r.Nonce, AnyMarks: r.AnyMarks,
	}, h)
	t.started, t.visible, t.promoted = past.Started, r.Visible || r.owner() == User, r.Promoted
	if r.Started > 0 {
		t.started = time.Unix(0, r.Started)
	}
	t.secrets, t.clipboard = r.Secrets, r.Clipboard
	if len(r.Lent) > 0 {
		t.prepare()
	}
	t.keeper.keep = -1
	t.caught, t.target = make(chan struct{}), past.End
	raw, text, n := past.place()
	if raw == past.Base {
		n.countLost(r.Commands, raw)
	}
	if raw > 0 {
		t.restore(raw, text, &n)
	}
	t.recall(r.Commands, &n)
	t.expect(&r, raw)
	return t
}

// countLost makes the numbers of commands go on after those that began in what
// is lost: a number names one.
func (n *note) countLost(all []recordedOutput, base int64) {
	for _, c := range all {
		if c.Start < base {
			n.Tracker.IDs = max(n.Tracker.IDs, int64(c.N))
		}
	}
}

// expect lends a new terminal to the hosts it was lent to, and has them and the
// people who were at it hold the child from the raw offset on until they are back.
func (t *Terminal) expect(r *record, raw int64) {
	t.memos = map[string]string{}
	for _, l := range r.Lent {
		loan := l.loan(t.started)
		if !t.pool.lendable(l.Host) || loan.over() || t.pool.mayLend(t.infoLocked(), l.Host) != nil {
			continue // the pairing or the loan has ended meanwhile, or there is a rule
		}
		t.beginLoanLocked(loan)
		t.awaitLocked(awaitedHost(l.Host), raw)
		if l.Memo != "" {
			t.memos[l.Host] = l.Memo
		}
	}
	for i := range min(r.Attached, maxPeople) {
		t.awaitLocked(awaitedPerson(i), raw)
	}
}

// place chooses where to begin: at the start, or at the oldest checkpoint in
// the log. Where there is none, what is before the log is lost, and its length
// in text can only be bounded: no byte becomes more than one replacement
// character, and only as much of it as a daemon may have had needs that bound.
// So an offset never names two texts, and a host sees the gap, perhaps longer
// than it is.
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

// recall remembers the commands that began before the log, and for those that
// are to be scanned again when they were.
func (t *Terminal) recall(all []recordedOutput, n *note) {
	t.recalled = map[int]Command{}
	if n.Open != nil && !slices.ContainsFunc(all, func(o recordedOutput) bool { return o.N == n.Open.N }) {
		all = append(all, *n.Open)
	}
	for i := range all {
		c := all[i].command()
		t.recalled[c.N] = c
		if int64(c.N) > n.Tracker.IDs {
			continue // its beginning is to be scanned again
		}
		if c.End > t.log.Start() {
			c.Done, c.End, c.Duration, c.Exit = false, 0, 0, nil // its end is
		}
		t.rememberLocked(c)
	}
}

// recallTimesLocked gives a command that is scanned again the times it had.
func (t *Terminal) recallTimesLocked(c *Command) {
	if was, ok := t.recalled[c.N]; ok && was.Start == c.Start {
		c.Started = was.Started
		if c.Done && was.Done {
			c.Duration = was.Duration
		}
	}
}

// caughtLocked notes that an adopted terminal has scanned all there was.
func (t *Terminal) caughtLocked() {
	if t.caught != nil && t.log.End() >= t.target {
		close(t.caught)
		t.caught = nil
		t.recalled = nil
		t.needLocked()
	}
}

// Detach ends the pool and leaves the terminals whose holders outlive it to
// the next daemon; it kills the others. It returns how many run on, when all
// else has ended or ctx ends.
func (p *Pool) Detach(ctx context.Context) (kept int, err error) {
	p.shut()
	var wg sync.WaitGroup
	for _, t := range p.all() {
		if t.held == nil {
			continue
		}
		if t.Info().Exit == nil {
			kept++
		}
		wg.Go(func() { t.handOver(ctx) })
	}
	err = p.KillFragile(ctx)
	wg.Wait()
	return kept, errors.Join(err, p.end(ctx))
}

// handOver leaves a terminal to the next daemon with all that it can use.
func (t *Terminal) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepWithin)
	defer cancel()
	t.mu.Lock()
	t.noteLocked()
	t.mu.Unlock()
	_ = t.keep(ctx) // else the next one scans more, and knows less of commands
	t.leave()
}

// KillFragile kills the terminals that run in this process, and returns when
// they have ended or ctx ends.
func (p *Pool) KillFragile(ctx context.Context) error {
	var wg sync.WaitGroup
	all := p.all()
	errs := make([]error, len(all))
	for i, t := range all {
		if t.held == nil {
			wg.Go(func() { errs[i] = t.terminate(ctx, ReasonKilled) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Fragile returns the terminals that run in this process, and so would end
// with it.
func (p *Pool) Fragile() []Info {
	var all []Info
	for _, t := range p.all() {
		if i := t.Info(); i.Exit == nil && !i.Held {
			all = append(all, i)
		}
	}
	return all
}
