package loans

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/vocab"
)

// Change is a change of a loan, or the beginning of one.
type Change struct {
	// Until, if not nil, is when the lending ends; zero is never.
	Until    *time.Time
	Audience AudienceChange
	// Share, if not nil, is added. A terminal that is not lent there is then lent to its
	// guest alone.
	Share *Share
	// Ports are opened, of which Port, Write and Until count. DropPorts are removed.
	Ports     []vocab.LentPort
	DropPorts []int
}

// Text describes the change for the audit log.
func (c *Change) Text(a *Audience) string {
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

// ErrNotLent: the terminal is not lent to that host.
var ErrNotLent = errors.New("the terminal is not shared with this host")

// Change changes the loan to host, or begins one. It returns the loan, and whether that
// has changed. end and text are the text offsets of the end of the output, and of the end
// of the part that can be read.
func (l *List) Change(host string, c Change, end, text int64) (loan Loan, changed bool, err error) {
	one := l.Loan(host)
	begins := one == nil
	if begins {
		one, changed = &Loan{Host: host, Since: time.Now(), At: end}, true
		if c.Share != nil {
			c.Audience.GuestsOnly = new(true) // only the guest may watch
		}
	}
	if c.Share != nil && len(one.Shares) >= MaxShares {
		return Loan{}, false, fmt.Errorf("%w: a terminal may have %d for one host", ErrTooManyShares, MaxShares)
	}
	ports, other, err := one.changedPorts(c.Ports, c.DropPorts)
	if err != nil {
		return Loan{}, false, err
	}
	if different, err := l.SetAudience(one, c.Audience, text); err != nil {
		return Loan{}, false, err
	} else if different || other || c.Share != nil {
		changed = true
	}
	if other {
		l.setPorts(one, ports)
	}
	if c.Share != nil {
		one.Shares = append(slices.Clone(one.Shares), *c.Share)
		l.touch(one)
	}
	if c.Until != nil && !one.Until.Equal(*c.Until) {
		one.Until, changed = *c.Until, true
		l.touch(one) // the host may have been told when the loan ends
	}
	if begins {
		l.Begin(*one)
	}
	return *l.Loan(host), changed, nil
}

// SetAudience changes the audience of a loan, and reports whether the audience is another
// one now; text is as for Change.
func (l *List) SetAudience(loan *Loan, c AudienceChange, text int64) (changed bool, err error) {
	next, err := c.apply(loan.Audience, text)
	if err != nil {
		return false, err
	}
	names := len(next.Grants) + len(next.Denied)
	for i := range l.loans {
		if other := &l.loans[i]; other.Host != loan.Host {
			names += len(other.Audience.Grants) + len(other.Audience.Denied)
		}
	}
	if names > MaxAllNames {
		return false, fmt.Errorf("%w: at most %d for all hosts together", ErrTooManyNames, MaxAllNames)
	}
	if next.equal(&loan.Audience) {
		return false, nil
	}
	loan.Audience = next
	l.touch(loan)
	l.checkPorts()
	return true, nil
}
