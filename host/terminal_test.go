package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

const uri = "ahp-terminal:/t1"

func TestObserverSeesTheOwnersOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
		owner.create(uri)
		watcher.await("the terminal in the catalogue", func() bool { return len(watcher.root.Terminals) == 1 })
		must.Do(t, watcher.subscribe(uri))
		owner.output(uri, "hello \x1b[1mwörld\x1b[m\r\n", 0)
		watcher.awaitText(uri, "hello \x1b[1mwörld\x1b[m\r\n")
		st := watcher.state(uri)
		if st.ExecutionTarget != ahp.TargetClient || !st.Claim.HeldBy("laptop") || st.Title != "build" || st.Cols != 80 {
			t.Errorf("state %+v, want a client-executed 80 columns wide terminal of laptop called build", st)
		}
		owner.await("the acknowledgement", func() bool { return owner.acks[uri] == int64(len("hello \x1b[1mwörld\x1b[m\r\n")) })

		one := int64(1)
		owner.dispatch(uri, ahp.TerminalExited{ExitCode: &one})
		watcher.await("the exit", func() bool {
			return watcher.states[uri].Lifecycle.Exited() && watcher.root.Terminals[0].Lifecycle.Exited()
		})
		if got := *watcher.state(uri).Lifecycle.ExitCode; got != 1 {
			t.Errorf("exit code %d, want 1", got)
		}
	})
}

func TestOwnerGoneEndsItsTerminal(t *testing.T) {
	for _, test := range []struct {
		name   string
		resume bool
		after  time.Duration
	}{
		{"at once without resume", false, 0},
		{"after the grace time with resume", true, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{})
				owner := connect(t, h, "laptop", viewOptions{resume: test.resume})
				watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
				owner.create(uri)
				must.Do(t, watcher.subscribe(uri))
				began := time.Now()
				owner.close()
				synctest.Wait()
				watcher.await("the exit", func() bool { return watcher.states[uri].Lifecycle.Exited() })
				watcher.await("the removal", func() bool { return len(watcher.root.Terminals) == 0 })
				if took := time.Since(began); took < test.after || took > test.after+100*time.Millisecond { // the catalogue may be told a little later
					t.Errorf("the terminal went after %v, want %v", took, test.after)
				}
				if got := *watcher.state(uri).Lifecycle.ExitCode; got != -1 {
					t.Errorf("exit code %d, want -1", got)
				}
				if got := code(watcher.subscribe(uri)); got != ahp.CodeNotFound {
					t.Errorf("subscribing to the removed terminal: code %d, want %d", got, ahp.CodeNotFound)
				}
			})
		})
	}
}

// Agents are told when a terminal was started and has ended by its owner's clock, unless
// that cannot be.
func TestTimesOfOwners(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	now := time.Now()
	for _, c := range []struct {
		name                       string
		created, exited            time.Time // as the owner says
		createdArrival, exitedHere bool      // the host believes its own clock
	}{
		{"yesterday", now.Add(-24 * time.Hour), now.Add(-time.Hour), false, false},
		{"said nothing", time.Time{}, time.Time{}, true, true},
		{"ahead", now.Add(time.Hour), now.Add(2 * time.Hour), true, true},
		{"before its beginning", now.Add(-time.Hour), now.Add(-2 * time.Hour), false, true},
		{"the last century", time.Unix(1, 0), now.Add(-time.Minute), true, true},
	} {
		p := clientTerminal("ahp-terminal:/times", "laptop")
		p.Meta = ahp.AddTime(nil, ahp.CreatedKey, c.created)
		must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
		laptop.dispatch(p.Channel, ahp.TerminalExited{ExitCode: new(int64(3)), Meta: ahp.AddTime(nil, ahp.ExitedKey, c.exited)})
		laptop.ping()
		var all []struct{ CreatedAt, ExitedAt int64 }
		use(t, agent, "list_terminals", nil, &all)
		if len(all) != 1 {
			t.Fatalf("%s: %d terminals", c.name, len(all))
		}
		check := func(what string, got int64, said time.Time, arrival bool) {
			at := time.UnixMilli(got)
			if arrival && (at.Before(now.Add(-time.Second)) || at.After(time.Now().Add(time.Second))) || !arrival && got != said.UnixMilli() {
				t.Errorf("%s: %s %s, the owner said %s", c.name, what, at, said)
			}
		}
		check("created", all[0].CreatedAt, c.created, c.createdArrival)
		check("exited", all[0].ExitedAt, c.exited, c.exitedHere)
		must.Do(t, laptop.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: p.Channel}, nil))
	}
}
