package uplink_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/host"
	"tether/host/access"
	"tether/internal/testkit/must"
)

// The host hears of a share behind the announcement, again on every connection, and of
// its end also when that came while it was offline.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.cut(true)
		f := newAudienceHost(w)
		w.cut(false)
		w.link.Nudge()
		w.online()
		must.Do(t, w.link.TakesShares())
		h, _ := w.spawn(term.Spec{})
		add := func(id string, lasts time.Duration) {
			t.Helper()
			s := loans.Share{ID: id, SecretHash: strings.Repeat("ab", 32), Until: time.Now().Add(lasts)}
			must.Do(t, h.LendTo("lab", loans.Change{Share: &s}))
		}
		shares := func() (all []string) {
			_, seen := f.last()
			for _, s := range seen {
				if strings.Contains(s, "share ") {
					all = append(all, s)
				}
			}
			return all
		}
		want := func(want ...string) {
			t.Helper()
			if got := shares(); !slices.Equal(got, want) {
				t.Fatalf("the host heard %q, want %q", got, want)
			}
		}
		add("aaaaaaaa", time.Hour)
		if url, err := w.link.ShareTold(t.Context(), h, "aaaaaaaa"); err != nil || url != "https://host.example/s/#" {
			t.Fatalf("%q, %v", url, err)
		}
		if _, seen := f.last(); seen[0] != "audience" {
			t.Errorf("in the order %q", seen)
		}
		add("bbbbbbbb", 2*time.Hour)
		want("share aaaaaaaa", "share bbbbbbbb")
		must.Do(t, h.Unshare("lab", "bbbbbbbb"))
		want("share aaaaaaaa", "share bbbbbbbb", "unshare bbbbbbbb")
		if loan, _ := h.Loan("lab"); len(loan.Shares) != 1 {
			t.Errorf("the host knows of the end, and it is kept: %+v", loan.Shares)
		}

		add("cccccccc", time.Hour)
		synctest.Wait()
		w.cut(true)
		synctest.Wait()
		if _, err := w.link.ShareTold(t.Context(), h, "aaaaaaaa"); !errors.Is(err, uplink.ErrOffline) {
			t.Errorf("offline: %v", err)
		}
		must.Do(t, h.Unshare("lab", "cccccccc"))
		before := len(shares())
		w.cut(false)
		w.link.Nudge()
		w.online()
		synctest.Wait()
		if again := shares()[before:]; !slices.Equal(again, []string{"share aaaaaaaa", "unshare cccccccc"}) {
			t.Errorf("after the outage: %q", again)
		}
		before = len(shares())
		must.Do(t, h.Unlend("lab"))
		synctest.Wait()
		if again := shares()[before:]; len(again) > 0 {
			t.Errorf("after the end of the loan, with which the host ends its links: %q", again)
		}
		f.mu2.Lock()
		f.refuseShares = true
		f.mu2.Unlock()
		add("dddddddd", time.Hour)
		if _, err := w.link.ShareTold(t.Context(), h, "dddddddd"); err == nil || !strings.Contains(err.Error(), "no links here") {
			t.Errorf("refused: %v", err)
		}
		for _, l := range w.link.Status().Terminals {
			if !l.There || l.Problem != "" {
				t.Errorf("a refused share harms the terminal: %+v", l)
			}
		}
	})
}

// Links end at the host with the loan that they belong to, wherever the host was when it
// ended.
func TestLinksEndWithTheirLoan(t *testing.T) {
	for name, away := range map[string]struct{ leave, back func(*world, host.Options) }{
		"while the host is there":    {func(*world, host.Options) {}, func(*world, host.Options) {}},
		"while it cannot be reached": {func(w *world, _ host.Options) { w.cut(true) }, func(w *world, _ host.Options) { w.cut(false) }},
		"while it is started again":  {func(w *world, _ host.Options) { w.stopHost() }, func(w *world, o host.Options) { w.restartHost(o) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := host.Options{Shares: access.OpenShares(access.File(filepath.Join(t.TempDir(), "state", "shares.json")), func(err error) { t.Error(err) })}
				w := newWorld(t, o, nil)
				w.online()
				h, _ := w.spawn(term.Spec{})
				s := loans.Share{ID: "aaaaaaaa", SecretHash: strings.Repeat("ab", 32), Until: time.Now().Add(24 * time.Hour)}
				must.Do(t, h.LendTo("lab", loans.Change{Share: &s}))
				if _, err := w.link.ShareTold(t.Context(), h, s.ID); err != nil || len(o.Shares.Kept()) != 1 {
					t.Fatalf("%v, the host has %v", err, o.Shares.Kept())
				}
				away.leave(w, o)
				time.Sleep(time.Minute)
				must.Do(t, h.Unlend("lab"))
				time.Sleep(time.Minute)
				away.back(w, o)
				w.link.Nudge()
				w.online()
				synctest.Wait()
				if left := o.Shares.Kept(); len(left) > 0 {
					t.Errorf("the host still has %v", left)
				}
			})
		})
	}
}
