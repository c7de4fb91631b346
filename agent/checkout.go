package agent

import (
	"strings"
	"sync"
	"time"

	"tether/vocab"
)

const (
	verdictFor    = time.Minute          // how long a verdict holds
	verdictWithin = 2 * time.Millisecond // the longest that somebody waits for one
	maxVerdicts   = 256                  // verdicts that are kept
)

// directoryVerdicts remembers which directories must not be lent to hosts. The rules look
// at directories, which may be on a file system that does not answer.
type directoryVerdicts struct {
	mu    sync.Mutex
	known map[verdictKey]*verdict
}

type verdictKey struct{ host, dirs string }

type verdict struct {
	never  bool
	at     time.Time     // zero: there is none yet
	asking chan struct{} // closed when the rules have answered; nil if nobody asks them
}

// never reports whether a rule forbids lending to the host from one of the directories,
// with host "" whether one does for all hosts. While settled is not nil, the rules have
// not answered yet: it is closed when they have. It takes 2 ms at most.
func (a *Agent) never(host string, dirs ...string) (never bool, settled <-chan struct{}) {
	t, key := &a.directoryVerdicts, verdictKey{host, strings.Join(dirs, "\x00")}
	t.mu.Lock()
	one := t.known[key]
	if one == nil {
		if t.known == nil || len(t.known) >= maxVerdicts {
			t.known = map[verdictKey]*verdict{}
		}
		one = &verdict{}
		t.known[key] = one
	}
	if one.asking == nil && (one.at.IsZero() || time.Since(one.at) > verdictFor) {
		one.asking = make(chan struct{})
		go func() { // it ends when the file systems of the rules' directories have answered
			var names []string
			for _, dir := range dirs {
				names = append(names, pathsOf(dir)...)
			}
			never := a.settings.Lend.Never(host, names, home())
			t.mu.Lock()
			defer t.mu.Unlock()
			one.never, one.at = never, time.Now()
			close(one.asking)
			one.asking = nil
		}()
	}
	asking := one.asking
	t.mu.Unlock()
	if asking != nil {
		late := time.NewTimer(verdictWithin)
		defer late.Stop()
		select {
		case <-asking:
		case <-late.C:
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.at.IsZero() {
		return false, asking
	}
	return one.never, nil
}

// tellsCheckout reports whether a host may know that a terminal is in a checkout: not if
// a rule forbids lending terminals there. It takes 2 ms at most.
func (a *Agent) tellsCheckout(host string, c vocab.Checkout) bool {
	if !a.settings.Lend.Checkout || c.Worktree == "" {
		return false
	}
	never, settled := a.never(host, c.Worktree, c.Repository)
	return !never && settled == nil
}

// lentCheckout returns the checkout that a directory shows, if the host may know it. It
// takes some milliseconds at most.
func (a *Agent) lentCheckout(host, dir string) vocab.Checkout {
	if !a.settings.Lend.Checkout {
		return vocab.Checkout{}
	}
	c, ok := a.checkouts.Known(dir)[dir]
	if !ok || !a.tellsCheckout(host, c) {
		return vocab.Checkout{}
	}
	return c
}
