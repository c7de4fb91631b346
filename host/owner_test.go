package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// A client that followed a terminal to its end can find it again where it was created
// anew.
func TestTheFormerTerminalIsNamed(t *testing.T) {
	for _, test := range []struct{ name, meta, want string }{
		{"a URI", `{"tether/formerTerminal":"ahp-terminal:/old"}`, "ahp-terminal:/old"},
		{"none", `{}`, ""},
		{"no URI", `{"tether/formerTerminal":"\u001b[2J"}`, ""},
		{"no string", `{"tether/formerTerminal":{"a":1}}`, ""},
		{"somebody else's key", `{"x":1}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := steadyHost(t, host.Options{})
			owner := connect(t, h, "laptop", viewOptions{resume: true})
			p := clientTerminal(uri, "laptop")
			must.Do(t, json.Unmarshal([]byte(test.meta), &p.Meta))
			must.Do(t, owner.call(ahp.MethodCreateTerminal, p, nil))
			owner.output(uri, "later", 100)
			owner.ping()
			watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI, uri}})
			got := watcher.state(uri).Meta
			if got.Screen == nil || !got.Screen.Truncated {
				t.Errorf("the screen behind missing output is %+v, want a truncated one", got.Screen)
			}
			got.Screen = nil
			if want := (ahp.TerminalMeta{Former: test.want, Missing: 100}); !cmp.Equal(got, want) {
				t.Errorf("the state says %+v, want %+v", got, want)
			}
			if got, want := watcher.catalogue().Terminals[0].Meta, (ahp.TerminalMeta{Former: test.want}); !cmp.Equal(got, want) {
				t.Errorf("the catalogue says %+v, want %+v", got, want)
			}
		})
	}
}

// A terminal may name as its former one only one of its own owner: followers of that
// would be led to a stranger's.
func TestTheFormerTerminalIsTheOwners(t *testing.T) {
	const next, other = "ahp-terminal:/next", "ahp-terminal:/other"
	h := steadyHost(t, host.Options{})
	laptop := connect(t, h, "laptop", viewOptions{resume: true})
	rival := connect(t, h, "rival", viewOptions{resume: true})
	watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
	announce := func(v *viewer, client, uri, former string) {
		t.Helper()
		p := clientTerminal(uri, client)
		if former != "" {
			p.Meta = ahp.NewTerminalMeta(former, false)
		}
		must.Do(t, v.call(ahp.MethodCreateTerminal, p, nil))
		v.ping()
	}
	says := func(uri, want string) {
		t.Helper()
		fresh := connect(t, h, "fresh", viewOptions{subs: []string{ahp.RootURI, uri}})
		if got := fresh.state(uri).Meta.Former; got != want {
			t.Errorf("the state of %s names %q, want %q", uri, got, want)
		}
		for _, i := range fresh.catalogue().Terminals {
			if i.Resource == uri && i.Meta.Former != want {
				t.Errorf("the catalogue names %q for %s, want %q", i.Meta.Former, uri, want)
			}
		}
	}
	dispose := func(v *viewer, uri string) {
		t.Helper()
		must.Do(t, v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
	}

	announce(laptop, "laptop", uri, "")
	announce(rival, "rival", other, uri) // that is there
	says(other, "")
	dispose(rival, other)
	dispose(laptop, uri)
	announce(rival, "rival", other, uri) // that is gone
	says(other, "")
	announce(laptop, "laptop", next, uri) // its owner may
	says(next, uri)
	dispose(rival, other)

	const unknown = "ahp-terminal:/unknown" // to a host that was started anew
	announce(rival, "rival", other, unknown)
	says(other, unknown)
	announce(laptop, "laptop", unknown, "")
	says(other, "")
	watcher.ping()
}

// An owner that does not learn of the disposal of an exited terminal would announce it
// again on its next connection.
func TestAnOwnerIsToldThatItsExitedTerminalIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		watcher := connect(t, h, "watcher", viewOptions{})
		code := int64(3)
		heard := func(v *viewer) (codes []int64) {
			v.mu.Lock()
			defer v.mu.Unlock()
			for _, e := range v.envelopes {
				a, err := ahp.DecodeAction(e.Action)
				if x, ok := a.(ahp.TerminalExited); ok && err == nil && e.Origin == nil {
					codes = append(codes, *x.ExitCode)
				}
			}
			return codes
		}
		for i, by := range []*viewer{watcher, owner} {
			owner.create(uri)
			for _, v := range []*viewer{owner, watcher} {
				must.Do(t, v.subscribe(uri))
			}
			owner.dispatch(uri, ahp.TerminalExited{ExitCode: &code})
			owner.ping()
			must.Do(t, by.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
			synctest.Wait()
			if got := heard(owner); len(got) != 1 || got[0] != 3 {
				t.Errorf("disposal %d: the owner heard of exits %v, want that of the one disposed of by somebody else", i, got)
			}
			if got := heard(watcher); len(got) != 0 {
				t.Errorf("disposal %d: an observer heard of the exit again: %v", i, got)
			}
		}
	})
}

// A gap is a line for people and a field for programs.
func TestGapsAreFieldsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 4000})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
		slow, g := slowViewer(t, h, "slow", uri)
		owner.output(uri, "before", 0)
		owner.output(uri, "after\r\n", 106)
		watcher.awaitText(uri, "after\r\n")
		for i := range 1000 {
			owner.output(uri, fmt.Sprintf("line %d\r\n", i), -1)
		}
		owner.ping()
		g.openUp()
		slow.awaitText(uri, "line 999\r\n")
		find := func(v *viewer, key string) (said int64, line string) {
			v.mu.Lock()
			defer v.mu.Unlock()
			for _, e := range v.envelopes {
				var a struct {
					Type, Data string
					Meta       ahp.Meta `json:"_meta"`
				}
				if err := json.Unmarshal(e.Action, &a); err == nil && a.Type == ahp.ActionTerminalData && json.Unmarshal(a.Meta[key], &said) == nil {
					return said, a.Data
				}
			}
			return 0, ""
		}
		if n, line := find(watcher, "tether/missingBytes"); n != 100 || line != "\r\n[tether: 100 bytes of output are missing here]\r\n" {
			t.Errorf("a gap of 100 bytes is shown as %q with the field %d", line, n)
		}
		if n, line := find(slow, "tether/skippedBytes"); n == 0 || !strings.HasPrefix(line, fmt.Sprintf("[tether-host: %d bytes skipped", n)) {
			t.Errorf("what a slow viewer missed is shown as %q with the field %d", line, n)
		}
	})
}

// An owner that resumes knows its own output. If it were sent all of that on each
// connection, it could not continue over links that break often: one snapshot is more
// than they carry.
func TestAnOwnerIsNotSentItsOwnHistory(t *testing.T) {
	for _, resume := range []bool{true, false} {
		t.Run(fmt.Sprintf("resume=%v", resume), func(t *testing.T) {
			h := steadyHost(t, host.Options{})
			owner := connect(t, h, "laptop", viewOptions{resume: resume})
			owner.create(uri)
			owner.dispatch(uri, commandExecuted(1))
			for i := range 20 {
				owner.output(uri, strings.Repeat("0123456789abcde\n", 1000), int64(i*16000))
			}
			owner.dispatch(uri, commandFinished(1))
			owner.dispatch(uri, commandExecuted(2))
			owner.ping()
			watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
			must.Do(t, owner.subscribe(uri))
			if n := len(watcher.textOf(uri)); n != 320000 {
				t.Errorf("an observer is sent %d bytes, want all", n)
			}
			if n := len(owner.textOf(uri)); resume != (n > 0 && n <= 32<<10) || !resume && n != 320000 {
				t.Errorf("the owner is sent %d bytes of its own", n)
			}
			parts := owner.state(uri).Content
			if n := len(parts); n != 2 || parts[0].CommandID != "1" || !parts[0].IsComplete || parts[1].CommandID != "2" || parts[1].IsComplete {
				t.Errorf("the owner is told of commands %+v, want the finished and the open one", parts)
			}
		})
	}
}

// The official client library opens a second connection under its clientId before it
// closes the first one. Its terminals then continue, on the newer connection.
func TestTerminalsMoveToTheNewerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		older := connect(t, h, "laptop", viewOptions{})
		older.create(uri)
		older.output(uri, "before ", -1)
		older.ping()
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI, uri}})

		newer := connect(t, h, "laptop", viewOptions{})
		synctest.Wait() // the older connection is gone
		newer.output(uri, "after", -1)
		watcher.awaitText(uri, "before after")
		if s := watcher.state(uri); s.Lifecycle.Exited() || len(watcher.catalogue().Terminals) != 1 {
			t.Errorf("the terminal is shown as %+v, with %d in the catalogue", s.Lifecycle, len(watcher.catalogue().Terminals))
		}

		newer.close() // without the marker, the terminal ends with the connection that serves it
		synctest.Wait()
		if !watcher.state(uri).Lifecycle.Exited() {
			t.Error("the terminal goes on without a connection")
		}
	})
}
