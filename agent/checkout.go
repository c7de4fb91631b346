package agent

import (
	"sync"
	"time"

	"tether/vocab"
)

const (
	verdictFor    = time.Minute          // how long a verdict holds
	verdictWithin = 2 * time.Millisecond // the longest that somebody waits for one
	maxVerdicts   = 256                  // verdicts that are kept
)

// checkoutVerdicts remembers which checkouts hosts may know. The rules look at
// directories, which may be on a file system that does not answer: until it does, nothing
// is told.
type checkoutVerdicts struct {
	mu    sync.Mutex
	known map[verdictKey]*verdict
}

type verdictKey struct{ host, repository, worktree string }

type verdict struct {
	yes    bool
	at     time.Time     // zero: there is none yet
	asking chan struct{} // closed when the rules have answered; nil if nobody asks them
}

// tellsCheckout reports whether a host may know that a terminal is in a checkout: not if
// a rule forbids lending terminals there. It takes 2 ms at most.
func (a *Agent) tellsCheckout(host string, c vocab.Checkout) bool {
	lend := a.settings.Lend
	if !lend.Checkout || c.Worktree == "" {
		return false
	}
	t, key := &a.checkoutVerdicts, verdictKey{host, c.Repository, c.Worktree}
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
			yes := !lend.Never(host, []string{c.Worktree, c.Repository}, home())
			t.mu.Lock()
			defer t.mu.Unlock()
			one.yes, one.at = yes, time.Now()
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
	return one.yes
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
