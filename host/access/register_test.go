package access_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
)

// The page's register shows the contents of the files, and ends entries there.
func TestRegister(t *testing.T) {
	p, tokens, _ := company(t)
	ann := must.Get(p.Ensure("ann"))(t)
	tokens.OwnedBy(ann.ID)
	if _, _, err := tokens.Create("ci", rights.RoleAgent, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tokens.Create("laptop", rights.RoleMachine, 0); err != nil {
		t.Fatal(err)
	}
	must.Do(t, p.Join("web", "ann"))
	must.Do(t, p.Grant("laptop", "group:web"))
	r := access.NewRegister(p)
	find := func(kind rights.EntryKind) rights.Entry {
		t.Helper()
		all := must.Get(r.Entries())(t)
		i := slices.IndexFunc(all, func(e rights.Entry) bool { return e.Kind == kind })
		if i < 0 {
			return rights.Entry{}
		}
		return all[i]
	}
	for kind, want := range map[rights.EntryKind]string{rights.EntryMachine: "laptop token", rights.EntryAgent: "ci agent", rights.EntryPerson: "ann web", rights.EntryGrant: "laptop group:web"} {
		if e := find(kind); e.Name+" "+e.Detail != want || e.OwnerID != ann.ID || e.Since == nil {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	for _, kind := range []rights.EntryKind{rights.EntryGrant, rights.EntryAgent} {
		id := find(kind).ID
		if err := r.End(kind, id); err != nil || find(kind).ID != "" {
			t.Errorf("ending the %s: %v", kind, err)
		}
		if err := r.End(kind, id); !errors.Is(err, rights.ErrNoEntry) {
			t.Errorf("ending the %s again: %v", kind, err)
		}
	}
	if err := r.End(rights.EntrySession, "x"); !errors.Is(err, rights.ErrNoEntry) {
		t.Errorf("a login that is not there: %v", err)
	}
	must.Do(t, r.End(rights.EntryPerson, ann.ID))
	if all, err := r.Entries(); err != nil || len(all) != 0 {
		t.Errorf("after the end of ann, whose all of it was: %s, %v", strings.TrimSpace(fmt.Sprint(all)), err)
	}
}
