package loans

import (
	"slices"
	"time"

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
	Ports []vocab.LentPort
}

// over reports whether a loan, a share or a port has expired; a zero end is none. If the
// wall clock and the clock that only runs while the machine is awake disagree, the
// earlier end counts: a loan for an hour does not continue after a night's sleep.
func over(until time.Time) bool {
	return !until.IsZero() && (time.Until(until) <= 0 || !time.Now().Round(0).Before(until.Round(0)))
}

// List has the loans of one terminal, and what hosts were told of them. Guarded by its
// owner's lock.
type List struct {
	loans   []Loan
	links   map[string]string // by host, see SetLinkState
	ended   []Recorded        // loans that are over, with the link state of a host that may not know that yet
	version uint64            // of the loan that changed last
	uses    map[*use]struct{}
	over    error // why ports cannot be used any more; nil while they can
}

// All returns the loans. The slice is the caller's.
func (l *List) All() []Loan { return slices.Clone(l.loans) }

// Hosts returns the hosts of All, in the same order. The slice is the caller's.
func (l *List) Hosts() (hosts []string) {
	for i := range l.loans {
		hosts = append(hosts, l.loans[i].Host)
	}
	return hosts
}

// Empty reports whether there is no loan.
func (l *List) Empty() bool { return len(l.loans) == 0 }

// Loan returns the loan to host, or nil. It is valid until the next loan begins or ends.
func (l *List) Loan(host string) *Loan {
	for i := range l.loans {
		if l.loans[i].Host == host {
			return &l.loans[i]
		}
	}
	return nil
}

// Over returns the hosts whose loans have expired.
func (l *List) Over() (hosts []string) {
	for i := range l.loans {
		if over(l.loans[i].Until) {
			hosts = append(hosts, l.loans[i].Host)
		}
	}
	return hosts
}

// tick is how often the wall clock is read while a loan has an end.
const tick = 10 * time.Second

// Due returns the time until the first loan, port or share may be over; some is false if
// none has an end.
func (l *List) Due() (next time.Duration, some bool) {
	add := func(until time.Time) {
		left := min(max(time.Until(until), 0), tick)
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

// touch gives a loan that has changed a new version.
func (l *List) touch(loan *Loan) {
	l.version++
	loan.Version = l.version
}

// Begin adds a loan to a host that has none.
func (l *List) Begin(loan Loan) {
	l.touch(&loan)
	l.loans = append(l.loans, loan)
	l.ended = slices.DeleteFunc(l.ended, func(r Recorded) bool { return r.Host == loan.Host })
}

// End removes the loan to host, and reports whether there was one.
func (l *List) End(host string) bool {
	before := len(l.loans)
	l.loans = slices.DeleteFunc(l.loans, func(loan Loan) bool { return loan.Host == host })
	l.checkPorts()
	return len(l.loans) < before
}

// Withdraw is End for a loan of which the host may have been told: it keeps the host's
// link state for the next daemon, in case this one cannot tell the host of the end.
func (l *List) Withdraw(host string) bool {
	was := l.End(host)
	if was {
		l.rememberEnd(host, l.links[host])
		delete(l.links, host)
	}
	return was
}

// LinkState returns the text of the last SetLinkState for host, or "".
func (l *List) LinkState(host string) string { return l.links[host] }

// SetLinkState keeps a text of the host's link, of at most 1 KiB, for as long as the
// terminal is lent there.
func (l *List) SetLinkState(host, text string) {
	if l.links == nil {
		l.links = map[string]string{}
	}
	l.links[host] = text
}
