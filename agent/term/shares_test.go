package term_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func share(h term.Handle, id string, lasts time.Duration) error {
	return h.LendTo("lab", loans.Change{Share: &loans.Share{ID: id, SecretHash: "00", Until: time.Now().Add(lasts)}})
}

// A terminal that is not lent is lent to the guest alone, and no longer than the last
// link lasts.
func TestShareEndsItsLoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, h, l := keeping(t, newVault(1<<20), term.Options{}, term.Spec{})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		if share(h, "aaaaaaaa", time.Hour) != nil || share(h, "bbbbbbbb", 2*time.Hour) != nil {
			t.Fatal("refused")
		}
		if loan, ok := h.Loan("lab"); !ok || !loan.Audience.GuestsOnly || len(loan.Shares) != 2 || loan.Version == 0 {
			t.Fatalf("%+v", loan)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if loan, ok := h.Loan("lab"); !ok || !loan.Shares[0].Ended || loan.Shares[1].Ended {
			t.Fatalf("after the first: %+v", loan)
		}
		if err := h.Unshare("lab", "aaaaaaaa"); !errors.Is(err, loans.ErrNoShare) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, ok := h.Loan("lab"); ok {
			t.Error("lent after the last link's end")
		}
	})
}

func TestSharesOfALoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, h, l := keeping(t, newVault(1<<20), term.Options{}, term.Spec{LendTo: []string{"lab"}})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		for i := range loans.MaxShares {
			must.Do(t, share(h, fmt.Sprint("aaaaaaaa", i), time.Hour))
		}
		before, _ := h.Loan("lab")
		if err := share(h, "bbbbbbbb", time.Hour); !errors.Is(err, loans.ErrTooManyShares) {
			t.Error(err)
		}
		if before.Audience.GuestsOnly {
			t.Error("a link takes the terminal from those it was lent to")
		}
		check.OK(t, h.Unshare("lab", "aaaaaaaa0"))
		if loan, _ := h.Loan("lab"); loan.Version == before.Version || !loan.Shares[0].Ended || before.Shares[0].Ended {
			t.Errorf("unshared: %+v", loan)
		}
		if err := h.Unshare("nowhere", "aaaaaaaa1"); !errors.Is(err, loans.ErrNotLent) {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if _, ok := h.Loan("lab"); !ok {
			t.Error("the loan ended with its links")
		}
	})
}

// The next daemon also knows of an ended link that the host was not told of.
func TestSharesSurviveTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{})
		if share(h, "aaaaaaaa", time.Hour) != nil || share(h, "bbbbbbbb", time.Hour) != nil || h.Unshare("lab", "aaaaaaaa") != nil {
			t.Fatal("refused")
		}
		synctest.Wait()
		l.leave(pool)
		pool, h, l = adopting(t, v, term.Options{})
		loan, ok := h.Loan("lab")
		if !ok || len(loan.Shares) != 2 || !loan.Shares[0].Ended || loan.Shares[1].Ended || !loan.Audience.GuestsOnly {
			t.Fatalf("the next daemon: %+v", loan)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if _, ok := h.Loan("lab"); ok {
			t.Error("the next daemon does not end it")
		}
		l.leave(pool)
	})
}

// A change that is refused for its names adds no link, and one that is refused for its
// link no names.
func TestShareIsAddedWithItsAudienceOrNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, h, l := keeping(t, newVault(1<<20), term.Options{}, term.Spec{LendTo: []string{"lab"}})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		names := func(n int) (all []string) {
			for i := range n {
				all = append(all, fmt.Sprint("name", i))
			}
			return all
		}
		change := loans.Change{Audience: loans.AudienceChange{Grant: names(loans.MaxNames + 1)}, Share: &loans.Share{ID: "aaaaaaaa", SecretHash: "00", Until: time.Now().Add(time.Hour)}}
		if err := h.LendTo("lab", change); !errors.Is(err, loans.ErrTooManyNames) {
			t.Error(err)
		}
		if loan, _ := h.Loan("lab"); len(loan.Shares) > 0 || len(loan.Audience.Grants) > 0 {
			t.Errorf("it keeps %+v", loan)
		}
		for i := range loans.MaxShares {
			must.Do(t, share(h, fmt.Sprint("aaaaaaaa", i), time.Hour))
		}
		change.Audience.Grant = names(1)
		if err := h.LendTo("lab", change); !errors.Is(err, loans.ErrTooManyShares) {
			t.Error(err)
		}
		if loan, _ := h.Loan("lab"); len(loan.Audience.Grants) > 0 {
			t.Errorf("it keeps %+v", loan)
		}
	})
}

// The audit log has the end of every link, also of one that was not the last.
func TestEndsOfSharesAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []string
		pool, h, l := keeping(t, newVault(1<<20), term.Options{Observe: func(a term.Act) {
			if a.Kind == term.ActUnlend {
				ends = append(ends, a.Host+": "+a.Detail)
			}
		}}, term.Spec{})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		for i, id := range []string{"aaaaaaaa", "bbbbbbbb", "cccccccc"} {
			must.Do(t, share(h, id, time.Duration(i+1)*time.Hour))
		}
		must.Do(t, h.Unshare("lab", "bbbbbbbb"))
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		want := []string{"lab: the link bbbbbbbb", "lab: the link aaaaaaaa, whose time was up", "lab: the link cccccccc, whose time was up", "lab: the last link's time was up"}
		if !slices.Equal(ends, want) {
			t.Errorf("%q, want %q", ends, want)
		}
	})
}

// What cannot be lent cannot be shared either: private terminals, those that a rule
// forbids, and others' requests.
func TestWhatCannotBeLentIsNotShared(t *testing.T) {
	forbidden := errors.New("a rule says never")
	for name, c := range map[string]struct {
		options term.Options
		spec    term.Spec
		want    error
	}{
		"a private terminal":     {term.Options{}, term.Spec{Private: true}, term.ErrPrivate},
		"one that may not leave": {term.Options{MayLend: func(term.Info, string) error { return forbidden }}, term.Spec{}, forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, h, l := keeping(t, newVault(1<<20), c.options, c.spec)
				defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
				if err := share(h, "aaaaaaaa", time.Hour); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if loan, ok := h.Loan("lab"); ok {
					t.Errorf("it is lent: %+v", loan)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		pool, h, l := keepingOf(t, newVault(1<<20), term.Agent("claude"), term.Options{}, term.Spec{})
		defer func() { l.cut(); synctest.Wait(); pool.Close(context.Background()) }()
		var denied *term.DeniedError
		if err := share(h, "aaaaaaaa", time.Hour); !errors.As(err, &denied) {
			t.Errorf("an agent shares its terminal: %v", err)
		}
	})
}
