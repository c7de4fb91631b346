package access_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func identified(t *testing.T, p *access.People, i rights.Identity) rights.Principal {
	t.Helper()
	return must.Get(p.LoggedIn(i))(t)
}

// A person is the provider's subject: somebody else with the same name or address is
// another person.
func TestIdentities(t *testing.T) {
	p, _, dir := company(t)
	must.Get(p.Ensure("carol"))(t)
	identity := func(subject, wanted string, groups ...string) rights.Identity {
		return rights.Identity{Issuer: "https://id.example.com", Subject: subject, Wanted: wanted, Groups: groups}
	}
	ann := identified(t, p, identity("1", "ann"))
	if ann.Name != "ann" || ann.Role != rights.RoleObserver || ann.Owner == "" || ann.Live.Err() != nil {
		t.Fatalf("ann is %+v", ann)
	}
	for _, c := range []struct{ subject, wanted, name string }{
		{"1", "renamed", "ann"}, {"2", "ann", "ann-2"}, {"3", "ANN", "ANN-3"}, {"4", "carol", "carol-2"}, {"5", "everyone", "everyone-2"},
		{"6", "", "person"}, {"7", "-_.", "person-2"}, {"8", "Zoë O'Neil/x", "ZoONeilx"}, {"9", strings.Repeat("x", 300), strings.Repeat("x", 56)},
	} {
		if one := identified(t, p, identity(c.subject, c.wanted)); one.Name != c.name || c.subject == "1" && one.Owner != ann.Owner {
			t.Errorf("%+v is %q", c, one.Name)
		}
	}
	other := identity("1", "ann")
	other.Issuer = "https://other.example.com"
	if one := identified(t, p, other); one.Owner == ann.Owner {
		t.Error("another provider's subject is the same person")
	}
	for _, i := range []rights.Identity{{Subject: "1"}, {Issuer: "x"}, identity(strings.Repeat("x", 2000), "x")} {
		if one, err := p.LoggedIn(i); err == nil {
			t.Errorf("%.40v is %v", i, one)
		}
	}

	must.Get(p.End("ann"))(t)
	p.Look()
	if ann.Live.Err() == nil {
		t.Error("what ann has opened goes on")
	}
	if _, err := p.LoggedIn(identity("1", "ann")); !errors.Is(err, access.ErrEnded) {
		t.Errorf("ann, who was ended: %v", err)
	}
	if one := identified(t, p, identity("10", "ann")); one.Name == "ann" {
		t.Error("the name of somebody who was ended is given again")
	}
	again := must.Get(access.OpenPeople(access.File(filepath.Join(dir, "people.json")), nil))(t)
	if one := identified(t, again, identity("2", "x")); one.Name != "ann-2" {
		t.Errorf("after a restart ann-2 is %s", one.Name)
	}
}

// The groups of the provider count in addition to the local ones, and each login replaces
// them.
func TestProvidedGroups(t *testing.T) {
	p, _, _ := company(t)
	must.Get(p.Ensure("bob"))(t)
	must.Do(t, p.Join("web", "bob"))
	members := func(group string) string {
		r := p.Look()
		var names []string
		for _, id := range r.Groups[group] {
			names = append(names, r.People[id])
		}
		return strings.Join(names, " ")
	}
	ann := rights.Identity{Issuer: "https://id.example.com", Subject: "1", Wanted: "ann", Groups: []string{"web", "ops", "web"}}
	identified(t, p, ann)
	if members("web") != "bob ann" || members("ops") != "ann" {
		t.Errorf("web: %s; ops: %s", members("web"), members("ops"))
	}
	before := p.Look()
	identified(t, p, ann)
	if p.Look() != before {
		t.Error("a login that changes nothing has written the file")
	}
	ann.Groups = []string{"design"}
	identified(t, p, ann)
	if members("web") != "bob" || members("ops") != "" || members("design") != "ann" {
		t.Errorf("web: %s; ops: %s; design: %s", members("web"), members("ops"), members("design"))
	}
	must.Get(p.End("ann"))(t)
	if got := members("design"); got != "" {
		t.Errorf("design: %s", got)
	}
	for i := range 1200 { // beyond the bounds nothing counts, and nothing breaks
		if i%300 == 0 {
			ann.Subject = fmt.Sprint("many ", i)
			ann.Groups = nil
		}
		ann.Groups = append(ann.Groups, fmt.Sprintf("g%d", i))
		if i%300 == 299 {
			identified(t, p, ann)
		}
	}
	if n := len(p.Look().Groups); n != 1001 {
		t.Errorf("%d groups", n)
	}
}

// A person and a machine or an agent never get the same name: who logs in gets a free
// one, and a new token cannot have a person's, even of one who has left. An observer's
// token is the person's own. Pairs in files from before are found.
func TestPeopleAndAgentsHaveOtherNames(t *testing.T) {
	p, tokens, _ := company(t)
	in := func(subject, wanted string) string {
		return identified(t, p, rights.Identity{Issuer: "https://id.example.com", Subject: subject, Wanted: wanted}).Name
	}
	for name, role := range map[string]rights.Role{"ci": rights.RoleAgent, "bot": rights.RoleOperator, "laptop": rights.RoleMachine, "root": rights.RoleAdmin, "eve": rights.RoleObserver} {
		create(t, tokens, name, role, 0)
		if got := in("of "+name, strings.ToUpper(name)); got != strings.ToUpper(name)+"-2" {
			t.Errorf("who is called as a token for the role %s logs in as %s", role, got)
		}
		_, err := p.Ensure(name)
		if (err == nil) != (role == rights.RoleObserver) {
			t.Errorf("a person with the name of a token for the role %s: %v", role, err)
		}
	}
	if _, _, err := tokens.CreatePairing("desk", 0); err != nil {
		t.Fatal(err)
	}
	if got := in("of desk", "desk"); got != "desk-2" {
		t.Errorf("who is called as a machine that may pair logs in as %s", got)
	}
	in("1", "ann")
	for _, end := range []bool{false, true} {
		if end {
			must.Get(p.End("ann"))(t)
		}
		for _, role := range rights.Roles() {
			if err := p.MayName("Ann", role, ""); (err == nil) != (role == rights.RoleObserver) || err != nil && !errors.Is(err, access.ErrTakenName) {
				t.Errorf("ended %t: a token for the role %s with a person's name: %v", end, role, err)
			}
		}
	}
	if err := p.MayName("fred", rights.RoleAgent, "Fred"); err == nil {
		t.Error("an agent has the name of the person to whom it is to belong")
	}
	check.OK(t, p.MayName("fred", rights.RoleAgent, "eve"))
	if found, err := p.Clashes(); err != nil || len(found) != 0 {
		t.Errorf("clashes: %v, %v", found, err)
	}
	create(t, tokens, "CI-2", rights.RoleAgent, 0) // as a program from before made one
	if found, err := p.Clashes(); err != nil || len(found) != 1 || found[0].Principal != "CI-2" || found[0].Role != rights.RoleAgent {
		t.Errorf("clashes: %v, %v", found, err)
	}
}
