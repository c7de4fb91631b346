package term

import (
	"cmp"
	"context"
	"math"
	"time"

	"tether/agent/output"
	"tether/internal/clip"
)

// Past is a holder's record of a terminal that an earlier daemon has started.
type Past struct {
	ID      ID
	Started time.Time
	Meta    []byte // the terminal's last HolderPTY.SetMeta
	Log     output.Past
	// Exited says that the child has ended. Adopt then returns once the exit was
	// recorded.
	Exited bool
	// Ended is Spec.Ended.
	Ended func()
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
	caught := t.life.caught
	t.mu.Lock()
	t.log.EndRestore()
	t.mu.Unlock()
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
		t.log.Arrived(awaitedPerson(i))
	}
	for _, host := range t.loans.Hosts() {
		if t.origin.onSlow != Hold {
			t.log.Arrived(awaitedHost(host))
		}
	}
	t.needLocked()
}

// adopted makes the terminal in the state that it had at the oldest offset in the
// holder's log from which the output can be scanned.
func (p *Pool) adopted(h HolderPTY, past Past) *Terminal {
	r := parseRecord(past.Meta)
	t := p.newTerminal(r.owner(), Spec{
		ID: past.ID, Name: cmp.Or(r.Name, string(past.ID)), Command: r.Command, Cwd: r.Cwd, Size: past.Log.Size, Private: r.Private,
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
	t.expect(&r, t.log.Restore(&past.Log, output.Recorded{Commands: r.Commands, Checkouts: r.Checkouts, Sizes: r.Sizes, Clipboard: r.Clipboard}))
	return t
}

// expect lends a new terminal to the hosts to which it was lent. These hosts, and the
// people who were attached, hold the child from the raw offset on until they are back.
func (t *Terminal) expect(r *meta, raw int64) {
	for i := range r.Lent {
		l := &r.Lent[i]
		if !t.pool.lendable(l.Host) || !t.loans.Restore(l, t.origin.started) {
			continue // the pairing or the loan has ended meanwhile
		}
		t.log.Await(awaitedHost(l.Host), raw)
		if l.Heard {
			t.ending.hear(l.Host)
		}
	}
	t.log.SetLent(!t.loans.Empty())
	if r.Attached > 0 {
		t.answering.Expect()
	}
	for i := range min(r.Attached, maxPeople) {
		t.log.Await(awaitedPerson(i), raw)
	}
}

// noteEnded makes Access.Ended report to hosts that an adopted terminal is not lent to
// them any more.
func (p *Pool) noteEnded(t *Terminal) {
	t.mu.Lock()
	ended := t.loans.Ended()
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range ended {
		p.ended[l.Host] = append(p.ended[l.Host], l.LinkState)
	}
}
