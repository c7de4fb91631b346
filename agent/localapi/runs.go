package localapi

import (
	"time"

	"tether/agent/verdict"
	"tether/vocab"
)

// Run is one terminal from its start to its exit, or one command of a shell, as the
// history keeps it.
type Run struct {
	ID       string          `json:"id"` // of the terminal, or TERMINAL.N for its command N
	Name     string          `json:"name,omitempty"`
	Line     string          `json:"line,omitempty"`
	Cwd      string          `json:"cwd,omitempty"`
	Owner    string          `json:"owner,omitempty"`
	Checkout *vocab.Checkout `json:"checkout,omitempty"`
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended,omitzero"`
	Outcome  string          `json:"outcome"` // good, failing, running or uncounted
	Why      string          `json:"why,omitempty"`
	Exit     *vocab.Exit     `json:"exit,omitempty"`
	Ready    bool            `json:"ready"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	First    []string        `json:"first,omitempty"`         // its first problems, a line each
	Bytes    int64           `json:"bytes"`                   // of its text; 0 while it runs
	Dropped  int64           `json:"dropped_bytes,omitempty"` // not kept, in the middle
}

// RunList is the kept runs that fit a question, the one that began last first.
type RunList struct {
	SchemaVersion int   `json:"schema_version"`
	Runs          []Run `json:"runs"`
	More          bool  `json:"more"`
}

// RunLine is one line of the answer to a list of runs. Run is absent in the last line.
type RunLine struct {
	Run  *Run `json:"run,omitempty"`
	More bool `json:"more,omitempty"`
}

// FoundLine is one line of the answer to a search. Hit is absent in the last line.
type FoundLine struct {
	Hit *Hit `json:"hit,omitempty"`
	// Hits is the number of hits in all, Back the time since when all text was searched,
	// absent if all that is kept was; More says that it ended with the requested number.
	Hits int       `json:"hits,omitempty"`
	Back time.Time `json:"searched_back_to,omitzero"`
	More bool      `json:"more,omitempty"`
}

// Hit is a line that matches, and the run that printed it.
type Hit struct {
	Run     string    `json:"run"`
	Name    string    `json:"name,omitempty"`     // of the terminal
	RunLine string    `json:"run_line,omitempty"` // the run's command line
	Cwd     string    `json:"cwd,omitempty"`
	Time    time.Time `json:"time"`   // it was printed by then
	Offset  int64     `json:"offset"` // in the run's text
	Before  []string  `json:"before,omitempty"`
	Line    string    `json:"line"`  // a part of a long one
	Match   [2]int    `json:"match"` // where the first match is in it, in bytes
	After   []string  `json:"after,omitempty"`
}

// ForgetRequest removes runs from the history: those that Runs names, those that ended
// before Before, or all. Exactly one is set.
type ForgetRequest struct {
	Runs   []string  `json:"runs,omitempty"` // ids or names of runs or terminals
	Before time.Time `json:"before,omitzero"`
	All    bool      `json:"all,omitempty"`
}

// Forgotten says what was removed.
type Forgotten struct {
	SchemaVersion int   `json:"schema_version"`
	Runs          int   `json:"runs"`      // from the history
	Bytes         int64 `json:"bytes"`     // on disk
	Terminals     int   `json:"terminals"` // number of exited terminals that were removed from memory
	Pasts         int   `json:"pasts"`     // number of terminals that run on without their earlier output
	InHolders     int   `json:"held"`      // of these, those whose holder still has it: a daemon that starts later reads it again
}

// VerdictList is the verdicts of series of runs, those that fail first.
type VerdictList struct {
	SchemaVersion int       `json:"schema_version"`
	Verdicts      []Verdict `json:"verdicts"`
}

// Verdict is a verdict with problems as this interface has them.
type Verdict struct {
	verdict.Verdict
	// New are the problems that the last good run did not have; absent if Newest is good.
	New *News `json:"new,omitempty"`
}

// News are problems that an earlier run did not have.
type News struct {
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	First    []Problem `json:"first"` // at most three
}

// VerdictOf returns a verdict as this interface has it.
func VerdictOf(v verdict.Verdict) Verdict {
	out := Verdict{Verdict: v}
	if v.New != nil {
		out.New = &News{Errors: v.New.Errors, Warnings: v.New.Warnings, First: ProblemsOf(v.New.First)}
	}
	return out
}

// Text is [verdict.Verdict.Text].
func (v Verdict) Text(now time.Time) string {
	if v.New != nil {
		v.Verdict.New = &verdict.News{Errors: v.New.Errors, Warnings: v.New.Warnings}
		for _, p := range v.New.First {
			v.Verdict.New.First = append(v.Verdict.New.First, p.problem())
		}
	}
	return v.Verdict.Text(now)
}

// Comparison says what a run printed that an earlier one did not.
type Comparison struct {
	SchemaVersion int           `json:"schema_version"`
	Run           verdict.Point `json:"run"`
	With          verdict.Point `json:"with"`
	verdict.Comparison
	New  []Problem `json:"new"`
	Gone []Problem `json:"gone"`
}
