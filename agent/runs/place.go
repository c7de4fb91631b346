package runs

import (
	"sync"
	"time"

	"tether/internal/checkout"
	"tether/vocab"
)

// lookRate bounds what looking for changed files costs: an answer counts for 20 times as
// long as it took.
const lookRate = 20

// trees looks for changed files of work trees, of one at a time.
type trees struct {
	finder *checkout.Finder
	turn   sync.Mutex // held while files are looked at; guards known
	known  map[string]tree
}

type tree struct {
	changes vocab.Changes
	from    time.Time // when the answer was asked for
	until   time.Time // so long it counts
}

// maxTrees bounds the answers that are remembered.
const maxTrees = 64

// changes reports whether files of a work tree have changed at a time that has just
// passed. It takes some seconds at most.
func (t *trees) changes(dir string, at time.Time) vocab.Changes {
	t.turn.Lock()
	defer t.turn.Unlock()
	now := time.Now()
	if one, ok := t.known[dir]; ok && (one.from.After(at) || now.Before(one.until)) {
		return one.changes
	}
	if t.known == nil || len(t.known) >= maxTrees {
		t.known = map[string]tree{}
	}
	answer := t.finder.Changes(dir)
	t.known[dir] = tree{answer, now, time.Now().Add(lookRate * time.Since(now))}
	return answer
}

// checkoutOf finds the work tree that a directory showed at a time that has just passed,
// with whether files have changed, and calls tell from another goroutine. It does not
// call tell if there is none.
func (r *Runs) checkoutOf(dir string, at time.Time, tell func(vocab.Checkout)) {
	if f := r.opts.Checkouts; f != nil {
		f.AsOf(dir, at, func(c vocab.Checkout) {
			c.Changes = r.trees.changes(c.Worktree, at)
			tell(c)
		})
	}
}
