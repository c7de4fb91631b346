package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/host/rights"
)

// Bounds of what identity providers say about people.
const (
	maxProvidedGroups  = 1000
	maxProvidedMembers = 12_000 // of all of those groups together
	maxIdentity        = 1024   // bytes of an issuer and a subject together
	maxWanted          = 56     // bytes of the name that an identity provider gives; freeName may append a number
)

// ErrEnded is returned by LoggedIn for a person whom an administrator has ended.
var ErrEnded = errors.New("an administrator has ended this person's access")

// errPersonEnded is the cause with which the connections of an ended person end.
var errPersonEnded = errors.New("an administrator has ended the person")

// LoggedIn returns the person with that identity. At the first login it adds the person,
// under a name that nobody has had. The groups that the provider names replace those that
// it named before; they count in addition to local groups, and are the same as local
// groups of the same names. The principal's Live ends once Look finds that the person has
// ended.
func (p *People) LoggedIn(i rights.Identity) (rights.Principal, error) {
	if i.Issuer == "" || i.Subject == "" || len(i.Issuer)+len(i.Subject) > maxIdentity {
		return rights.Principal{}, errors.New("an identity has an issuer and a subject, of at most 1 KiB")
	}
	one, known := p.identified(i)
	if !known {
		var err error
		if one, err = p.identify(i); err != nil {
			return rights.Principal{}, err
		}
	}
	if one.Ended != nil {
		return rights.Principal{}, ErrEnded
	}
	return rights.Principal{Name: one.Name, Role: rights.RoleObserver, Owner: one.ID, Live: p.live(one.ID)}, nil
}

// identified returns the person with an identity; same reports whether the file has that
// person, in exactly these groups.
func (p *People) identified(i rights.Identity) (one Person, same bool) {
	f, err := p.doc.Now()
	if err != nil {
		return one, false
	}
	at := f.identity(i)
	if at < 0 {
		return one, false
	}
	groups := slices.Sorted(slices.Values(i.Groups))
	return f.People[at], slices.Equal(f.providedOf(f.People[at].ID), slices.Compact(groups))
}

// identify stores a person's identity and their groups at the provider.
func (p *People) identify(i rights.Identity) (one Person, err error) {
	err = p.doc.Change(func(f *peopleFile) error {
		at := f.identity(i)
		if at < 0 {
			if len(f.People) >= maxPeople {
				return fmt.Errorf("there are %d people, the maximum", maxPeople)
			}
			tokens, err := p.tokens.records()
			if err != nil {
				return err
			}
			at, f.People = len(f.People), append(f.People, Person{ID: newPersonID(), Name: f.freeName(i.Wanted, tokens), Issuer: i.Issuer, Subject: i.Subject,
				Created: time.Now().UTC().Truncate(time.Second)})
		}
		if one = f.People[at]; one.Ended == nil {
			f.provide(one.ID, i.Groups)
		}
		return nil
	})
	return one, err
}

// identity returns the index of the person with an identity, or -1.
func (f *peopleFile) identity(i rights.Identity) int {
	return slices.IndexFunc(f.People, func(o Person) bool { return o.Issuer == i.Issuer && o.Subject == i.Subject })
}

func newPersonID() string { return "p-" + strings.ToLower(rand.Text()[:16]) }

// freeName returns the wanted name, made valid, with a number appended if somebody has or
// had that name, or a token or a machine has it.
func (f *peopleFile) freeName(wanted string, tokens []record) string {
	var b strings.Builder
	for _, r := range wanted {
		if b.Len() < maxWanted && checkName("a"+string(r)) == nil {
			b.WriteRune(r)
		}
	}
	base := cmp.Or(strings.TrimLeft(b.String(), "-_.@"), "person")
	name := base
	for n := 2; name == ahp.ToEveryone || f.hadPerson(name) || slices.ContainsFunc(tokens, func(r record) bool { return strings.EqualFold(r.Principal, name) }); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// provide sets the groups in which the provider has a person.
func (f *peopleFile) provide(id string, groups []string) {
	members := 0
	for i := range f.Provided {
		f.Provided[i].Members = slices.DeleteFunc(f.Provided[i].Members, func(o string) bool { return o == id })
		members += len(f.Provided[i].Members)
	}
	for _, name := range groups {
		at := slices.IndexFunc(f.Provided, func(g groupRecord) bool { return g.Name == name })
		if at < 0 && len(f.Provided) < maxProvidedGroups && checkName(name) == nil {
			at, f.Provided = len(f.Provided), append(f.Provided, groupRecord{Name: name})
		}
		if at < 0 || members >= maxProvidedMembers {
			continue // groups beyond the bounds are ignored
		}
		if !slices.Contains(f.Provided[at].Members, id) {
			f.Provided[at].Members = append(f.Provided[at].Members, id)
			members++
		}
	}
	f.Provided = slices.DeleteFunc(f.Provided, func(g groupRecord) bool { return len(g.Members) == 0 })
}

// providedOf returns the groups in which the provider has a person, sorted.
func (f *peopleFile) providedOf(id string) (groups []string) {
	for _, g := range f.Provided {
		if slices.Contains(g.Members, id) {
			groups = append(groups, g.Name)
		}
	}
	slices.Sort(groups)
	return groups
}

// live returns a context that ends when the person has ended.
func (p *People) live(id string) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives == nil {
		p.lives = map[string]life{}
	}
	one, ok := p.lives[id]
	if !ok {
		ctx, end := context.WithCancelCause(context.Background())
		one = life{ctx, end}
		p.lives[id] = one
	}
	return one.ctx
}

// life is the context of a person who has logged in.
type life struct {
	ctx context.Context
	end context.CancelCauseFunc
}

// endLivesLocked ends the connections of people who are not in the roster.
func (p *People) endLivesLocked() {
	for id, one := range p.lives {
		if _, ok := p.roster.People[id]; !ok {
			one.end(errPersonEnded)
			delete(p.lives, id)
		}
	}
}
