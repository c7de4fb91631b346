package access

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"tether/host/rights"
)

// More is a part of a Register that other packages keep, such as logins by an identity
// provider. Its methods are those of rights.Register, for entries of its kind.
type More interface {
	Kind() rights.EntryKind
	Entries() []rights.Entry
	End(id string) error
	Session(token [sha256.Size]byte) bool
}

// Register lists what people and administrators see, and can end, on the host's page:
// tokens, machines, people and grants from the files of this package, and the entries of
// further parts. It implements rights.Register.
type Register struct {
	people *People
	more   []More
}

// NewRegister returns a register of these people, their tokens, and further parts.
func NewRegister(people *People, more ...More) *Register { return &Register{people, more} }

// Entries implements rights.Register.
func (r *Register) Entries() (all []rights.Entry, err error) {
	tokens, err := r.people.tokens.List()
	if err != nil {
		return nil, err
	}
	_, people, groups, grants, err := r.people.List()
	if err != nil {
		return nil, err
	}
	for _, i := range tokens {
		e := rights.Entry{Kind: rights.EntryAgent, ID: i.ID, Name: i.Principal, Detail: string(i.Role), Since: &i.Created, Until: i.Expires, OwnerID: i.Owner}
		if i.Role == rights.RoleMachine {
			e.Kind, e.Detail = rights.EntryMachine, string(i.Kind)
		}
		if i.Expired {
			continue
		}
		all = append(all, e)
	}
	for _, o := range people {
		if o.Ended != nil {
			continue
		}
		var in []string
		for name, members := range groups {
			if slices.Contains(members, o.Name) {
				in = append(in, name)
			}
		}
		slices.Sort(in)
		all = append(all, rights.Entry{Kind: rights.EntryPerson, ID: o.ID, Name: o.Name, Owner: o.Name, OwnerID: o.ID, Detail: strings.Join(in, ", "), Since: &o.Created})
	}
	for _, g := range grants {
		all = append(all, rights.Entry{Kind: rights.EntryGrant, ID: grantID(g), Name: g.Machine, Detail: g.To, Since: &g.Created, OwnerID: g.Owner})
	}
	for _, m := range r.more {
		all = append(all, m.Entries()...)
	}
	return all, nil
}

// grantID returns the id of a grant. It is unambiguous, since names have no spaces.
func grantID(g MachineGrant) string { return g.Machine + " " + g.To }

// End implements rights.Register.
func (r *Register) End(kind rights.EntryKind, id string) error {
	var err error
	switch kind {
	case rights.EntryMachine, rights.EntryAgent:
		_, err = r.people.tokens.Revoke(id)
	case rights.EntryPerson:
		_, err = r.people.EndWithAll(id)
	case rights.EntryGrant:
		machine, to, _ := strings.Cut(id, " ")
		_, err = r.people.EndGrant(machine, to)
	default:
		err = rights.ErrNoEntry
		for _, m := range r.more {
			if m.Kind() == kind && err != nil {
				err = m.End(id)
			}
		}
	}
	if errors.Is(err, ErrNoToken) || errors.Is(err, ErrNoPerson) || errors.Is(err, ErrNoGrant) {
		return rights.ErrNoEntry
	}
	return err
}

// Session implements rights.Register.
func (r *Register) Session(token [sha256.Size]byte) bool {
	return slices.ContainsFunc(r.more, func(m More) bool { return m.Session(token) })
}

// EndWithAll ends the person with that id, revokes all tokens that belong to them, and
// returns those.
func (p *People) EndWithAll(id string) (revoked []Info, err error) {
	f, err := p.doc.Now()
	if err != nil {
		return nil, err
	}
	if _, err := p.End(f.name(id)); err != nil {
		return nil, err
	}
	all, err := p.tokens.List()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.Owner != id {
			continue
		}
		if _, err := p.tokens.Revoke(i.ID); err != nil && !errors.Is(err, ErrNoToken) {
			return revoked, err
		}
		revoked = append(revoked, i)
	}
	return revoked, nil
}
