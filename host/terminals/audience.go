package terminals

import (
	"slices"

	"tether/ahp"
	"tether/host/rights"
)

// Meant is an audience with its grantees resolved.
type Meant struct {
	ahp.Audience
	grants  []rights.Grantee // the grantee of each grant; the zero value if the name means nobody
	Refused []string         // the refused names
}

// Understand resolves an audience's grantees. It may read files, so it must not be called
// with the host's lock.
func (b *Book) Understand(said ahp.Audience) Meant {
	m := Meant{Audience: said}
	if len(said.Grants) == 0 {
		return m
	}
	r := b.LookAtPeople() // a person may be new
	for _, g := range said.Grants {
		to, ok := b.grantee(r, g.To)
		if !ok {
			m.Refused = append(m.Refused, g.To)
		}
		m.grants = append(m.grants, to)
	}
	return m
}

// grantee resolves a name.
func (b *Book) grantee(r *rights.Roster, name string) (g rights.Grantee, ok bool) {
	if b.opts.People == nil {
		return rights.Grantee{Kind: rights.ToEveryone}, name == ahp.ToEveryone
	}
	if g, ok = rights.Resolve(b.opts.People, r, name); !ok {
		g = rights.Grantee{}
	}
	return g, ok
}

// Resolve returns the audience that is in force for t from now on. t is nil for a
// terminal that does not exist yet.
func (b *Book) Resolve(m Meant, t *Terminal) rights.Audience {
	a := rights.Audience{Declared: true, Said: m.Audience, Refused: m.Refused}
	for i, g := range m.Grants {
		if m.grants[i] == (rights.Grantee{}) || b.Roster.Ended(m.grants[i]) {
			continue
		}
		one := rights.Grant{To: m.grants[i], Name: g.To, From: g.From}
		if g.From > 0 {
			one.Pos = t.position(g)
			a.Pending = a.Pending || one.Pos == rights.NotYet
		}
		a.Grants = append(a.Grants, one)
	}
	return a
}

// position returns the position in the recorded text where a grant begins. If the
// grant's text has arrived already, the host does not know its position and shows only
// later text.
func (t *Terminal) position(g ahp.Grant) int64 {
	if t == nil || g.From > t.Out.Applied() {
		return rights.NotYet
	}
	for _, before := range t.audience.Grants {
		if before.Name == g.To && before.From == g.From {
			return before.Pos
		}
	}
	return t.Out.End()
}

// passed is called after output was recorded while a grant waits for its text.
// applied and end are the values from before that output.
func (t *Terminal) passed(applied, end int64) {
	t.audience.Pending = false
	passed := false
	for i := range t.audience.Grants {
		g := &t.audience.Grants[i]
		switch {
		case g.Pos != rights.NotYet:
		case g.From > t.Out.Applied():
			t.audience.Pending = true
		default: // because of removed marks, the position may be a little later than necessary
			g.Pos = min(end+max(0, g.From-applied), t.Out.End())
			passed = true
		}
	}
	if passed {
		t.book.Sight++
		t.book.reindex(t)
		t.Moved.Raise()
	}
}

// SetAudience puts another audience in force, and ends the views of those who are
// not in it any more.
func (b *Book) SetAudience(t *Terminal, a rights.Audience) {
	t.audience = a
	b.Sight++
	b.reindex(t)
	b.recheck(t)
	t.sayWatchers()
	if b.opts.Nodes {
		t.touch(inRows) // see recheck for the others
	}
}

// recheck ends the views of those who do not see t any more.
func (b *Book) recheck(t *Terminal) {
	for _, s := range slices.Collect(t.subs) {
		if !s.Link().Sees(t) {
			s.Withdraw()
		}
	}
	b.recheckPorts(t)
	t.Moved.Raise()
}
