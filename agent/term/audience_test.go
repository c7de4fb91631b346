package term_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// The holder keeps the audience for the next daemon, in time for it to be announced so.
func TestAudienceSurvivesTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab"}, Audience: []string{"ann"}})
		v.print("hello")
		synctest.Wait()
		yes := true
		for _, c := range []loans.AudienceChange{{Grant: []string{"bob", "group:web"}, FromNow: true}, {Deny: []string{"ann"}}, {GuestsOnly: &yes}} {
			must.Do(t, h.ChangeAudience("lab", c))
		}
		want := loans.Audience{Grants: []loans.Grant{{To: "bob", From: 5}, {To: "group:web", From: 5}}, Denied: []string{"ann"}, GuestsOnly: true}
		loan, _ := h.Loan("lab")
		if diff := cmp.Diff(want, loan.Audience); diff != "" {
			t.Fatal(diff)
		}
		l.leave(pool)
		pool, h, l = adopting(t, v, term.Options{})
		loan, ok := h.Loan("lab")
		if diff := cmp.Diff(want, loan.Audience); diff != "" || !ok {
			t.Errorf("the next daemon: %v %s", ok, diff)
		}
		l.leave(pool)
	})
}

func TestChangeAudience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab"}})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		loan := func() loans.Loan { loan, _ := h.Loan("lab"); return loan }
		version := loan().Version
		change := func(c loans.AudienceChange) error { return h.ChangeAudience("lab", c) }
		if change(loans.AudienceChange{Grant: []string{"ann", "ann"}}) != nil || len(loan().Audience.Grants) != 1 || loan().Version <= version {
			t.Errorf("%+v", loan())
		}
		version = loan().Version
		if change(loans.AudienceChange{Grant: []string{"ann"}}) != nil || loan().Version != version {
			t.Error("the same again is a change")
		}
		if change(loans.AudienceChange{Deny: []string{"ann"}}) != nil || len(loan().Audience.Grants) != 0 || len(loan().Audience.Denied) != 1 {
			t.Errorf("denied: %+v", loan())
		}
		if change(loans.AudienceChange{Grant: []string{"ann"}}) != nil || len(loan().Audience.Denied) != 0 {
			t.Errorf("granted again: %+v", loan())
		}
		var many []string
		for i := range loans.MaxNames {
			many = append(many, fmt.Sprint("x", i))
		}
		before := loan()
		if err := change(loans.AudienceChange{Grant: many}); !errors.Is(err, loans.ErrTooManyNames) || !cmp.Equal(before, loan()) {
			t.Errorf("too many: %v", err)
		}
		check.OK(t, h.LendTo("office", loans.Change{Audience: loans.AudienceChange{Grant: many}}))
		if err := h.LendTo("third", loans.Change{Audience: loans.AudienceChange{Grant: many}}); !errors.Is(err, loans.ErrTooManyNames) || h.Info().LentToHost("third") {
			t.Errorf("too many for a holder: %v", err)
		}
		if err := h.ChangeAudience("nowhere", loans.AudienceChange{Grant: []string{"ann"}}); !errors.Is(err, loans.ErrNotLent) {
			t.Errorf("not lent: %v", err)
		}
	})
}
