package uplink_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// labels are the checkouts that a host was told from a time on, in announcements and
// later.
func (c *capture) labels(since time.Time) (all []string) {
	for _, frame := range c.since(since) {
		if !strings.Contains(frame, `"createTerminal"`) && !strings.Contains(frame, `"`+ahp.MethodState+`"`) {
			continue
		}
		_, rest, _ := strings.Cut(frame, `"branch":"`)
		branch, _, _ := strings.Cut(rest, `"`)
		all = append(all, branch)
	}
	return slices.Compact(all)
}

// The host is told the checkout of a terminal's directory when it is announced and when
// it changes, masked, and of a masked directory none. An idle terminal sends nothing.
func TestCheckoutIsSent(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		token := "ghp_" + strings.Repeat("a1B2", 9)
		var mu sync.Mutex
		branches := map[string]string{"/app": "main", "/app/" + token: "secret"}
		set := func(dir, branch string) {
			mu.Lock()
			defer mu.Unlock()
			branches[dir] = branch
		}
		rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
		w := captured(t, c, term.Options{Outward: rules}, func(o *uplink.Options) {
			o.Checkout = func(dir string) vocab.Checkout {
				mu.Lock()
				defer mu.Unlock()
				if branches[dir] == "" {
					return vocab.Checkout{}
				}
				return vocab.Checkout{Repository: "/app", Worktree: dir, Branch: branches[dir]}
			}
		})
		w.online()
		began := time.Now()
		want := func(what string, labels ...string) {
			t.Helper()
			time.Sleep(4 * time.Second) // a look at the terminal is due after 2 and 5 s, and sends a state of its own
			if got := c.labels(began); !slices.Equal(got, labels) {
				t.Errorf("%s: %q, want %q", what, got, labels)
			}
			began = time.Now()
		}
		_, child := w.spawn(term.Spec{Cwd: "/app", Nonce: "n"})
		want("the announcement", "main")
		set("/app", "feat-"+token)
		child.Print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;git checkout;n\a\x1b]633;C;n\a\x1b]633;D;0;n\a")
		masked := rules.Redact("feat-" + token)
		want("after a command", masked)
		if masked == "feat-"+token {
			t.Error("the branch is not masked")
		}
		child.Print("\x1b]633;P;Cwd=/;n\a$ ")
		want("outside", "")
		child.Print("\x1b]633;P;Cwd=/app/" + token + ";n\a$ ")
		want("in a masked directory")
		child.Print("\x1b]633;P;Cwd=/app;n\a$ ")
		want("back", masked)
		set("/app", "other")
		time.Sleep(20 * time.Second)
		want("changed by another program", "other")
		time.Sleep(time.Hour)
		want("an hour later")
	})
}
