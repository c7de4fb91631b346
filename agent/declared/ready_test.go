package declared_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/config"
	"tether/agent/declared"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

var (
	db  = config.Declared{Name: "db", Line: "postgres", Ready: config.Ready{Port: 5432, Timeout: config.Duration(time.Minute)}}
	api = config.Declared{Name: "api", Line: "npm run api", Needs: []string{"db"}}
	top = config.Declared{Name: "top", Line: "npm run dev", Needs: []string{"api", "db"}}
)

// steps is how each is, in a word or two.
func steps(s *declared.Set) (all []string) {
	synctest.Wait()
	for _, x := range s.List() {
		text := fmt.Sprintf("%s %s", x.Spec.Name, x.State)
		switch {
		case x.State == declared.Blocked:
			text += ": " + x.Waits
		case x.Ready != "":
			text += ", " + string(x.Ready)
		}
		all = append(all, text)
	}
	return all
}

func wantSteps(t *testing.T, s *declared.Set, want ...string) {
	t.Helper()
	check.Equal(t, "", want, steps(s))
}

// Each starts when those that it needs are ready, however they are declared in order; a
// restart of the daemon changes nothing of that.
func TestNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		s := begin(t, m, dir, top, api, db)
		wantSteps(t, s, "top blocked: api is blocked", "api blocked: db is starting", "db running, starting")
		time.Sleep(30 * time.Second)
		wantSteps(t, s, "top blocked: api is blocked", "api blocked: db is starting", "db running, starting")

		// The next daemon finds it as it is, and what waits waits on.
		s.Close()
		s = begin(t, m, dir, top, api, db)
		wantSteps(t, s, "top blocked: api is blocked", "api blocked: db is starting", "db running, starting")
		m.all["db-1"].ready()
		wantSteps(t, s, "top running", "api running", "db running, ready")
		if n := m.running(); len(n) != 3 {
			t.Errorf("%v run", n)
		}
		if x := s.List()[2]; x.ReadyWhy != "it listens on port 5432" {
			t.Errorf("%+v", x)
		}

		// Another daemon does not look again: what was ready is.
		s.Close()
		m.all["db-1"].holds = make(chan struct{})
		s = begin(t, m, dir, top, api, db)
		wantSteps(t, s, "top running", "api running", "db running, ready")
		if told := m.all["db-1"].told; !slices.Equal(told, []string{"starting: it is ready when it listens on port 5432", "starting: it is ready when it listens on port 5432",
			"ready: it listens on port 5432", "ready: it listens on port 5432"}) {
			t.Errorf("told %q", told)
		}

		// A start anew begins anew, and those that run stay.
		must.Get(s.Restart(t.Context(), "db"))(t)
		wantSteps(t, s, "top running", "api running", "db running, starting")
		must.Get(s.Restart(t.Context(), "api"))(t)
		wantSteps(t, s, "top running", "api blocked: db is starting", "db running, starting")
		m.all["db-2"].ready()
		wantSteps(t, s, "top running", "api running", "db running, ready")
		m.all["db-2"].exit(declared.End{Code: 1})
		wantSteps(t, s, "top running", "api running", "db exited, stopped")
	})
}

// What is not ready in time has failed, and says why; what needs it says so, and starts
// once it is ready after all.
func TestNotReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		s := begin(t, m, dir, db, api)
		time.Sleep(59 * time.Second)
		wantSteps(t, s, "db running, starting", "api blocked: db is starting")
		time.Sleep(2 * time.Second)
		const why = "not ready within 1m: no program of it listens on port 5432"
		wantSteps(t, s, "db running, failed", "api blocked: db is "+why)
		if x := s.List()[0]; x.ReadyWhy != why || time.Since(x.ReadySince) > 2*time.Second {
			t.Errorf("%+v", x)
		}
		// The next daemon looks for a moment, then it has failed again.
		s.Close()
		s = begin(t, m, dir, db, api)
		wantSteps(t, s, "db running, starting", "api blocked: db is starting")
		time.Sleep(3 * time.Second)
		wantSteps(t, s, "db running, failed", "api blocked: db is "+why)
		// What it waits for may be put down, and up.
		must.Get(s.Down(t.Context(), "db"))(t)
		wantSteps(t, s, "db down", "api blocked: db is down")
		all, err := s.Up(t.Context(), nil, "api")
		if err != nil || len(all) != 2 {
			t.Fatalf("up: %+v, %v", all, err)
		}
		wantSteps(t, s, "db running, starting", "api blocked: db is starting")
		m.all["db-2"].exit(declared.End{Code: 3})
		wantSteps(t, s, "db exited, failed", "api blocked: db is exited")
		must.Get(s.Down(t.Context(), "api"))(t)
		wantSteps(t, s, "db exited, failed", "api down")
		must.Get(s.Up(t.Context(), nil))(t)
		m.all["db-3"].ready()
		wantSteps(t, s, "db running, ready", "api running")
		// What is not declared any more is not there for those that need it.
		m.all["api-1"].exit(declared.End{})
		must.Do(t, s.Declare(t.Context(), []config.Declared{api}))
		must.Get(s.Up(t.Context(), nil))(t)
		wantSteps(t, s, "api blocked: db is not declared any more")
	})
}

// What becomes ready after its time is ready then, and lets those start that need it; the
// next daemon knows.
func TestReadyAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(), private(t)
		s := begin(t, m, dir, db, api)
		time.Sleep(2 * time.Hour)
		wantSteps(t, s, "db running, failed", "api blocked: db is not ready within 1m: no program of it listens on port 5432")
		m.all["db-1"].ready()
		wantSteps(t, s, "db running, ready", "api running")
		s.Close()
		m.all["db-1"].holds = make(chan struct{})
		s = begin(t, m, dir, db, api)
		wantSteps(t, s, "db running, ready", "api running")
		m.all["db-1"].exit(declared.End{})
		wantSteps(t, s, "db exited, stopped", "api running")
	})
}

// A terminal that is kept up waits for what it needs each time that it is started.
func TestNeedsAtARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		kept := api
		kept.Restart = config.RestartAlways
		s := begin(t, m, private(t), db, kept)
		m.all["db-1"].ready()
		wantSteps(t, s, "db running, ready", "api running")
		m.all["db-1"].exit(declared.End{Code: 1})
		m.all["api-1"].exit(declared.End{Code: 1})
		wantSteps(t, s, "db exited, stopped", "api waiting")
		time.Sleep(2 * time.Second)
		wantSteps(t, s, "db exited, stopped", "api blocked: db is exited")
		must.Get(s.Up(t.Context(), nil, "db"))(t)
		m.all["db-2"].ready()
		wantSteps(t, s, "db running, ready", "api running")
	})
}
