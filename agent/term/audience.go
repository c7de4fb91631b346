package term

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Audience lists who may watch a lent terminal at a host. The owner of this machine at
// that host always may watch. It is part of a Loan. Its slices are never changed.
type Audience struct {
	Grants []Grant
	// Denied lists people and agents who may not watch even if a grant covers them,
	// whoever made it.
	Denied []string
	// GuestsOnly says that the terminal is lent for guests with a link, and for nobody
	// else.
	GuestsOnly bool
}

// Grant lets somebody at a host watch. The protocol defines the words of To; this package
// does not interpret them.
type Grant struct {
	To   string
	From int64 // offset in ViewText: earlier output is not shown
}

// Admits reports whether somebody with these names may watch, and from which offset on.
// owner says that no grant is needed.
func (a *Audience) Admits(names []string, owner bool) (from int64, ok bool) {
	if a.GuestsOnly || slices.ContainsFunc(a.Denied, func(name string) bool { return slices.Contains(names, name) }) {
		return 0, false
	}
	if owner {
		return 0, true
	}
	from = math.MaxInt64
	for _, g := range a.Grants {
		if slices.Contains(names, g.To) {
			from, ok = min(from, g.From), true
		}
	}
	return from, ok
}

// MaxNames bounds the grants of a loan, and likewise its denials.
const MaxNames = 64

// maxAllNames bounds the grants and denials of all loans of a terminal together, because
// its holder keeps them.
const maxAllNames = 2 * MaxNames

// ErrTooManyNames: an audience would have more names than it may.
var ErrTooManyNames = errors.New("too many names")

// AudienceChange is a change of an audience.
type AudienceChange struct {
	Grant   []string // these may watch from now on
	FromNow bool     // they do not see earlier output, unless they could see it already
	Deny    []string // these may not watch, even if a grant covers them
	Drop    []string // removes the grants of these; other grants that cover them stay
	// GuestsOnly, if not nil, replaces the audience's GuestsOnly.
	GuestsOnly *bool
}

// apply returns the changed audience; now is the end of the text.
func (c *AudienceChange) apply(a Audience, now int64) (Audience, error) {
	without := func(all []Grant, names []string) []Grant {
		return slices.DeleteFunc(slices.Clone(all), func(g Grant) bool { return slices.Contains(names, g.To) })
	}
	grants := without(a.Grants, slices.Concat(c.Grant, c.Deny, c.Drop))
	denied := slices.DeleteFunc(slices.Clone(a.Denied), func(name string) bool { return slices.Contains(c.Grant, name) || slices.Contains(c.Deny, name) })
	from := int64(0)
	if c.FromNow {
		from = now
	}
	for i, to := range c.Grant {
		if !slices.Contains(c.Grant[:i], to) {
			grants = append(grants, Grant{to, from})
		}
	}
	for i, name := range c.Deny {
		if !slices.Contains(c.Deny[:i], name) {
			denied = append(denied, name)
		}
	}
	if c.GuestsOnly != nil {
		a.GuestsOnly = *c.GuestsOnly
	}
	if len(grants) > MaxNames || len(denied) > MaxNames {
		return a, fmt.Errorf("%w: at most %d may be granted, and as many denied", ErrTooManyNames, MaxNames)
	}
	a.Grants, a.Denied = grants, denied
	return a, nil
}

// setAudienceLocked changes the audience of a loan, and reports whether the audience is
// another one now.
func (t *Terminal) setAudienceLocked(loan *Loan, c AudienceChange) (changed bool, err error) {
	next, err := c.apply(loan.Audience, t.log.TextEnd())
	if err != nil {
		return false, err
	}
	names := len(next.Grants) + len(next.Denied)
	for i := range t.lending.loans {
		if other := &t.lending.loans[i]; other.Host != loan.Host {
			names += len(other.Audience.Grants) + len(other.Audience.Denied)
		}
	}
	if names > maxAllNames {
		return false, fmt.Errorf("%w: at most %d for all hosts together", ErrTooManyNames, maxAllNames)
	}
	if next.equal(&loan.Audience) {
		return false, nil
	}
	loan.Audience = next
	t.lending.version++
	loan.Version = t.lending.version
	t.checkPortsLocked()
	return true, nil
}

func (a *Audience) equal(b *Audience) bool {
	return slices.Equal(a.Grants, b.Grants) && slices.Equal(a.Denied, b.Denied) && a.GuestsOnly == b.GuestsOnly
}

// LoanChange is a change of a loan by LendTo.
type LoanChange struct {
	// Until, if not nil, is when the lending ends; zero is never.
	Until    *time.Time
	Audience AudienceChange
	// Share, if not nil, is added. A terminal that is not lent there is then lent to its
	// guest alone.
	Share *Share
	// Ports are opened, of which Port, Write and Until count. DropPorts are removed.
	Ports     []LentPort
	DropPorts []int
}

// text describes the change for the audit log.
func (c *LoanChange) text(a *Audience) string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ","))
		}
	}
	if c.Until != nil && !c.Until.IsZero() {
		parts = append(parts, "until "+c.Until.UTC().Format(time.RFC3339))
	}
	if c.Share != nil {
		what := ""
		if c.Share.Port != 0 {
			what = ", for port " + strconv.Itoa(c.Share.Port) + " alone,"
		}
		parts = append(parts, "to a guest with the link "+c.Share.ID+what+" until "+c.Share.Until.UTC().Format(time.RFC3339))
	}
	for _, p := range c.Ports {
		what := portName(p.Port)
		if p.Write {
			what += " (also for writing)"
		}
		if !p.Until.IsZero() {
			what += " until " + p.Until.UTC().Format(time.RFC3339)
		}
		parts = append(parts, what)
	}
	for _, port := range c.DropPorts {
		parts = append(parts, portName(port))
	}
	add("to", c.Audience.Grant)
	if c.Audience.FromNow && len(c.Audience.Grant) > 0 {
		parts = append(parts, "only later output")
	}
	add("not to", c.Audience.Deny)
	add("no more to", c.Audience.Drop)
	if a.GuestsOnly {
		parts = append(parts, "to guests with a link alone")
	}
	return strings.Join(parts, "; ")
}

// LoanHere is Loan for the actor, a host.
func (h Handle) LoanHere() (Loan, bool) { return h.Loan(h.actor.Name) }

// Loan returns the loan to host; ok is false if there is none.
func (h Handle) Loan(host string) (loan Loan, ok bool) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if l := h.t.lending.loan(host); l != nil {
		return *l, true
	}
	return Loan{}, false
}

// ErrNotLent: the terminal is not lent to that host.
var ErrNotLent = errors.New("the terminal is not shared with this host")

// ChangeAudience changes the audience at a host to which the terminal is lent. Errors:
// ErrNotLent, ErrTooManyNames.
func (h Handle) ChangeAudience(host string, c AudienceChange) error {
	return h.changeLoan(host, func(t *Terminal, loan *Loan) (*Act, error) {
		changed, err := t.setAudienceLocked(loan, c)
		if !changed {
			return nil, err
		}
		change := LoanChange{Audience: c}
		kind := ActLend
		if len(c.Grant) == 0 {
			kind = ActUnlend
		}
		return &Act{Kind: kind, Detail: change.text(&loan.Audience)}, nil
	})
}

// changeLoan has do change the loan to host, and notes what that did; nil is nothing. do
// is called with the terminal's mutex. Errors: ErrNotLent, do's.
func (h Handle) changeLoan(host string, do func(*Terminal, *Loan) (*Act, error)) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	t := h.t
	t.mu.Lock()
	loan := t.lending.loan(host)
	if loan == nil {
		t.mu.Unlock()
		return ErrNotLent
	}
	act, err := do(t, loan)
	t.mu.Unlock()
	if act == nil {
		return err
	}
	t.changed()
	act.Host = host
	return h.did(*act, err)
}
