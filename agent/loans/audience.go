package loans

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
	From int64 // offset in output.ViewText: earlier output is not shown
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

// MaxAllNames bounds the grants and denials of all loans of a terminal together, because
// its holder keeps them.
const MaxAllNames = 2 * MaxNames

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

func (a *Audience) equal(b *Audience) bool {
	return slices.Equal(a.Grants, b.Grants) && slices.Equal(a.Denied, b.Denied) && a.GuestsOnly == b.GuestsOnly
}
