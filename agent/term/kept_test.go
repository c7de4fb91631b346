package term_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/vocab"
)

// An exited terminal is the same for the next daemon: output, commands, exit with its
// reason and time, loans. Its exit is told once.
func TestExitedIsKeptForTheNextDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, _ := keeping(t, v, term.Options{}, term.Spec{Nonce: "n", LendTo: []string{"lab", "away"}})
		hostOf(t, pool, "lab")
		v.print("before \x1b]633;E;make;n\a\x1b]633;C;n\aout\x1b]633;D;2;n\a\x1b]633;E;sleep;n\a\x1b]633;C;n\a")
		synctest.Wait()
		must.Do(t, h.Kill(t.Context()))
		hostOf(t, pool, "lab").Heard()
		synctest.Wait()
		was, commands := h.Info(), commandsOf(t, h)
		must.Do(t, h.Unlend("away"))
		was.LentTo, was.Loans = was.LentTo[:1], was.Loans[:1]
		for round := range 2 {
			must.Get(pool.Detach(t.Context()))(t)
			time.Sleep(10 * time.Minute)
			var acts []term.Act
			pool, h, _ = adopting(t, v, term.Options{Observe: func(a term.Act) { acts = append(acts, a) }})
			check.Equal(t, fmt.Sprintf("round %d", round), was, h.Info())
			check.Equal(t, fmt.Sprintf("round %d: commands", round), commands, commandsOf(t, h))
			if !hostOf(t, pool, "lab").HasHeard() {
				t.Error("the host is to be told again")
			}
			if text, lost := readAll(t, reader(t, h, output.ReaderOptions{})); string(text) != "before out" || lost > 0 {
				t.Errorf("text %q, %d bytes lost", text, lost)
			}
			if len(acts) > 0 {
				t.Errorf("told again: %+v", acts)
			}
		}
		time.Sleep(time.Hour) // the bound of Options.KeepFor
		if _, _, forgot, _ := v.state(); !forgot {
			t.Error("the holder keeps it for ever")
		}
		pool.Close(context.Background())
	})
}

func commandsOf(t *testing.T, h term.Handle) []vocab.Command {
	t.Helper()
	return must.Get(h.Commands())(t)
}

// Holders keep the newest 20 that have exited, as long as there is memory for them, and
// none when the pool is closed.
func TestTheNewestExitedAreKept(t *testing.T) {
	const each = 100 << 10
	for _, test := range []struct {
		name  string
		total int64
		kept  int
	}{{"all", 0, 20}, {"what there is memory for", 25*(128<<10) + 15*each + 50<<10, 15}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vaults := map[term.ID]*vault{}
				pool := term.NewPool(term.Options{TotalLogBytes: test.total, Start: func(id term.ID, _ pty.Command) (term.PTY, error) {
					vaults[id] = newVault(1 << 20)
					l, _ := vaults[id].connect()
					return l, nil
				}})
				var ids []term.ID
				for n := range 25 {
					id := term.ID(fmt.Sprintf("pty-%02d", n))
					h := must.Get(pool.As(term.User).Spawn(term.Spec{ID: id, Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
					ids = append(ids, id)
					vaults[id].print(string(make([]byte, each)))
					vaults[id].ends(0)
					<-h.Done()
					time.Sleep(time.Second)
				}
				synctest.Wait()
				for n, id := range ids {
					if _, _, forgot, _ := vaults[id].state(); forgot == (n >= len(ids)-test.kept) {
						t.Errorf("%s is kept by its holder: %v", id, !forgot)
					}
				}
				if all := pool.As(term.User).List(); len(all) != len(ids) {
					t.Errorf("%d can be read, of %d", len(all), len(ids))
				}
				used, bound := pool.Memory()
				if used > bound || used < int64(25*each+test.kept*each) {
					t.Errorf("%d bytes are counted, the bound is %d", used, bound)
				}
				check.OK(t, pool.Close(context.Background()))
				for _, v := range vaults {
					if _, _, forgot, _ := v.state(); !forgot {
						t.Error("one is kept although the pool has ended")
					}
				}
			})
		})
	}
}
