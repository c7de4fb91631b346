package ports

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tether/ahp"
	"tether/host/rights"
)

// Facts are what decides about a terminal's ports, for one principal.
type Facts struct {
	Sees   bool // the principal sees the terminal, and it is there
	Runs   bool // it is lent, and its program has not exited
	Away   bool // its machine is not connected
	Old    bool // its machine's tether lends no ports
	Opened []ahp.LentPort
}

// Find returns the open port with that number if the principal may ask it. The error is
// one of this package's.
func (f *Facts) Find(p *rights.Principal, port int) (*ahp.LentPort, error) {
	switch {
	case !f.Sees || p.Guest != "" && p.GuestPort != port:
		return nil, ErrUnseen
	case !f.Runs:
		return nil, ErrNotLent
	case f.Away:
		return nil, ErrAway
	case f.Old:
		return nil, ErrOld
	}
	if l := Number(f.Opened, port); l != nil && (!l.GuestsOnly || p.Guest != "") {
		return l, nil
	}
	return nil, ErrNotLent
}

// Number returns the port with a number, nil if there is none.
func Number(all []ahp.LentPort, port int) *ahp.LentPort {
	if i := slices.IndexFunc(all, func(l ahp.LentPort) bool { return l.Port == int64(port) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Lent is what a host knows of a terminal's lent ports beside their list.
type Lent struct {
	// Asked is how often each open port was asked, by its number. It is guarded by its
	// owner's lock.
	Asked map[int64]int64

	mu   sync.Mutex // a leaf
	uses map[*Use]struct{}
}

// Count counts a request. It is called with the owner's lock.
func (l *Lent) Count(port int64) {
	if l.Asked == nil {
		l.Asked = map[int64]int64{}
	}
	l.Asked[port]++
}

// Use is a request under way, as the terminal knows it.
type Use struct {
	p     rights.Principal
	port  int
	since int64
	end   context.CancelCauseFunc
	lent  *Lent // guarded by the lock of that; nil before Begin
}

// Begin records a request that was sent to a lending of a port.
func (l *Lent) Begin(u *Use, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uses == nil {
		l.uses = map[*Use]struct{}{}
	}
	u.since, u.lent = since, l
	l.uses[u] = struct{}{}
}

// leave removes a request that has ended.
func (u *Use) leave() {
	if u.lent == nil {
		return
	}
	u.lent.mu.Lock()
	defer u.lent.mu.Unlock()
	delete(u.lent.uses, u)
}

// Recheck ends the requests whose principals may not send them any more, and those to a
// lending that has ended. It calls facts for each, with the owner's lock as it is called.
func (l *Lent) Recheck(facts func(p *rights.Principal) Facts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.uses {
		f := facts(&u.p)
		open, err := f.Find(&u.p, u.port)
		if err == nil && open.SinceMs != u.since {
			err = ErrNotLent
		}
		if err != nil {
			u.end(err)
		}
	}
}

// Changed returns what the audit log says of a change of the open ports: which were
// opened, to whom, and which were closed after how many requests. It is called with the
// owner's lock. audience names those who see the terminal.
func (l *Lent) Changed(before, now []ahp.LentPort, audience string) (said []string) {
	has := func(all []ahp.LentPort, l ahp.LentPort) bool {
		return slices.ContainsFunc(all, func(o ahp.LentPort) bool {
			return o.Port == l.Port && o.Write == l.Write && o.GuestsOnly == l.GuestsOnly
		})
	}
	for _, p := range before {
		if !has(now, p) {
			said = append(said, fmt.Sprintf("port %d is closed, after %d requests", p.Port, l.Asked[p.Port]))
			delete(l.Asked, p.Port)
		}
	}
	for _, p := range now {
		if has(before, p) {
			continue
		}
		how, who := "reading", audience
		if p.Write {
			how = "reading and writing"
		}
		if p.GuestsOnly {
			who = "guests with a link for it"
		}
		said = append(said, fmt.Sprintf("port %d is open for %s to %s", p.Port, how, who))
	}
	return said
}
