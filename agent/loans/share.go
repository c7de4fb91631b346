package loans

import (
	"errors"
	"slices"
	"time"

	"tether/vocab"
)

// Share lets everyone who has its link watch the terminal at the host of its loan, or,
// with a Port, see that lent port and nothing else. The link's secret is not stored.
type Share struct {
	ID         string
	Port       int    // 0: the terminal
	SecretHash string // SHA-256 in hexadecimal digits
	Until      time.Time
	Once       bool // the host lets only the first browser in
	// Ended says that the share has ended and that the host may not know that yet, see
	// List.ForgetShare.
	Ended bool
}

// MaxShares bounds the shares of a loan, including ended ones that the host does not know
// of yet.
const MaxShares = 16

// Errors of shares.
var (
	ErrTooManyShares = errors.New("too many links")
	ErrNoShare       = errors.New("there is no such link")
)

// lastingFor reports whether the loan has a share for a port that is not over.
func (l *Loan) lastingFor(port int) bool {
	return slices.ContainsFunc(l.Shares, func(s Share) bool { return !s.Ended && s.Port == port })
}

// lasting reports whether the loan has a share that is not over.
func (l *Loan) lasting() bool {
	return slices.ContainsFunc(l.Shares, func(s Share) bool { return !s.Ended })
}

// EndShares ends the shares of the loan that fits selects, and returns their ids. done
// reports that the loan was only for guests and has no share left.
func (l *List) EndShares(one *Loan, fits func(*Share) bool) (ended []string, done bool) {
	shares := slices.Clone(one.Shares)
	for i := range shares {
		if s := &shares[i]; !s.Ended && fits(s) {
			s.Ended = true
			ended = append(ended, s.ID)
		}
	}
	if len(ended) == 0 {
		return nil, false
	}
	one.Shares = shares
	l.setPorts(one, slices.DeleteFunc(slices.Clone(one.Ports), func(p vocab.LentPort) bool { return p.Guests && !one.lastingFor(p.Port) }))
	return ended, one.Audience.GuestsOnly && !one.lasting()
}

// ExpireShares ends expired shares. done are hosts whose loans were only for guests and
// have no share left.
func (l *List) ExpireShares() (acts []Act, done []string) {
	for i := range l.loans {
		one := &l.loans[i]
		ended, last := l.EndShares(one, func(s *Share) bool { return over(s.Until) })
		for _, id := range ended {
			acts = append(acts, Act{Host: one.Host, Detail: "the link " + id + ", whose time was up"})
		}
		if last {
			done = append(done, one.Host)
		}
	}
	return acts, done
}

// ForgetShare removes a share that has ended, and reports whether there was one.
func (l *List) ForgetShare(host, id string) bool {
	one := l.Loan(host)
	if one == nil {
		return false
	}
	before := len(one.Shares)
	one.Shares = slices.DeleteFunc(slices.Clone(one.Shares), func(s Share) bool { return s.Ended && s.ID == id })
	return len(one.Shares) < before
}
