package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
)

const uri = "ahp-terminal:/t1"

func TestObserverSeesTheOwnersOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
		owner.create(uri)
		watcher.await("the terminal in the catalogue", func() bool { return len(watcher.root.Terminals) == 1 })
		if err := watcher.subscribe(uri); err != nil {
			t.Fatal(err)
		}
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
				if err := watcher.subscribe(uri); err != nil {
					t.Fatal(err)
				}
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
