package verdict

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"tether/problems"
	"tether/vocab"
)

// State is the verdict of a series.
type State string

// The states. Unknown: no run of the series counts.
const (
	StateGood    State = "good"
	StateFailing State = "failing"
	StateUnknown State = "unknown"
)

// maxTrials bounds the runs and rounds that a verdict looks back on.
const maxTrials = 500

// Point is a run, or a round of a watcher, on which a verdict rests.
type Point struct {
	Run     string    `json:"run"`
	At      time.Time `json:"at"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Why     string    `json:"why,omitempty"`    // such as "exit status 2"
	Commit  string    `json:"commit,omitempty"` // of the checkout; COMMIT+changes if files differed from it
	Branch  string    `json:"branch,omitempty"`
	// Errors and Warnings are how many were recognised, also beside exit status 0.
	Errors   int `json:"errors,omitempty"`
	Warnings int `json:"warnings,omitempty"`
}

// Verdict says whether a series is good, and what that rests on.
type Verdict struct {
	Name  string `json:"name,omitempty"`    // of the series, if it has one
	Line  string `json:"command,omitempty"` // the command line otherwise
	Dir   string `json:"cwd,omitempty"`
	State State  `json:"verdict"`
	// Since is when the first run began that had this verdict as all after it.
	Since time.Time `json:"since,omitzero"`
	// Newest is the newest run that counts.
	Newest *Point `json:"newest,omitempty"`
	// Good and Failing, the last good and the first failing run, are the interval in
	// which it broke. A good series has Failing only of a newer commit.
	Good    *Point `json:"good,omitempty"`
	Failing *Point `json:"failing,omitempty"`
	// Untried is how many commits between the two were not run; nil: it is not known.
	Untried *int `json:"untried,omitempty"`
	// New are the problems of the newest run that the last good one did not have; absent
	// if the series is good.
	New *News `json:"new,omitempty"`
	// Running is the newest run that goes on, with its present outcome.
	Running *Point `json:"running,omitempty"`
	// Uncounted is how many newer runs than Newest do not count.
	Uncounted int `json:"uncounted,omitempty"`
	// Notes are about what limits the verdict, such as a commit that was good and
	// failing.
	Notes []string `json:"notes,omitempty"`
}

// News are problems that an earlier run did not have.
type News struct {
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
	First    []problems.Problem `json:"first"` // at most three
}

// Judge judges a series of runs, which come newest first. graph may be nil.
func Judge(runs iter.Seq[Run], graph Graph) Verdict {
	v := Verdict{State: StateUnknown}
	var all []trial // newest first
	why := ""
	for r := range runs {
		if r.Runs && v.Running == nil {
			outcome, why := r.Outcome()
			p := r.trial(r.Started, r.Checkout, r.Found, outcome, why).Point
			v.Running = &p
		}
		found := r.trials()
		if len(found) == 0 && len(all) == 0 && !r.Runs {
			v.Uncounted++
			if _, reason := r.Outcome(); why == "" {
				why = reason
			}
		}
		if all = append(all, found...); len(all) >= maxTrials {
			all = all[:maxTrials]
			break
		}
	}
	switch {
	case len(all) > 0:
		v.judge(all, graph)
	case v.Uncounted > 0:
		v.note("no run counts; the newest was %s", why)
	case v.Running != nil:
		v.note("no run has ended yet")
	default:
		v.note("there is no run")
	}
	return v
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// judge finds the interval in time, and then in the order of commits.
func (v *Verdict) judge(all []trial, graph Graph) {
	newest := &all[0]
	v.Newest, v.State = &newest.Point, StateGood
	if newest.Outcome == Failing {
		v.State = StateFailing
	}
	streak := 1 // trials since the outcome changed
	for streak < len(all) && all[streak].Outcome == newest.Outcome {
		streak++
	}
	first := &all[streak-1]
	v.Since = first.At
	var before *trial
	if streak < len(all) {
		before = &all[streak]
	}
	good, failing := newest, before
	if v.State == StateFailing {
		good, failing = before, first
	}
	commits := known(all)
	switch {
	case v.State == StateFailing:
		good, failing = refine(graph, commits, newest, good, failing)
		v.interval(graph, commits, good, failing)
		if good == nil {
			v.note("it was never good in the runs that are kept")
		}
	case failing != nil && isAncestor(graph, newest.clean(), failing.clean()):
		good, failing = refine(graph, commits, failing, good, failing)
		v.interval(graph, commits, good, failing)
		v.note("it is good at an older commit than the one that fails")
	default:
		v.Good = &newest.Point
	}
	v.flaky(all)
}

// interval sets in which commits it broke.
func (v *Verdict) interval(graph Graph, commits map[string]*trial, good, failing *trial) {
	v.Failing = &failing.Point
	if good == nil {
		return
	}
	v.Good = &good.Point
	a, b := good.commit(), failing.commit()
	switch {
	case a == "" || b == "":
		return
	case a == b:
		v.Untried = new(int)
		return
	case graph == nil:
		return
	}
	list, ok := between(graph, a, b)
	if !ok {
		if isAncestor(graph, b, a) {
			v.note("the last good commit is newer than the one that fails")
		} else {
			v.note("the last good commit is no known ancestor of the one that fails: the branch was changed or rebased")
		}
		return
	}
	n := 0
	for _, id := range list {
		if commits[id] == nil {
			n++
		}
	}
	v.Untried = &n
}

// known returns the newest trial of each commit without changes.
func known(all []trial) map[string]*trial {
	commits := map[string]*trial{}
	for i := range all {
		if id := all[i].clean(); id != "" && commits[id] == nil {
			commits[id] = &all[i]
		}
	}
	return commits
}

// refine narrows the interval where commits were not run in their order: from a failing
// trial's commit back, the failing ones up to the first good one count. Where time and
// order agree, what time says stays, since it knows trees with changes, too.
func refine(graph Graph, commits map[string]*trial, head, good, failing *trial) (*trial, *trial) {
	if graph == nil || head.commit() == "" {
		return good, failing
	}
	wanted := map[string]bool{head.commit(): true}
	for id := range commits {
		wanted[id] = true
	}
	places := order(graph, head.commit(), wanted)
	if agrees(commits, places, good, failing) {
		return good, failing
	}
	line := make([]*trial, 0, len(places))
	for id := range places {
		if commits[id] != nil {
			line = append(line, commits[id])
		}
	}
	slices.SortFunc(line, func(s, t *trial) int { return places[s.clean()] - places[t.clean()] })
	broke := head
	for _, t := range line {
		if t.Outcome == Good {
			if t == head {
				continue
			}
			return t, broke
		}
		broke = t
	}
	return good, failing
}

// agrees reports whether no commit between the two was run, and the good one is older.
func agrees(commits map[string]*trial, places map[string]int, good, failing *trial) bool {
	if good == nil || failing == nil {
		return good == nil
	}
	a, okA := places[good.commit()]
	b, okB := places[failing.commit()]
	if !okA || !okB || b > a {
		return false
	}
	for id, t := range commits {
		if at, ok := places[id]; ok && t != good && t != failing && at > b && at < a {
			return false
		}
	}
	return true
}

func isAncestor(graph Graph, a, b string) bool {
	if graph == nil || a == "" || b == "" || a == b {
		return false
	}
	_, ok := between(graph, a, b)
	return ok
}

// flaky tells of the newest commit that was good and failing with the same files.
func (v *Verdict) flaky(all []trial) {
	type counts struct{ good, failing int }
	seen := map[string]*counts{}
	for i := range all {
		id := all[i].clean()
		if id == "" || all[i].at.Changes != vocab.ChangesNo {
			continue
		}
		if seen[id] == nil {
			seen[id] = &counts{}
		}
		if all[i].Outcome == Good {
			seen[id].good++
		} else {
			seen[id].failing++
		}
	}
	for i := range all {
		if c := seen[all[i].clean()]; c != nil && c.good > 0 && c.failing > 0 {
			v.note("flaky, or not decided by the commit alone: %s was good %s and failing %s", all[i].Commit, times(c.good), times(c.failing))
			return
		}
	}
}

// times is how often something happened, as people write it.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
