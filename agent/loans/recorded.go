package loans

import (
	"slices"
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

// Recorded is a loan to one host as a holder keeps it in JSON. A newer or older daemon
// reads it, so a field never changes its meaning.
type Recorded struct {
	Host      string `json:"host"`
	LinkState string `json:"memo,omitempty"` // of the host's link, see List.SetLinkState
	// Unix ns. Since is 0 in records of older versions; Until is 0 if the loan has no
	// end, and 1 ns after 1970 if it has ended, so that the next daemon tells the host.
	Since int64 `json:"since,omitempty"`
	Until int64 `json:"until,omitempty"`
	Heard bool  `json:"heard,omitempty"` // the host knows of the exit
	// At is the text offset at which the loan began; nil in records of older versions.
	At *int64 `json:"at,omitempty"`

	Grants     []recordedGrant `json:"grants,omitempty"`
	Denied     []string        `json:"denied,omitempty"`
	GuestsOnly bool            `json:"guests_only,omitempty"`
	Shares     []recordedShare `json:"shares,omitempty"`
	Ports      []recordedPort  `json:"ports,omitempty"`
}

// recordedGrant is a recorded grant at a host.
type recordedGrant struct {
	To   string `json:"to"`
	From int64  `json:"from,omitempty"` // text offset
}

func (l *Loan) recorded(state string) Recorded {
	r := Recorded{Host: l.Host, LinkState: state, Since: l.Since.UnixNano(), Denied: l.Audience.Denied, GuestsOnly: l.Audience.GuestsOnly,
		Shares: recordedShares(l.Shares), Ports: recordedPorts(l.Ports), At: &l.At}
	for _, g := range l.Audience.Grants {
		r.Grants = append(r.Grants, recordedGrant(g))
	}
	if !l.Until.IsZero() {
		r.Until = l.Until.UnixNano()
	}
	return r
}

// loan returns the recorded loan; began is when the terminal was started.
func (r *Recorded) loan(began time.Time) Loan {
	l := Loan{Host: r.Host, Since: began, Audience: Audience{Denied: r.Denied, GuestsOnly: r.GuestsOnly}, Shares: sharesFrom(r.Shares), Ports: portsFrom(r.Ports), At: -1}
	if r.At != nil {
		l.At = *r.At
	}
	for _, g := range r.Grants {
		l.Audience.Grants = append(l.Audience.Grants, Grant(g))
	}
	if r.Since > 0 {
		l.Since = time.Unix(0, r.Since)
	}
	if r.Until > 0 {
		l.Until = time.Unix(0, r.Until)
	}
	return l
}

// recordedShare is a share of a Recorded.
type recordedShare struct {
	ID         string `json:"id"`
	Port       int    `json:"port,omitempty"`
	SecretHash string `json:"hash"`
	Until      int64  `json:"until"` // Unix ns
	Once       bool   `json:"once,omitempty"`
	Ended      bool   `json:"ended,omitempty"`
}

func recordedShares(all []Share) (out []recordedShare) {
	for _, s := range all {
		out = append(out, recordedShare{s.ID, s.Port, s.SecretHash, s.Until.UnixNano(), s.Once, s.Ended})
	}
	return out
}

func sharesFrom(all []recordedShare) (out []Share) {
	for _, s := range all[:min(len(all), MaxShares)] {
		out = append(out, Share{s.ID, s.Port, s.SecretHash, time.Unix(0, s.Until), s.Once, s.Ended})
	}
	return out
}

// recordedPort is a port of a Recorded. Times are Unix ns.
type recordedPort struct {
	Port    int    `json:"port"`
	Auto    bool   `json:"auto,omitempty"`
	Write   bool   `json:"write,omitempty"`
	Guests  bool   `json:"guests_only,omitempty"`
	Since   int64  `json:"since"`
	Until   int64  `json:"until,omitempty"`
	Closed  string `json:"closed,omitempty"`
	Fetched int64  `json:"fetched,omitempty"`
	Latest  int64  `json:"latest,omitempty"`
}

func recordedPorts(all []vocab.LentPort) (out []recordedPort) {
	ns := func(at time.Time) int64 {
		if at.IsZero() {
			return 0
		}
		return at.UnixNano()
	}
	for _, p := range all {
		out = append(out, recordedPort{p.Port, p.Auto, p.Write, p.Guests, ns(p.Since), ns(p.Until), p.Closed, p.Fetched, ns(p.Latest)})
	}
	return out
}

// portsFrom returns recorded ports, without those that no daemon has written.
func portsFrom(all []recordedPort) (out []vocab.LentPort) {
	at := func(ns int64) time.Time {
		if ns <= 0 {
			return time.Time{}
		}
		return time.Unix(0, ns)
	}
	known := map[int]bool{}
	for _, p := range all {
		bad := p.Port != AutoPort && (p.Port < LeastPort || p.Port > maxPort) || p.Until < 0 || known[p.Port]
		if bad || len(out) >= MaxPorts {
			continue
		}
		known[p.Port] = true
		out = append(out, vocab.LentPort{Port: p.Port, Auto: p.Auto || p.Port == AutoPort, Write: p.Write, Guests: p.Guests, Since: at(p.Since), Until: at(p.Until),
			Closed: clip.Text(p.Closed, maxClosed), Fetched: max(p.Fetched, 0), Latest: at(p.Latest)})
	}
	return out
}

// Recorded returns the loans, and those that are over of which a host may not know. heard
// reports whether a host knows of the exit.
func (l *List) Recorded(heard func(host string) bool) (all []Recorded) {
	for i := range l.loans {
		r := l.loans[i].recorded(l.links[l.loans[i].Host])
		r.Heard = heard(r.Host)
		all = append(all, r)
	}
	return append(all, l.ended...)
}

// Restore takes up a recorded loan of a terminal that began at that time, and reports
// whether it lasts.
func (l *List) Restore(r *Recorded, began time.Time) (lasts bool) {
	loan := r.loan(began)
	if over(loan.Until) {
		l.rememberEnd(r.Host, r.LinkState)
		return false
	}
	l.Begin(loan)
	if r.LinkState != "" {
		l.SetLinkState(r.Host, r.LinkState)
	}
	return true
}

// rememberEnd keeps the link state of a host whose loan is over. The next daemon tells
// the host, if this one cannot. The record says that the loan ended at the epoch, so that
// a clock that is set back does not revive it.
func (l *List) rememberEnd(host, state string) {
	if state != "" {
		l.ended = append(l.ended, Recorded{Host: host, LinkState: state, Until: 1})
	}
}

// Ended returns the link states of hosts whose loans are over, with the hosts.
func (l *List) Ended() []Recorded { return slices.Clone(l.ended) }
