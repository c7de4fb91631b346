package term

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tether/agent/redact"
	"tether/internal/clip"
)

// Loan is the lending of a terminal to one host.
type Loan struct {
	Host  string
	Since time.Time
	Until time.Time // zero: for as long as the terminal is there
	// Audience is the audience there. Version changes whenever it does, or Until; it is not 0.
	Audience Audience
	Version  uint64
	// Shares let guests with a link watch. The slice is never changed.
	Shares []Share
}

// over reports whether the time is up. Where the wall clock and the one that only runs while the machine is awake disagree, the earlier end
// counts: an hour does not go on after a night's sleep.
func (l *Loan) over() bool {
	return !l.Until.IsZero() && (time.Until(l.Until) <= 0 || !time.Now().Round(0).Before(l.Until.Round(0)))
}

// loanTick is how often the wall clock is looked at while a loan has an end.
const loanTick = 10 * time.Second

// lending lists the hosts to which the terminal is lent, and dependent state. Only beginLoanLocked and endLoanLocked add and remove hosts,
// and they update the redaction. Guarded by the terminal's mutex.
type lending struct {
	to         []string
	loans      []Loan            // of to, in the same order
	linkStates map[string]string // by host, see Handle.SaveLinkState
	ended      []recordedLoan    // loans that are over, with the state of a host that may not know it
	expiry     *time.Timer       // runs expire; nil before the first loan that ends
	version    uint64            // of the audience that has changed last

	rules     *redact.Rules // of the redaction; nil before prepare, and if there are none
	redaction *redaction    // nil while nobody needs it, or there are no rules
	outward   int           // readers of ViewOutward
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

// over is the hosts whose time is up.
func (l *lending) over() (hosts []string) {
	for i := range l.loans {
		if l.loans[i].over() {
			hosts = append(hosts, l.loans[i].Host)
		}
	}
	return hosts
}

// due is in how long the first loan or share may be over, if some has an end.
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
	}
	return next, some
}

func (t *Terminal) beginLoanLocked(loan Loan) {
	l := &t.lending
	l.version++
	loan.Version = l.version
	l.to, l.loans = append(l.to, loan.Host), append(l.loans, loan)
	l.ended = slices.DeleteFunc(l.ended, func(r recordedLoan) bool { return r.Host == loan.Host })
	t.setRedactionLocked()
}

// endLoanLocked forgets the lending to host and reports whether there was one.
func (t *Terminal) endLoanLocked(host string) bool {
	l := &t.lending
	if !l.has(host) {
		return false
	}
	l.to = slices.DeleteFunc(l.to, func(h string) bool { return h == host })
	l.loans = slices.DeleteFunc(l.loans, func(loan Loan) bool { return loan.Host == host })
	t.setRedactionLocked()
	return true
}

// lend announces the terminal at host, or changes the loan there; it says whether that changes anything, and returns the loan. At the end
// of the pairing it does nothing, as if it had come before. moved says that its shell is not in cwd any more, for which it may be lent:
// nothing is done then.
func (t *Terminal) lend(host string, c LoanChange, cwd string) (loan Loan, changed, moved bool, err error) {
	t.prepare()
	t.mu.Lock()
	switch {
	case t.display.cwd != cwd:
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
		l, changed = &Loan{Host: host, Since: time.Now()}, true
	}
	if changed && c.Share != nil {
		yes := true
		c.Audience.GuestsOnly = &yes // for the guest alone
	}
	if c.Share != nil && len(l.Shares) >= MaxShares {
		return Loan{}, false, fmt.Errorf("%w: a terminal may have %d for one host", ErrTooManyShares, MaxShares)
	}
	if different, err := t.setAudienceLocked(l, c.Audience); err != nil {
		return Loan{}, false, err
	} else if different || c.Share != nil {
		changed = true
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

// withdraw ends the lending to host. It returns whether there was one and how many people were attached at that moment: a disposal depends
// on both.
func (t *Terminal) withdraw(host string) (attached int, was bool) {
	t.mu.Lock()
	was = t.withdrawLocked(host)
	attached = t.ownership.attached
	t.mu.Unlock()
	if was {
		t.changed()
	}
	return attached, was
}

// withdrawLocked is withdraw for who then calls changed.
func (t *Terminal) withdrawLocked(host string) (was bool) {
	if was = t.endLoanLocked(host); was {
		t.lending.rememberEnd(host, t.lending.linkStates[host])
		delete(t.lending.linkStates, host)
		t.readers.arrived(awaitedHost(host))
		t.needLocked()
		t.expelLocked(host)
		t.tellLocked()
	}
	return was
}

// rememberEnd keeps the state of a host whose loan is over for the next daemon, which tells the host if this one cannot. The record says
// that the loan ended at the epoch: no clock that is set back makes it begin again.
func (l *lending) rememberEnd(host, state string) {
	if state != "" {
		l.ended = append(l.ended, recordedLoan{Host: host, LinkState: state, Until: 1})
	}
}

// expelLocked closes the readers of a host: it must not see later output of the child.
func (t *Terminal) expelLocked(host string) {
	for r := range t.readers.open {
		if r.host == host {
			r.closeLocked()
		}
	}
}

// watchLoansLocked schedules expire for the end of the first loan. It is called after loans have changed, and by expire.
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

// expire withdraws the terminal from the hosts whose time is up, and ends such shares.
func (t *Terminal) expire() {
	t.expireShares()
	t.mu.Lock()
	over := t.lending.over()
	t.mu.Unlock()
	for _, host := range over {
		if _, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: "the lending time was up"})
		}
	}
	t.mu.Lock()
	t.watchLoansLocked()
	t.mu.Unlock()
}

// Expire withdraws expired loans. It is called after the machine has slept.
func (p *Pool) Expire() {
	for _, t := range p.all() {
		t.expire()
	}
}

// forbiddenDirectory is the detail of an Act that ends a lending for where the shell has gone.
const forbiddenDirectory = "a lend rule forbids its directory"

// recheckLendingLocked arranges a call of recheckLending if the terminal is lent, because its directory has changed. Not here, because a
// rule may need the disk; but for this directory, even if the shell has moved on by then. And not while an adopted terminal scans old
// output, which shows where its shell has been: Adopt checks after that.
func (t *Terminal) recheckLendingLocked() {
	if t.pool.opts.MayLend != nil && len(t.lending.to) > 0 && !t.adoption.underWay() {
		go t.recheckLending(t.infoLocked())
	}
}

// recheckLending withdraws the terminal from the hosts that it is not to be lent to where i says that it is.
func (t *Terminal) recheckLending(i Info) {
	for _, host := range i.LentTo {
		if t.pool.mayLend(i, host) == nil {
			continue
		}
		if _, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: forbiddenDirectory})
		}
	}
}

// SaveLinkState keeps a text of at most 1 KiB for the actor, a host's door, for as long as the terminal is lent there: also for the daemon
// after this one, if the terminal outlives this one. It returns when that is certain, or ctx ends; ErrNotFound if the terminal is not lent
// there.
func (h Handle) SaveLinkState(ctx context.Context, text string) error {
	t := h.t
	text = clip.Text(text, maxLinkState)
	t.mu.Lock()
	lent := t.lending.has(h.actor.Name)
	certain := t.lending.linkStates[h.actor.Name] == text && !t.keeper.running // it may be on its way to the holder
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

// Ended returns the state that the actor, a host's door, remembered of adopted terminals that are no longer lent to it: their lending ended
// while no daemon could tell the host. Each text is returned once, and Changed reports new ones.
func (a Access) Ended() []string {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	texts := a.pool.ended[a.actor.Name]
	delete(a.pool.ended, a.actor.Name)
	return texts
}

// LinkState returns the last SaveLinkState, or "".
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
	DisposeKill   OnDispose = "kill"   // kill it, also while a person is attached
	DisposeUnlend OnDispose = "unlend" // only withdraw it; it runs on here
)

// Dispose has the effect that the person chose for a disposal by the actor, a host: the terminal is withdrawn from it in any case and
// killed unless it is kept. killed tells which.
func (h Handle) Dispose(ctx context.Context, how OnDispose) (killed bool, err error) {
	if err := h.allow(OpDispose); err != nil {
		return false, err
	}
	attached, was := h.t.withdraw(h.actor.Name)
	if !was {
		return false, ErrNotFound // withdrawn by another call meanwhile
	}
	if how == DisposeUnlend || how != DisposeKill && attached > 0 {
		return false, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "the terminal runs on here"}, nil)
	}
	return true, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "the terminal was killed"}, h.t.terminate(ctx, ReasonKilled))
}
