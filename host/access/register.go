package access

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"tether/host"
)

// More is a part of a Register that other packages keep, such as logins by an identity
// provider. Its methods are those of host.Register, for entries of its kind.
type More interface {
	Kind() host.EntryKind
	Entries() []host.Entry
	End(id string) error
	Session(token [sha256.Size]byte) bool
}

// Register lists what people and administrators see, and can end, on the host's page:
// tokens, machines, people and grants from the files of this package, and the entries of
// further parts. It implements host.Register.
type Register struct {
	people *People
	more   []More
}

// NewRegister returns a register of these people, their tokens, and further parts.
func NewRegister(people *People, more ...More) *Register { return &Register{people, more} }

// Entries implements host.Register.
func (r *Register) Entries() (all []host.Entry, err error) {
	tokens, err := r.people.tokens.List()
	if err != nil {
		return nil, err
	}
	_, people, groups, grants, err := r.people.List()
	if err != nil {
		return nil, err
	}
	for _, i := range tokens {
		e := host.Entry{Kind: host.EntryAgent, ID: i.ID, Name: i.Principal, Detail: string(i.Role), Since: &i.Created, Until: i.Expires, OwnerID: i.Owner}
		if i.Role == host.RoleMachine {
			e.Kind, e.Detail = host.EntryMachine, string(i.Kind)
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
		all = append(all, host.Entry{Kind: host.EntryPerson, ID: o.ID, Name: o.Name, Owner: o.Name, OwnerID: o.ID, Detail: strings.Join(in, ", "), Since: &o.Created})
	}
	for _, g := range grants {
		all = append(all, host.Entry{Kind: host.EntryGrant, ID: grantID(g), Name: g.Machine, Detail: g.To, Since: &g.Created, OwnerID: g.Owner})
	}
	for _, m := range r.more {
		all = append(all, m.Entries()...)
	}
	return all, nil
}

// grantID returns the id of a grant. It is unambiguous, since names have no spaces.
func grantID(g MachineGrant) string { return g.Machine + " " + g.To }

// End implements host.Register.
func (r *Register) End(kind host.EntryKind, id string) error {
	var err error
	switch kind {
	case host.EntryMachine, host.EntryAgent:
		_, err = r.people.tokens.Revoke(id)
	case host.EntryPerson:
		_, err = r.people.EndWithAll(id)
	case host.EntryGrant:
		machine, to, _ := strings.Cut(id, " ")
		_, err = r.people.EndGrant(machine, to)
	default:
		err = host.ErrNoEntry
		for _, m := range r.more {
			if m.Kind() == kind && err != nil {
				err = m.End(id)
			}
		}
	}
	if errors.Is(err, ErrNoToken) || errors.Is(err, ErrNoPerson) || errors.Is(err, ErrNoGrant) {
		return host.ErrNoEntry
	}
	return err
}

// Session implements host.Register.
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
