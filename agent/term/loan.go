package term

import (
	"slices"
	"time"
)

// Loan is the lending of a terminal to one host.
type Loan struct {
	Host  string
	Since time.Time
	Until time.Time // zero: for as long as the terminal is there
}

// over reports whether the time is up. Where the wall clock and the one that
// only runs while the machine is awake disagree, the earlier end counts: an
// hour does not go on after a night's sleep.
func (l *Loan) over() bool {
	return !l.Until.IsZero() && (time.Until(l.Until) <= 0 || !time.Now().Round(0).Before(l.Until.Round(0)))
}

// loanTick is how often the wall clock is looked at while a loan has an end.
const loanTick = 10 * time.Second

// loanLocked returns the loan to host, nil if there is none.
func (t *Terminal) loanLocked(host string) *Loan {
	for i := range t.loans {
		if t.loans[i].Host == host {
			return &t.loans[i]
		}
	}
	return nil
}

// lend announces the terminal at host until then, for ever if that is zero;
// it says whether that changes anything. At the end of the pairing it does
// nothing, as if it had come before.
func (t *Terminal) lend(host string, until time.Time) (changed bool, err error) {
	t.prepare()
	t.mu.Lock()
	switch {
	case t.private:
		err = ErrPrivate
	case !t.pool.lendable(host):
	case slices.Contains(t.lentTo, host):
		l := t.loanLocked(host)
		changed = !l.Until.Equal(until)
		l.Until = until
	default:
		changed = true
		t.beginLoanLocked(Loan{Host: host, Since: time.Now(), Until: until})
	}
	t.watchLoansLocked()
	t.mu.Unlock()
	if changed {
		t.changed()
	}
	return changed, err
}

func (t *Terminal) beginLoanLocked(l Loan) {
	t.lentTo = append(t.lentTo, l.Host)
	t.loans = append(t.loans, l)
	t.setVeilLocked()
}

// endLoanLocked forgets the lending to host and reports whether there was one.
func (t *Terminal) endLoanLocked(host string) bool {
	if !slices.Contains(t.lentTo, host) {
		return false
	}
	t.lentTo = slices.DeleteFunc(t.lentTo, func(h string) bool { return h == host })
	t.loans = slices.DeleteFunc(t.loans, func(l Loan) bool { return l.Host == host })
	t.setVeilLocked()
	return true
}

// watchLoansLocked has expire called when the first loan may be over. Who calls
// it has changed the loans, or is expire.
func (t *Terminal) watchLoansLocked() {
	next := time.Duration(-1)
	for i := range t.loans {
		if until := t.loans[i].Until; !until.IsZero() {
			left := min(max(time.Until(until), 0), loanTick)
			if next < 0 || left < next {
				next = left
			}
		}
	}
	switch {
	case next < 0 && t.expiry != nil:
		t.expiry.Stop()
	case next < 0 || t.released:
	case t.expiry == nil:
		t.expiry = time.AfterFunc(next, t.expire)
	default:
		t.expiry.Reset(next)
	}
}

// expire withdraws the terminal from the hosts whose time is up.
func (t *Terminal) expire() {
	var over []string
	t.mu.Lock()
	for i := range t.loans {
		if t.loans[i].over() {
			over = append(over, t.loans[i].Host)
		}
	}
	t.mu.Unlock()
	for _, host := range over {
		if _, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: "its time was up"})
		}
	}
	t.mu.Lock()
	t.watchLoansLocked()
	t.mu.Unlock()
}

// Expire withdraws what is lent for a time that has passed. The machine may
// have slept: who hears of that calls it.
func (p *Pool) Expire() {
	for _, t := range p.all() {
		t.expire()
	}
}
