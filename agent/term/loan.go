package term

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

// Loan is the lending of a terminal to one host.
type Loan struct {
	Host  string
	Since time.Time
	At    int64     // text offset before which it had not begun; negative if that is not known
	Until time.Time // zero: for as long as the terminal exists
	// Audience is the audience at the host. Version changes whenever Audience, Until or
	// Ports does; it is not 0.
	Audience Audience
	Version  uint64
	// Shares let guests with a link watch. The slice is never changed.
	Shares []Share
	// Ports are open to the audience. The slice is never changed.
	Ports []LentPort
}

// over reports whether the loan has expired. If the wall clock and the clock that only
// runs while the machine is awake disagree, the earlier end counts: a loan for an hour
// does not continue after a night's sleep.
func (l *Loan) over() bool {
	return !l.Until.IsZero() && (time.Until(l.Until) <= 0 || !time.Now().Round(0).Before(l.Until.Round(0)))
}

// loanTick is how often the wall clock is read while a loan has an end.
const loanTick = 10 * time.Second

// lending lists the hosts to which the terminal is lent, and dependent state. Only
// beginLoanLocked and endLoanLocked add and remove hosts, and they update the redaction.
// Guarded by the terminal's mutex.
type lending struct {
	to         []string
	loans      []Loan            // of to, in the same order
	linkStates map[string]string // by host, see Handle.SaveLinkState
	ended      []recordedLoan    // loans that are over, with the link state of a host that may not know that yet
	expiry     *time.Timer       // runs expire; nil before the first loan that ends
	version    uint64            // of the loan that changed last
	uses       map[*portUse]struct{}
}

func (l *lending) has(host string) bool { return slices.Contains(l.to, host) }

// loan returns the loan to host, or nil.
func (l *lending) loan(host string) *Loan {
	for i := range l.loans {
		if l.loans[i].Host == host {
			return &l.loans[i]
		}
	}
	return nil
}

// over returns the hosts whose loans have expired.
func (l *lending) over() (hosts []string) {
	for i := range l.loans {
		if l.loans[i].over() {
			hosts = append(hosts, l.loans[i].Host)
		}
	}
	return hosts
}

// due returns the time until the first loan, port or share may be over; some is false if
// none has an end.
func (l *lending) due() (next time.Duration, some bool) {
	add := func(until time.Time) {
		left := min(max(time.Until(until), 0), loanTick)
		if !some || left < next {
			next, some = left, true
		}
	}
	for i := range l.loans {
		if until := l.loans[i].Until; !until.IsZero() {
			add(until)
		}
		for _, s := range l.loans[i].Shares {
			if !s.Ended {
				add(s.Until)
			}
		}
		for _, p := range l.loans[i].Ports {
			if !p.Until.IsZero() {
				add(p.Until)
			}
		}
	}
	return next, some
}

func (t *Terminal) beginLoanLocked(loan Loan) {
	l := &t.lending
	l.version++
	loan.Version = l.version
	l.to, l.loans = append(l.to, loan.Host), append(l.loans, loan)
	l.ended = slices.DeleteFunc(l.ended, func(r recordedLoan) bool { return r.Host == loan.Host })
	t.log.SetLent(len(l.to) > 0)
}

// endLoanLocked removes the loan to host and reports whether there was one.
func (t *Terminal) endLoanLocked(host string) bool {
	l := &t.lending
	if !l.has(host) {
		return false
	}
	l.to = slices.DeleteFunc(l.to, func(h string) bool { return h == host })
	l.loans = slices.DeleteFunc(l.loans, func(loan Loan) bool { return loan.Host == host })
	t.log.SetLent(len(l.to) > 0)
	t.checkPortsLocked()
	return true
}

// lend announces the terminal at host, or changes its loan there. It returns the loan,
// and whether that has changed. It does nothing for a host whose pairing is ending, as if
// the end of the pairing had already withdrawn the terminal. It does nothing and returns
// moved if the shell has left cwd, the directory for which lending was allowed.
func (t *Terminal) lend(host string, c LoanChange, cwd string) (loan Loan, changed, moved bool, err error) {
	t.prepare()
	t.mu.Lock()
	switch {
	case t.log.Cwd() != cwd:
		moved = true
	case t.origin.private:
		err = ErrPrivate
	case !t.pool.lendable(host):
	default:
		loan, changed, err = t.lendLocked(host, c)
	}
	t.watchLoansLocked()
	t.mu.Unlock()
	if changed {
		t.changed()
	}
	return loan, changed, moved, err
}

func (t *Terminal) lendLocked(host string, c LoanChange) (loan Loan, changed bool, err error) {
	l := t.lending.loan(host)
	if l == nil {
		l, changed = &Loan{Host: host, Since: time.Now(), At: t.log.TextAt(t.log.End())}, true
	}
	if changed && c.Share != nil {
		c.Audience.GuestsOnly = new(true) // only the guest may watch
	}
	if c.Share != nil && len(l.Shares) >= MaxShares {
		return Loan{}, false, fmt.Errorf("%w: a terminal may have %d for one host", ErrTooManyShares, MaxShares)
	}
	ports, other, err := l.changedPorts(c.Ports, c.DropPorts)
	if err != nil {
		return Loan{}, false, err
	}
	if different, err := t.setAudienceLocked(l, c.Audience); err != nil {
		return Loan{}, false, err
	} else if different || other || c.Share != nil {
		changed = true
	}
	if other {
		t.setPortsLocked(l, ports)
	}
	if c.Share != nil {
		t.addShareLocked(l, *c.Share)
	}
	if c.Until != nil && !l.Until.Equal(*c.Until) {
		t.lending.version++ // the host may have been told when the loan ends
		l.Until, l.Version, changed = *c.Until, t.lending.version, true
	}
	if !t.lending.has(host) {
		t.beginLoanLocked(*l)
	}
	return *t.lending.loan(host), changed, nil
}

// withdraw ends the lending to host. It returns whether there was a loan, with which
// ports, and how many people were attached at that moment: the effect of a disposal
// depends on that.
func (t *Terminal) withdraw(host string) (attached int, ports []LentPort, was bool) {
	t.mu.Lock()
	if l := t.lending.loan(host); l != nil {
		ports = l.Ports
	}
	was = t.withdrawLocked(host)
	attached = t.ownership.attached
	t.mu.Unlock()
	if was {
		t.changed()
	}
	return attached, ports, was
}

// withdrawLocked is withdraw for a caller that calls changed afterwards.
func (t *Terminal) withdrawLocked(host string) (was bool) {
	if was = t.endLoanLocked(host); was {
		t.lending.rememberEnd(host, t.lending.linkStates[host])
		delete(t.lending.linkStates, host)
		t.log.Arrived(awaitedHost(host))
		t.needLocked()
		t.log.CloseOf(host)
		t.tellLocked()
	}
	return was
}

// rememberEnd keeps the link state of a host whose loan is over. The next daemon tells
// the host, if this one cannot. The record says that the loan ended at the epoch, so that
// a clock that is set back does not revive it.
func (l *lending) rememberEnd(host, state string) {
	if state != "" {
		l.ended = append(l.ended, recordedLoan{Host: host, LinkState: state, Until: 1})
	}
}

// watchLoansLocked schedules expire for the end of the first loan. It is called after
// loans have changed, and by expire.
func (t *Terminal) watchLoansLocked() {
	next, some := t.lending.due()
	switch {
	case !some && t.lending.expiry != nil:
		t.lending.expiry.Stop()
	case !some || t.share.released:
	case t.lending.expiry == nil:
		t.lending.expiry = time.AfterFunc(next, t.expire)
	default:
		t.lending.expiry.Reset(next)
	}
}

// expire withdraws the terminal from the hosts whose loans have expired, and ends expired
// shares and ports.
func (t *Terminal) expire() {
	t.expireShares()
	t.expirePorts()
	t.mu.Lock()
	over := t.lending.over()
	t.mu.Unlock()
	for _, host := range over {
		if _, ports, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: ended("the lending time was up", ports...)})
		}
	}
	t.mu.Lock()
	t.watchLoansLocked()
	t.mu.Unlock()
}

// Expire ends expired loans. It is called after the machine has slept.
func (p *Pool) Expire() {
	for _, t := range p.all() {
		t.expire()
	}
}

// forbiddenDirectory is the detail of an Act that ends a lending because of the shell's
// new directory.
const forbiddenDirectory = "a lend rule forbids its directory"

// recheckLendingLocked starts a goroutine that calls recheckLending, because the
// directory of a lent terminal has changed. It does not call it here, under the lock,
// because a rule may need the disk. The check is for this directory, even if the shell
// has moved on by then. While an adopted terminal scans old output, with directories of
// the past, it does nothing: Adopt checks afterwards.
func (t *Terminal) recheckLendingLocked() {
	if t.pool.opts.MayLend != nil && len(t.lending.to) > 0 && !t.log.Restoring() {
		go t.recheckLending(t.infoLocked())
	}
}

// recheckLending withdraws the terminal from the hosts to which it may not be lent in the
// directory that i gives.
func (t *Terminal) recheckLending(i Info) {
	for _, host := range i.LentTo {
		if t.pool.mayLend(i, host) == nil {
			continue
		}
		if _, ports, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: ended(forbiddenDirectory, ports...)})
		}
	}
}

// SaveLinkState keeps a text of at most 1 KiB for the actor, a host's link, for as long
// as the terminal is lent there. If the terminal outlives this daemon, the next daemon
// gets the text. SaveLinkState returns when that is certain, or ctx ends. ErrNotFound
// means that the terminal is not lent there.
func (h Handle) SaveLinkState(ctx context.Context, text string) error {
	t := h.t
	text = clip.Text(text, maxLinkState)
	t.mu.Lock()
	lent := t.lending.has(h.actor.Name)
	certain := t.lending.linkStates[h.actor.Name] == text && !t.keeper.running // while saver runs, the text may be on its way to the holder
	if lent && !certain {
		if t.lending.linkStates == nil {
			t.lending.linkStates = map[string]string{}
		}
		t.lending.linkStates[h.actor.Name] = text
	}
	t.mu.Unlock()
	switch {
	case !lent:
		return ErrNotFound
	case certain:
		return nil
	}
	return t.keep(ctx)
}

// Ended returns what the actor, a host's link, stored with SaveLinkState for adopted
// terminals that are no longer lent to it: their lending ended while no daemon could tell
// the host. Each text is returned once, and Changed reports new ones.
func (a Access) Ended() []string {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	texts := a.pool.ended[a.actor.Name]
	delete(a.pool.ended, a.actor.Name)
	return texts
}

// LinkState returns the text of the last SaveLinkState, or "".
func (h Handle) LinkState() string {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.linkStates[h.actor.Name]
}

// OnDispose is the effect of a host's disposal on the terminal.
type OnDispose string

// The choices of the configuration key on_dispose.
const (
	DisposeAuto   OnDispose = "auto"   // withdraw while a person is attached, else kill
	DisposeKill   OnDispose = "kill"   // kill it, even while a person is attached
	DisposeUnlend OnDispose = "unlend" // only withdraw it; it runs on here
)

// Dispose carries out a disposal by the actor, a host, as the person has configured: it
// withdraws the terminal from the host in any case, and kills it unless how keeps it.
// killed reports whether it does.
func (h Handle) Dispose(ctx context.Context, how OnDispose) (killed bool, err error) {
	if err := h.allow(OpDispose); err != nil {
		return false, err
	}
	attached, ports, was := h.t.withdraw(h.actor.Name)
	if !was {
		return false, ErrNotFound // withdrawn by another call meanwhile
	}
	if how == DisposeUnlend || how != DisposeKill && attached > 0 {
		return false, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: ended("the terminal runs on here", ports...)}, nil)
	}
	return true, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: ended("the terminal was killed", ports...)}, h.t.terminate(ctx, vocab.ExitKilled))
}
