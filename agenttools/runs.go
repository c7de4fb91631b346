package agenttools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tether/agent/verdict"
	"tether/vocab"
)

// A run is one terminal from its start to its exit, or one command of a shell.

// Bounds of the calls about runs.
const (
	defaultRuns  = 20
	maxRuns      = 200
	defaultFound = 20
	maxFound     = 200
	maxAround    = 10
	defaultLines = 2                // around a match
	maxNames     = 20               // of series, in a call of verdict
	maxRunName   = 1000             // bytes of a name, directory or id
	searchTime   = 5 * time.Second  // after which a search returns what it has found
	compareTime  = 10 * time.Second // bounds the other calls
	maxBack      = 10 * 365 * 24 * time.Hour
)

// Keeper is a Terminals that keeps what terminals have printed.
type Keeper interface {
	Terminals
	// Runs returns the runs that the principal may see, nil if none are kept.
	Runs() Runs
}

// Runs are the kept runs that one principal may see. A name of a run that the principal
// may not see is ErrNotFound. The text of other errors is for the model.
type Runs interface {
	// List returns the runs that fit the query, newest first.
	List(context.Context, RunQuery) (RunsAnswer, error)
	// Open returns the run with exactly this id, or ErrNotFound.
	Open(id string) (Terminal, error)
	// Search finds lines, those of the newest runs first. At ctx's deadline it returns
	// what it has found.
	Search(context.Context, RunSearch) (FoundAnswer, error)
	// Compare compares a run with an earlier one of its series, or with the one that the
	// call names.
	Compare(context.Context, RunPair) (CompareAnswer, error)
	// Verdict judges the series with these names, or the newest ones.
	Verdict(ctx context.Context, names []string) (VerdictAnswer, error)
}

// UnknownRunError is the ErrNotFound of one of several names in a call.
type UnknownRunError struct{ Name string }

func (e *UnknownRunError) Error() string { return fmt.Sprintf("no such run: %.80q", e.Name) }

// Is makes errors.Is find ErrNotFound.
func (e *UnknownRunError) Is(err error) bool { return err == ErrNotFound }

// FarKeeper is a Terminals of machines that keep their runs themselves and answer calls
// about them.
type FarKeeper interface {
	Terminals
	// CallRuns has a call carried out: of a tool of runs, or of one that reads a terminal
	// if it has the argument run. The answer has at most about shows bytes.
	CallRuns(ctx context.Context, tool string, args json.RawMessage, shows int) (any, error)
}

// Judges is a Runs that tells when verdicts change.
type Judges interface {
	Runs
	// VerdictChanges waits until the verdicts of series that the principal may see have
	// changed after the first n changes that there were ever, and returns those, and how
	// many there were ever. A negative n waits for nothing and returns the number alone.
	// Its error is that of ctx.
	VerdictChanges(ctx context.Context, n int64) ([]VerdictChange, int64, error)
}

// VerdictChange is a run that has made a good series fail, or a failing one good.
type VerdictChange struct {
	Terminal string // id
	Run      string // id
	Command  string // its command line
	From, To string // good or failing
	Commit   string // of its checkout: COMMIT, or COMMIT+changes; "" if it is in none
	Errors   int
	Warnings int
	First    []string // its first problems, each in a line
}

// RunQuery chooses runs.
type RunQuery struct {
	Name  string    // of the series, or the id of a run or a terminal; "" for all
	Dir   string    // directory in which, or below which, they started; "" for all
	Since time.Time // only runs that ran after it; zero for all
	Max   int       // at most this many
}

// RunSearch is a search in the text of runs.
type RunSearch struct {
	RunQuery
	Pattern string // RE2
	Around  int    // number of lines before and after each match
}

// RunPair names the runs to compare.
type RunPair struct {
	Name string // of a series, whose newest run is compared; or the id of a run
	With string // id of the other run; "" for the last good one before
}

// Run describes a run.
type Run struct {
	ID       string          `json:"id"`
	Name     string          `json:"name,omitempty"`
	Command  string          `json:"command,omitempty"`
	Cwd      string          `json:"cwd,omitempty"`
	Checkout *vocab.Checkout `json:"checkout,omitempty"` // at its start
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended,omitzero"`
	Outcome  verdict.Outcome `json:"outcome"`
	Why      string          `json:"why,omitempty"` // of Outcome, in a few words
	ExitCode *int            `json:"exitCode,omitempty"`
	Signal   string          `json:"signal,omitempty"`
	Ready    bool            `json:"ready,omitempty"` // it became ready
	Errors   int             `json:"errors,omitempty"`
	Warnings int             `json:"warnings,omitempty"`
	First    []string        `json:"first,omitempty"` // its first problems, each in a line
	Bytes    int64           `json:"bytes"`           // of its text
	Dropped  int64           `json:"droppedBytes,omitempty"`
}

// RunsAnswer is the answer of list_runs.
type RunsAnswer struct {
	Runs []Run `json:"runs"`
	More bool  `json:"more,omitempty"` // there are more than max
	Missing
	Unseen *Unseen `json:"unseen,omitempty"` // if there are no runs: perhaps it was started elsewhere
}

// Missing are the machines whose runs an answer at a host does not have.
type Missing struct {
	Away   []string `json:"away,omitempty"`   // that are not reached now
	Failed []string `json:"failed,omitempty"` // that gave no answer, each with the reason
}

// FoundAnswer is the answer of search_runs.
type FoundAnswer struct {
	Matches []Match `json:"matches"`
	More    bool    `json:"more,omitempty"` // there are more than max
	// Back is until when runs were searched if the time was up.
	Back time.Time `json:"searchedBackTo,omitzero"`
	Missing
	Unseen *Unseen `json:"unseen,omitempty"` // as in RunsAnswer
}

// Match is a line of a run.
type Match struct {
	Run     string    `json:"run"`
	Name    string    `json:"name,omitempty"`
	Command string    `json:"command,omitempty"`
	At      time.Time `json:"at"`     // it was printed by then
	Offset  int64     `json:"offset"` // for since of read_terminal with run
	Before  []string  `json:"before,omitempty"`
	Line    string    `json:"line"`
	After   []string  `json:"after,omitempty"`
}

// CompareAnswer is the answer of compare_runs.
type CompareAnswer struct {
	Run  verdict.Point `json:"run"`
	With verdict.Point `json:"with"`
	*verdict.Comparison
	More bool `json:"more,omitempty"` // the lists have less than the counts say
}

// VerdictAnswer is the answer of verdict.
type VerdictAnswer struct {
	Series []verdict.Verdict `json:"series"`
	More   bool              `json:"more,omitempty"` // there are further series
	Missing
}
