package runs

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"tether/agent/history"
	"tether/agent/verdict"
	"tether/agenttools"
)

const (
	maxChanges = 256     // changes of verdicts that are remembered
	maxSeries  = 50_000  // series whose verdicts are remembered; those of others do not change
	lookedBack = 100_000 // runs in which verdicts are looked for when the first run ends
)

// verdictChange is a run that has changed the verdict of its series.
type verdictChange struct {
	run  history.Run // its checkout is that of the round, if a watcher's round did it
	good bool        // now
}

// verdicts notices changes of verdicts. It is safe for concurrent use.
type verdicts struct {
	mu    sync.Mutex
	seed  maphash.Seed
	good  map[uint64]bool // by series; nil until the first run ends
	list  []verdictChange // newest last
	count int64           // changes so far
}

// add takes the outcome of a run, or of a round, and notes whether it is another than
// that of the run before in the series. It reports whether it is.
func (v *verdicts) add(h *history.History, run history.Run, outcome verdict.Outcome) bool {
	if outcome != verdict.Good && outcome != verdict.Failing {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learnLocked(h, run.ID)
	key := maphash.String(v.seed, run.Series())
	was, known := v.good[key]
	good := outcome == verdict.Good
	if known || len(v.good) < maxSeries {
		v.good[key] = good
	}
	if !known || was == good {
		return false
	}
	if v.count++; len(v.list) == maxChanges {
		v.list = v.list[1:]
	}
	v.list = append(v.list, verdictChange{run, good})
	return true
}

// learnLocked reads the verdicts of all series, but for a run that is just being judged.
func (v *verdicts) learnLocked(h *history.History, but string) {
	if v.good != nil {
		return
	}
	v.good, v.seed = map[uint64]bool{}, maphash.MakeSeed()
	n := 0
	for r := range h.List(history.Query{}) {
		if n++; n > lookedBack || len(v.good) == maxSeries {
			return
		}
		key := maphash.String(v.seed, r.Series())
		if _, known := v.good[key]; known || r.ID == but || r.Running() {
			continue
		}
		is := judged(r)
		if outcome, _ := is.Outcome(); outcome == verdict.Good || outcome == verdict.Failing {
			v.good[key] = outcome == verdict.Good
		}
	}
}

// since returns the changes after the first n, and how many there were ever.
func (v *verdicts) since(n int64) ([]verdictChange, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fresh := min(max(v.count-n, 0), int64(len(v.list)))
	return slices.Clone(v.list[len(v.list)-int(fresh):]), v.count
}

// VerdictChanges waits until verdicts of runs that the asker may see have changed after
// the first n changes that there were ever, and returns those, and how many there were
// ever. Only the newest 256 are remembered, and none of an earlier daemon. A negative n
// waits for nothing and returns the number alone. The error is that of ctx.
func (v View) VerdictChanges(ctx context.Context, n int64) ([]agenttools.VerdictChange, int64, error) {
	if n < 0 {
		_, n = v.runs.verdicts.since(0)
		return nil, n, nil
	}
	for version := uint64(0); ; {
		now, err := v.Changed(ctx, version)
		if err != nil {
			return nil, n, err
		}
		version = now
		all, count := v.runs.verdicts.since(n)
		n = count
		var shown []agenttools.VerdictChange
		look := v.look()
		for _, c := range all {
			if run, _, ok := look.sees(c.run); ok {
				shown = append(shown, c.told(run))
			}
		}
		if len(shown) > 0 {
			return shown, n, nil
		}
	}
}

// told is the change as agents are told of it, with what the asker may know of the run.
func (c *verdictChange) told(r history.Run) agenttools.VerdictChange {
	t := agenttools.VerdictChange{
		Terminal: r.Terminal, Run: r.ID, Command: r.Line, From: string(verdict.StateGood), To: string(verdict.StateFailing),
		Errors: r.Problems.Errors, Warnings: r.Problems.Warnings,
	}
	if c.good {
		t.From, t.To = t.To, t.From
	}
	if r.Checkout != nil {
		t.Commit = verdict.Commit(r.Checkout)
	}
	t.First = verdict.ProblemTexts(r.Problems.First)
	return t
}
