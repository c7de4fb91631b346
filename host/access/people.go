package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/ahp"
	"tether/host/rights"
)

const (
	peopleVersion = 1
	// Bounds of the file, which together are less than what secret.ReadFile takes.
	maxPeople        = 2000 // including those who have ended
	maxGroups        = 256
	maxMembers       = 4000 // of all groups together
	maxMachineGrants = 1000
	maxWithdrawn     = 1000
)

var (
	// ErrNoPerson is returned for a name that no person has.
	ErrNoPerson = errors.New("no such person")
	// ErrNoGroup is returned for a name that no group has.
	ErrNoGroup = errors.New("no such group")
	// ErrNoGrant is returned by EndGrant if there is no such grant.
	ErrNoGrant = errors.New("no such grant")
)

// Person is a person at the host. Nobody else ever gets the same name.
type Person struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Issuer and Subject identify the person at an identity provider, once the person has
	// logged in with it.
	Issuer  string     `json:"issuer,omitempty"`
	Subject string     `json:"subject,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"` // nil: the person has not ended
}

// MachineGrant is a grant by the host's administrator, for the terminals of one machine.
type MachineGrant struct {
	Machine string    `json:"machine"`
	Owner   string    `json:"owner,omitempty"` // id of the person who owned the machine then
	To      string    `json:"to"`              // as in ahp.Grant
	ID      string    `json:"id,omitempty"`    // rights.Grantee.ID
	Created time.Time `json:"created"`
}

// withdrawal is a grant of one terminal that an administrator has ended.
type withdrawal struct {
	Terminal string    `json:"terminal"` // URI
	To       string    `json:"to"`       // as in ahp.Grant
	ID       string    `json:"id,omitempty"`
	Created  time.Time `json:"created"`
}

// peopleFile is the content of the file.
type peopleFile struct {
	Version int           `json:"version"`
	On      bool          `json:"on"`
	People  []Person      `json:"people"`
	Groups  []groupRecord `json:"groups"`
	// Provided are the groups that identity providers name. They count like the others,
	// and only a login changes them.
	Provided []groupRecord  `json:"provided_groups,omitempty"`
	Grants   []MachineGrant `json:"grants"`
	// Withdrawn are the newest, the oldest first.
	Withdrawn []withdrawal `json:"withdrawn,omitempty"`
}

// groupRecord is a group in the file.
type groupRecord struct {
	Name    string   `json:"name"`
	Members []string `json:"members"` // ids
}

// People are the people, groups and grants in one file, next to the file of the tokens.
// It implements rights.People, and is safe for concurrent use, also with other processes.
type People struct {
	doc    Doc[peopleFile]
	tokens *Tokens // set once

	mu     sync.Mutex
	read   *peopleFile // of which the roster is
	roster *rights.Roster
	lives  map[string]life // of people who have logged in, by their ids
	err    error           // why the file could not be read; the former contents stay in force
	told   func(error)     // see OnError
}

// OpenPeople reads the people in a document, which may be missing.
func OpenPeople(at Place, tokens *Tokens) (*People, error) {
	p := &People{tokens: tokens, roster: &rights.Roster{}, doc: Doc[peopleFile]{At: at, What: "people", Version: peopleVersion,
		Empty: peopleFile{Version: peopleVersion}, Stays: true, Check: (*peopleFile).check}}
	p.Look()
	return p, p.err
}

// Look implements rights.People.
func (p *People) Look() *rights.Roster {
	p.mu.Lock()
	before := p.err
	r := p.lookLocked()
	err, told := p.err, p.told
	p.mu.Unlock()
	if told != nil && (err == nil) != (before == nil) {
		told(err)
	}
	return r
}

func (p *People) lookLocked() *rights.Roster {
	f, err := p.doc.Now()
	if p.err = err; err == nil && f != p.read {
		p.read, p.roster = f, f.roster()
		p.endLivesLocked()
	}
	return p.roster
}

// OnError makes Look call told with an error when the file cannot be read, and with nil
// when it can be read again. OnError must not be called concurrently with other methods.
func (p *People) OnError(told func(error)) { p.told = told }

// Err returns why the file could not be read last, or nil. While it cannot be read, the
// former contents stay in force.
func (p *People) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Tokens returns the tokens given to OpenPeople.
func (p *People) Tokens() *Tokens { return p.tokens }

// Agent implements rights.People.
func (p *People) Agent(name string) (owner string, ok bool) { return p.tokens.Agent(name) }

// List returns the contents of the file: whether audiences are in force, the people, the
// names of each group's members, and the grants.
func (p *People) List() (on bool, people []Person, groups map[string][]string, grants []MachineGrant, err error) {
	f, err := p.doc.Now()
	if err != nil {
		return false, nil, nil, nil, err
	}
	groups = map[string][]string{}
	for _, g := range slices.Concat(f.Groups, f.Provided) {
		if groups[g.Name] == nil {
			groups[g.Name] = []string{}
		}
		for _, id := range g.Members {
			groups[g.Name] = append(groups[g.Name], f.name(id))
		}
	}
	return f.On, slices.Clone(f.People), groups, slices.Clone(f.Grants), nil
}

// Switch makes audiences be in force or not.
func (p *People) Switch(on bool) error {
	return p.doc.Change(func(f *peopleFile) error { f.On = on; return nil })
}

// Ensure returns the person of that name, and adds that person if there is none.
func (p *People) Ensure(name string) (one Person, err error) {
	if err := checkName(name); err != nil {
		return Person{}, err
	}
	if name == ahp.ToEveryone {
		return Person{}, fmt.Errorf("no person can have the name %s: it stands for all of them", name)
	}
	err = p.doc.Change(func(f *peopleFile) error {
		for _, o := range f.People {
			switch {
			case o.Name == name && o.Ended == nil:
				one = o
				return nil
			case strings.EqualFold(o.Name, name):
				return fmt.Errorf("the name %s is, or was, that of %s: names are given once; use another", name, o.Name)
			}
		}
		if len(f.People) >= maxPeople {
			return fmt.Errorf("there are %d people, the maximum", maxPeople)
		}
		tokens, err := p.tokens.records()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(tokens, func(r record) bool { return r.takesName(name) }); i >= 0 {
			return fmt.Errorf("the name %s is that of a token for the role %s: no person can have it", tokens[i].Principal, tokens[i].Role)
		}
		one = Person{ID: newPersonID(), Name: name, Created: time.Now().UTC().Truncate(time.Second)}
		f.People = append(f.People, one)
		return nil
	})
	return one, err
}

// takesName reports whether the record is of a machine or an agent that has a name, so
// that no person can have it. Only an observer has the name of a person: the one to whom
// the token belongs.
func (r *record) takesName(name string) bool {
	return r.Role != rights.RoleObserver && strings.EqualFold(r.Principal, name)
}

// hadPerson reports whether a person has or had that name.
func (f *peopleFile) hadPerson(name string) bool {
	return slices.ContainsFunc(f.People, func(o Person) bool { return strings.EqualFold(o.Name, name) })
}

// MayName returns an error if a person has or had that name, so that no new token for
// that role, and no new machine, can have it. owner is the name of the person to whom it
// is to belong, who may not exist yet; empty means the administrator.
func (p *People) MayName(principal string, role rights.Role, owner string) error {
	f, err := p.doc.Now()
	if err == nil && role != rights.RoleObserver && (f.hadPerson(principal) || strings.EqualFold(principal, owner)) {
		err = fmt.Errorf("%w: %s is, or was, a person's name, and only an observer's token may have that; use another", ErrTakenName, principal)
	}
	return err
}

// Clashes returns the machines and tokens that have the name of a person, as files from
// before may have them.
func (p *People) Clashes() ([]Info, error) {
	all, err := p.tokens.List()
	names := map[string]bool{}
	for _, name := range p.Look().People {
		names[strings.ToLower(name)] = true
	}
	return slices.DeleteFunc(all, func(i Info) bool { return i.Role == rights.RoleObserver || !names[strings.ToLower(i.Principal)] }), err
}

// Find returns the id of the person of that name who has not ended; ok is false if there
// is none.
func (p *People) Find(name string) (id string, ok bool) {
	for id, one := range p.Look().People {
		if one == name {
			return id, true
		}
	}
	return "", false
}

// End ends a person and removes them from all groups. Nobody else can get the name.
// Tokens stay.
func (p *People) End(name string) (one Person, err error) {
	err = p.doc.Change(func(f *peopleFile) error {
		i := f.find(name)
		if i < 0 {
			return fmt.Errorf("%w: %.80q", ErrNoPerson, name)
		}
		f.People[i].Ended = new(time.Now().UTC().Truncate(time.Second))
		one = f.People[i]
		for g := range f.Groups {
			f.Groups[g].Members = slices.DeleteFunc(f.Groups[g].Members, func(id string) bool { return id == one.ID })
		}
		f.provide(one.ID, nil)
		f.Grants = slices.DeleteFunc(f.Grants, func(g MachineGrant) bool { return g.ID == one.ID || g.Owner == one.ID })
		return nil
	})
	return one, err
}

// Join adds people to a group, and makes the group if it does not exist.
func (p *People) Join(group string, names ...string) error {
	if err := checkName(group); err != nil {
		return err
	}
	return p.doc.Change(func(f *peopleFile) error {
		i := slices.IndexFunc(f.Groups, func(g groupRecord) bool { return g.Name == group })
		if i < 0 {
			if len(f.Groups) >= maxGroups {
				return fmt.Errorf("there are %d groups, the maximum", maxGroups)
			}
			i, f.Groups = len(f.Groups), append(f.Groups, groupRecord{Name: group, Members: []string{}})
		}
		for _, name := range names {
			one := f.find(name)
			if one < 0 {
				return fmt.Errorf("%w: %.80q; a person exists once something belongs to them, see tether-host token create --help", ErrNoPerson, name)
			}
			if id := f.People[one].ID; !slices.Contains(f.Groups[i].Members, id) {
				f.Groups[i].Members = append(f.Groups[i].Members, id)
			}
		}
		return nil
	})
}

// Leave removes people from a group; without names, it removes the group.
func (p *People) Leave(group string, names ...string) error {
	return p.doc.Change(func(f *peopleFile) error {
		i := slices.IndexFunc(f.Groups, func(g groupRecord) bool { return g.Name == group })
		if i < 0 {
			return fmt.Errorf("%w: %.80q", ErrNoGroup, group)
		}
		if len(names) == 0 {
			f.Groups = slices.Delete(f.Groups, i, i+1)
			return nil
		}
		for _, name := range names {
			one := f.find(name)
			if one < 0 || !slices.Contains(f.Groups[i].Members, f.People[one].ID) {
				return fmt.Errorf("%w in the group: %.80q", ErrNoPerson, name)
			}
			f.Groups[i].Members = slices.DeleteFunc(f.Groups[i].Members, func(id string) bool { return id == f.People[one].ID })
		}
		return nil
	})
}

// Grant lets the people, groups or agents named in to, written as in ahp.Grant, watch the
// terminals that a machine lends. It has effect only if the machine accepts grants of the
// host's administrator.
func (p *People) Grant(machine string, to ...string) error {
	owner, ok := p.tokens.machine(machine)
	if !ok {
		return fmt.Errorf("no machine has the name %.80q; tether-host token ls lists them", machine)
	}
	return p.doc.Change(func(f *peopleFile) error {
		roster := f.roster()
		for _, name := range to {
			g, ok := rights.Resolve(p, roster, name)
			if !ok {
				return fmt.Errorf("nobody here is called %.80q: give a person's name, group:NAME, agent:NAME or everyone", name)
			}
			one := MachineGrant{Machine: machine, Owner: owner, To: name, ID: g.ID, Created: time.Now().UTC().Truncate(time.Second)}
			f.Grants = slices.DeleteFunc(f.Grants, func(o MachineGrant) bool { return o.Machine == machine && o.To == name })
			if f.Grants = append(f.Grants, one); len(f.Grants) > maxMachineGrants {
				return fmt.Errorf("there are %d grants, the maximum; tether-host grants end ends one", maxMachineGrants)
			}
		}
		return nil
	})
}

// EndGrant ends the grant of a machine to one name, or all its grants if to is empty.
func (p *People) EndGrant(machine, to string) (ended int, err error) {
	err = p.doc.Change(func(f *peopleFile) error {
		before := len(f.Grants)
		f.Grants = slices.DeleteFunc(f.Grants, func(g MachineGrant) bool { return g.Machine == machine && (to == "" || g.To == to) })
		if ended = before - len(f.Grants); ended == 0 {
			return ErrNoGrant
		}
		return nil
	})
	return ended, err
}

// Withdraw implements rights.People. Beyond 1,000 withdrawals the oldest are forgotten.
func (p *People) Withdraw(terminal, to string, g rights.Grantee) error {
	return p.doc.Change(func(f *peopleFile) error {
		f.Withdrawn = slices.DeleteFunc(f.Withdrawn, func(w withdrawal) bool { return w.Terminal == terminal && w.To == to })
		f.Withdrawn = append(f.Withdrawn, withdrawal{Terminal: terminal, To: to, ID: g.ID, Created: time.Now().UTC().Truncate(time.Second)})
		f.Withdrawn = f.Withdrawn[max(0, len(f.Withdrawn)-maxWithdrawn):]
		return nil
	})
}

// find returns the index of the person of that name, or -1.
func (f *peopleFile) find(name string) int {
	return slices.IndexFunc(f.People, func(o Person) bool { return o.Name == name && o.Ended == nil })
}

// name returns the name of the person with that id, or "".
func (f *peopleFile) name(id string) string {
	i := slices.IndexFunc(f.People, func(o Person) bool { return o.ID == id })
	if i < 0 {
		return ""
	}
	return f.People[i].Name
}

// roster returns the contents as the host uses them.
func (f *peopleFile) roster() *rights.Roster {
	r := &rights.Roster{On: f.On, People: map[string]string{}, Groups: map[string][]string{}}
	for _, o := range f.People {
		if o.Ended == nil {
			r.People[o.ID] = o.Name
		}
	}
	for _, g := range slices.Concat(f.Groups, f.Provided) {
		r.Groups[g.Name] = append(r.Groups[g.Name][:len(r.Groups[g.Name]):len(r.Groups[g.Name])], g.Members...)
	}
	for _, g := range f.Grants {
		r.Grants = append(r.Grants, rights.MachineGrant{Machine: g.Machine, Owner: g.Owner, To: rights.KeptGrantee(g.To, g.ID)})
	}
	for _, w := range f.Withdrawn {
		if r.Withdrawn == nil {
			r.Withdrawn = map[string][]rights.Grantee{}
		}
		r.Withdrawn[w.Terminal] = append(r.Withdrawn[w.Terminal], rights.KeptGrantee(w.To, w.ID))
	}
	return r
}

// check checks the contents.
func (f *peopleFile) check() error {
	members, provided := 0, 0
	for _, g := range f.Provided {
		if checkName(g.Name) != nil {
			return fmt.Errorf("the group %.80q has an invalid name", g.Name)
		}
		provided += len(g.Members)
	}
	if len(f.Provided) > maxProvidedGroups || provided > maxProvidedMembers {
		return fmt.Errorf("more than %d groups of identity providers, or %d members", maxProvidedGroups, maxProvidedMembers)
	}
	for _, g := range f.Groups {
		if checkName(g.Name) != nil {
			return fmt.Errorf("the group %.80q has an invalid name", g.Name)
		}
		members += len(g.Members)
	}
	if len(f.People) > maxPeople || len(f.Groups) > maxGroups || members > maxMembers || len(f.Grants) > maxMachineGrants {
		return fmt.Errorf("more than %d people, %d groups, %d members of groups or %d grants", maxPeople, maxGroups, maxMembers, maxMachineGrants)
	}
	for _, w := range f.Withdrawn {
		if ahp.CheckURI(w.Terminal) != nil || ahp.CheckAudienceName(w.To, false) != nil || len(f.Withdrawn) > maxWithdrawn {
			return fmt.Errorf("the withdrawal from %.80q is none, or one of more than %d", w.To, maxWithdrawn)
		}
	}
	ids, names := map[string]bool{}, map[string]bool{}
	for _, o := range f.People {
		name := strings.ToLower(o.Name)
		if o.ID == "" || len(o.ID) > maxName || checkName(o.Name) != nil || ids[o.ID] || names[name] {
			return fmt.Errorf("the entry of %.80q is not a person, or there twice", o.Name)
		}
		if (o.Issuer == "") != (o.Subject == "") || len(o.Issuer)+len(o.Subject) > maxIdentity {
			return fmt.Errorf("the identity of %.80q is invalid", o.Name)
		}
		ids[o.ID], names[name] = true, true
	}
	for _, g := range f.Grants {
		if checkName(g.Machine) != nil || ahp.CheckAudienceName(g.To, false) != nil {
			return fmt.Errorf("the grant for %.80q is invalid", g.Machine)
		}
	}
	return nil
}

// machine returns the owner of the machine of that name; ok is false if there is none.
func (t *Tokens) machine(name string) (owner string, ok bool) {
	all, err := t.records()
	if err != nil {
		return "", false
	}
	i := slices.IndexFunc(all, func(r record) bool { return r.Principal == name && r.Role == rights.RoleMachine })
	if i < 0 {
		return "", false
	}
	return all[i].Owner, true
}
