package term_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"tether/agent/term"
)

// A shell that enters a directory that a rule forbids to lend, while somebody lends it,
// is not lent.
func TestLendingRacesAShellThatGoesAstray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goes := func() {}
		h, f, _ := start(t, term.Options{MayLend: func(i term.Info, host string) error {
			if i.Cwd == "/private" {
				return errors.New("rule")
			}
			goes()
			return nil
		}}, term.Spec{Nonce: "n0"})
		goes = func() {
			goes = func() {}
			prints(f, "\x1b]633;P;Cwd=/private;n0\a")
		}
		_ = h.Lend("lab")
		synctest.Wait()
		if got := h.Info(); len(got.LentTo) > 0 {
			t.Errorf("it is lent to %v from %s", got.LentTo, got.Cwd)
		}
	})
}

// A shell that has left again where a rule forbids lending, before anybody could be
// asked, was there.
func TestAShellThatGoesAstrayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{MayLend: func(i term.Info, host string) error {
			if i.Cwd == "/private" {
				return errors.New("rule")
			}
			return nil
		}}, term.Spec{Nonce: "n0", LendTo: []string{"lab"}})
		prints(f, "\x1b]633;P;Cwd=/private;n0\a$ cat secret\r\n\x1b]633;P;Cwd=/work;n0\a")
		if got := h.Info(); len(got.LentTo) > 0 || got.Cwd != "/work" {
			t.Errorf("in %s it is lent to %v", got.Cwd, got.LentTo)
		}
	})
}

// The name of a directory that is no text, or is too long to be kept, leads around no
// rule.
func TestAShellThatGoesAstrayUnderAnOddName(t *testing.T) {
	for _, dir := range []string{"/private/caf\xe9", "/private/" + strings.Repeat("deep/", 1000)} {
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := start(t, term.Options{MayLend: func(i term.Info, host string) error {
				if strings.HasPrefix(i.Cwd, "/private/") {
					return errors.New("rule")
				}
				return nil
			}}, term.Spec{Nonce: "n0", LendTo: []string{"lab"}})
			prints(f, "\x1b]633;P;Cwd="+dir+";n0\a")
			if got := h.Info(); len(got.LentTo) > 0 || len(got.Cwd) > 4<<10 || !utf8.ValidString(got.Cwd) {
				t.Errorf("in %.40q, of %d bytes, it is lent to %v", got.Cwd, len(got.Cwd), got.LentTo)
			}
		})
	}
}

// The next daemon lends a shell for where it is, not for where it was: neither at the
// oldest place from where its output can be scanned, nor on the way from there.
func TestTheNextDaemonAsksWhereAShellIsNow(t *testing.T) {
	for _, c := range []struct {
		name, path string // the directories one after the other
		lent       int
	}{{"it was there", "/private /work", 1}, {"long ago", "/private /private /private /private /work", 1}, {"it is there", "/work /private", 0}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVault(1 << 20)
				pool, _, l := keeping(t, v, term.Options{}, term.Spec{Nonce: "n0", LendTo: []string{"lab"}})
				for dir := range strings.FieldsSeq(c.path) {
					v.print("\x1b]633;P;Cwd=" + dir + ";n0\a" + strings.Repeat(strings.Repeat("x", 78)+"\r\n", 5000))
					synctest.Wait()
				}
				l.leave(pool)
				asked := 0
				var h term.Handle
				pool, h, l = adopting(t, v, term.Options{MayLend: func(i term.Info, host string) error {
					if asked++; i.Cwd == "/private" {
						return errors.New("rule")
					}
					return nil
				}})
				synctest.Wait()
				if got := h.Info(); len(got.LentTo) != c.lent || !strings.HasSuffix(c.path, got.Cwd) {
					t.Errorf("the next daemon lends it to %v, in %s", got.LentTo, got.Cwd)
				}
				if asked != 1 {
					t.Errorf("it was asked %d times", asked)
				}
				l.leave(pool)
			})
		})
	}
}
