package declared_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/config"
	"tether/agent/declared"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func web(restart string) config.Declared {
	return config.Declared{Name: "web", Line: "npm run dev", Restart: restart}
}

// begin returns a set that has begun, and settles.
func begin(t *testing.T, m *machine, dir string, all ...config.Declared) *declared.Set {
	t.Helper()
	s := declared.New(declared.Options{Starter: m, Keep: filepath.Join(dir, "declared.json"), Report: func(trouble string) {
		if trouble != "" {
			t.Error(trouble)
		}
	}})
	s.Begin(all)
	t.Cleanup(s.Close)
	synctest.Wait()
	return s
}

// brief is the part of a status that most checks compare.
type brief struct {
	State    declared.State
	ID       string
	Restarts int
	Code     int
	Err      string
}

func expect(t *testing.T, s *declared.Set, want ...brief) {
	t.Helper()
	synctest.Wait()
	var got []brief
	for _, x := range s.List() {
		got = append(got, brief{x.State, x.ID, x.Restarts, x.Code, x.Err})
	}
	check.Equal(t, "", want, got)
}

func private(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o700))
	return dir
}

// The declarations decide what happens after an end.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		restart string
		code    int
		want    declared.State
	}{
		{"", 1, declared.Exited}, {"never", 1, declared.Exited}, {"on-failure", 0, declared.Exited},
		{"on-failure", 1, declared.Waiting}, {"on-failure", -1, declared.Waiting}, {"always", 0, declared.Waiting},
	} {
		t.Run(c.restart, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine()
				s := begin(t, m, private(t), web(c.restart))
				expect(t, s, brief{State: declared.Running, ID: "web-1"})
				m.all["web-1"].exit(declared.End{Code: c.code})
				expect(t, s, brief{State: c.want, ID: "web-1", Code: c.code})
				time.Sleep(time.Hour)
				synctest.Wait()
				if again := len(m.running()) == 1; again != (c.want == declared.Waiting) {
					t.Errorf("an hour later there run %v", m.running())
				}
			})
		})
	}
}

// A program that ends at once is started less and less often, and one that ran for long
// soon again.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		s := begin(t, m, private(t), web("always"))
		var pauses []time.Duration
		for i := range 9 {
			if i == 8 {
				time.Sleep(2 * time.Minute) // it runs
			}
			for id := range m.running() {
				m.all[id].exit(declared.End{})
			}
			synctest.Wait()
			pause := time.Until(s.List()[0].Next)
			pauses = append(pauses, pause)
			time.Sleep(pause - time.Millisecond)
			synctest.Wait()
			if n := len(m.running()); n != 0 {
				t.Fatalf("restart %d comes early", i)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if n := len(m.running()); n != 1 {
				t.Fatalf("restart %d: %d run", i, n)
			}
		}
		const sec = time.Second
		check.Equal(t, "", []time.Duration{sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, 60 * sec, 60 * sec, sec}, pauses)
		expect(t, s, brief{State: declared.Running, ID: "web-10", Restarts: 9})
	})
}

func TestUpAndDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, ctx, dir := newMachine(), t.Context(), private(t)
		other := config.Declared{Name: "log", Line: "tail"}
		s := begin(t, m, dir, web("always"), other)
		status, err := s.Down(ctx, "web", "web")
		if err != nil || len(status) != 1 || status[0].State != declared.Down {
			t.Fatalf("%+v, %v", status, err)
		}
		expect(t, s, brief{State: declared.Down, ID: "web-1"}, brief{State: declared.Running, ID: "log-1"})
		time.Sleep(time.Hour)
		expect(t, s, brief{State: declared.Down, ID: "web-1"}, brief{State: declared.Running, ID: "log-1"})
		if _, err := s.Down(ctx, "web"); err != nil {
			t.Errorf("twice: %v", err)
		}

		// The next daemon leaves it down, and knows the other.
		s.Close()
		s = begin(t, m, dir, web("always"), other)
		expect(t, s, brief{State: declared.Down, ID: "web-1"}, brief{State: declared.Running, ID: "log-1"})
		must.Get(s.Up(ctx, nil))(t)
		expect(t, s, brief{State: declared.Running, ID: "web-2"}, brief{State: declared.Running, ID: "log-1"})
		must.Get(s.Up(ctx, nil, "web"))(t)
		must.Get(s.Restart(ctx, "log"))(t)
		expect(t, s, brief{State: declared.Running, ID: "web-2"}, brief{State: declared.Running, ID: "log-2"})
		check.Equal(t, "", map[string]string{"web-2": "web", "log-2": "log"}, m.running())
		var unknown *declared.UnknownError
		if _, err := s.Up(ctx, nil, "web", "wbe"); !errors.As(err, &unknown) || unknown.Name != "wbe" {
			t.Errorf("an unknown name: %v", err)
		}
		s.Close()
		if _, err := s.Up(ctx, nil); err == nil {
			t.Error("a closed set does something")
		}
	})
}

// Who kills it wants it to be down.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		s := begin(t, m, dir, web("always"))
		must.Do(t, m.all["web-1"].Kill(t.Context()))
		expect(t, s, brief{State: declared.Down, ID: "web-1", Code: 143})
		s.Close()
		s = begin(t, m, dir, web("always"))
		expect(t, s, brief{State: declared.Down, ID: "web-1"})
	})
}

// A daemon that ends takes nothing down, whether its terminals go on or end with it.
func TestDaemonEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		begin(t, m, dir, web("always")).Close()
		s := begin(t, m, dir, web("always"))
		expect(t, s, brief{State: declared.Running, ID: "web-1"})
		s.Close()
		must.Do(t, m.all["web-1"].Kill(t.Context()))
		s = begin(t, m, dir, web("always"))
		expect(t, s, brief{State: declared.Running, ID: "web-2"})
	})
}

// Terminals of an earlier daemon are waited for, and not started twice.
func TestSlowAdoption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		begin(t, m, dir, web("always")).Close()
		m.set(func() { m.pending["web-1"] = true })
		s := begin(t, m, dir, web("always"))
		time.Sleep(time.Hour)
		waits := brief{State: declared.Starting, ID: "web-1", Err: "the terminal of an earlier daemon still runs and is not resumed yet"}
		expect(t, s, waits)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Up(ctx, nil, "web"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("up: %v", err)
		}
		m.set(func() { delete(m.pending, "web-1") })
		time.Sleep(time.Second)
		expect(t, s, brief{State: declared.Running, ID: "web-1"})
		s.Close()
		m.set(func() { m.pending["web-1"] = true })
		s = begin(t, m, dir, web("always"))
		m.set(func() { delete(m.pending, "web-1"); m.all["web-1"].exit(declared.End{}) }) // while it was not taken up
		time.Sleep(time.Second)
		expect(t, s, brief{State: declared.Running, ID: "web-2"})
	})
}

func TestCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		m.refuse = errNoProgram
		once := config.Declared{Name: "once", Line: "x"}
		s := begin(t, m, private(t), web("on-failure"), once)
		expect(t, s, brief{State: declared.Waiting, Err: errNoProgram.Error()}, brief{State: declared.Failed, Err: errNoProgram.Error()})
		m.set(func() { m.refuse = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.List(); got[0].State != declared.Running || got[0].Err != "" || got[0].Restarts != 1 || got[1].State != declared.Failed {
			t.Errorf("a second later: %+v", got)
		}
		status, err := s.Up(t.Context(), nil, "once")
		if err != nil || status[0].State != declared.Running {
			t.Errorf("%+v, %v", status, err)
		}
	})
}

func TestDeclareAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		s := begin(t, m, dir, web("always"), config.Declared{Name: "old", Line: "x"})
		changed := web("always")
		changed.Line = "npm start"
		must.Do(t, s.Declare(t.Context(), []config.Declared{{Name: "new", Line: "y"}, changed}))
		expect(t, s, brief{State: declared.Down}, brief{State: declared.Running, ID: "web-1"})
		if !s.List()[1].Changed {
			t.Error("it does not say that another declaration runs")
		}
		must.Get(s.Up(t.Context(), nil))(t)
		must.Get(s.Restart(t.Context(), "web"))(t)
		expect(t, s, brief{State: declared.Running, ID: "new-1"}, brief{State: declared.Running, ID: "web-2"})
		if s.List()[1].Changed {
			t.Error("it says that another declaration runs")
		}
		check.Equal(t, "", map[string]string{"old-1": "old", "new-1": "new", "web-2": "web"}, m.running())
	})
}

// A terminal has the limits of the last up that has started it, also when it is started
// again, by this daemon or the next.
func TestKeptLimits(t *testing.T) {
	testkit.Unix(t, "there are no such limits")
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		limits := &proc.Limits{Umask: new(0o077), Soft: map[string]int64{"nofile": 9}}
		has := func(want *proc.Limits) {
			t.Helper()
			synctest.Wait()
			check.Equal(t, "", want, m.limits)
		}
		s := begin(t, m, dir, web("always"))
		has(nil)
		if _, err := s.Up(t.Context(), limits, "web"); err != nil { // it runs already
			t.Fatal(err)
		}
		must.Get(s.Restart(t.Context(), "web"))(t)
		has(nil)
		must.Get(s.Down(t.Context(), "web"))(t)
		must.Get(s.Up(t.Context(), limits, "web"))(t)
		has(limits)
		m.limits = nil
		m.all["web-3"].exit(declared.End{Code: 1})
		time.Sleep(time.Minute)
		has(limits)
		s.Close()
		m.limits = nil
		m.all["web-4"].exit(declared.End{})
		s = begin(t, m, dir, web("always"))
		has(limits)
		must.Get(s.Down(t.Context(), "web"))(t)
		must.Get(s.Up(t.Context(), nil, "web"))(t)
		has(nil)
	})
}

// A cancelled command leaves a consistent state: running terminals are still followed.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		s := begin(t, m, private(t), web("always"))
		m.all["web-1"].stubborn = true
		for name, do := range map[string]func(context.Context, ...string) ([]declared.Status, error){"down": s.Down, "restart": s.Restart} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := do(ctx, "web"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
			expect(t, s, brief{State: declared.Running, ID: "web-1"})
		}
		m.all["web-1"].exit(declared.End{Code: 1})
		expect(t, s, brief{State: declared.Waiting, ID: "web-1", Code: 1})
		m.set(func() { m.block = true })
		time.Sleep(time.Minute)
		expect(t, s, brief{State: declared.Starting, ID: "web-1", Code: 1, Restarts: 1})
		if _, err := s.Down(t.Context()); err != nil {
			t.Errorf("down while it starts: %v", err)
		}
		expect(t, s, brief{State: declared.Down, ID: "web-1", Code: 1, Restarts: 1})
	})
}

// Without its file the set works, and reports the consequence.
func TestNothingKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		keep := filepath.Join(dir, "declared.json")
		must.Do(t, os.WriteFile(keep, []byte("no JSON"), 0o600))
		var told []string
		s := declared.New(declared.Options{Starter: m, Keep: keep, Report: func(trouble string) { told = append(told, trouble) }})
		s.Begin([]config.Declared{web("")})
		defer s.Close()
		expect(t, s, brief{State: declared.Running, ID: "web-1"})
		if len(told) < 2 || !strings.Contains(told[0], "some may run twice") || told[len(told)-1] != "" {
			t.Errorf("told %q", told)
		}
	})
}

// A store that is read is written the same; nothing else is accepted.
func FuzzStore(f *testing.F) {
	for _, s := range []string{`{"version":1,"terminals":{"web":{"id":"web-a","down":true}}}`, `{"version":2}`, `{"version":1}`, `[]`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := declared.Reparse(data)
		if err != nil {
			return
		}
		twice, err := declared.Reparse(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q became %s, then %s, %v", data, once, twice, err)
		}
	})
}
