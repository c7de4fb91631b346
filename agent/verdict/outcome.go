package verdict

import (
	"fmt"
	"slices"
	"time"

	"tether/vocab"
)

// Outcome says how one run, or one round of a watcher, ended.
type Outcome string

// The outcomes. Running is that of a run whose rounds say nothing yet.
const (
	Good       Outcome = "good"
	Failing    Outcome = "failing"
	Running    Outcome = "running"
	NotCounted Outcome = "uncounted" // ended by a signal, ^C or kill, or with the machine
)

// Run is what a verdict needs to know of a run.
type Run struct {
	ID       string
	Started  time.Time
	Ended    time.Time        // zero while it runs, or if its end is not known
	Exit     *vocab.Exit      // nil while it runs, or if its status is not known
	Runs     bool             // it runs now
	Stopped  bool             // somebody typed ^C shortly before the end
	Ready    vocab.ReadyState // "" for a run without a condition
	Checkout *vocab.Checkout  // at its start; nil if it is not known
	Found
	Rounds []Round // of a watcher, oldest first
}

// Round is one round of a tool that watches files, once it has settled.
type Round struct {
	At       time.Time
	Checkout *vocab.Checkout
	Found
}

// Found counts the problems that were recognised.
type Found struct {
	Errors, Warnings int
}

// Outcome returns how the run ended, and in a few words why.
func (r *Run) Outcome() (Outcome, string) {
	if r.Runs {
		return r.current()
	}
	if r.Exit == nil {
		return NotCounted, "its exit status is not known"
	}
	switch reason, name := r.Exit.Reason, endedBy(r.Exit); {
	case reason == vocab.ExitLost:
		return NotCounted, "its end is not known"
	case reason == vocab.ExitKilled:
		return NotCounted, "killed"
	case reason == vocab.ExitIdle:
		return NotCounted, "ended by its time limit"
	case r.Stopped:
		return NotCounted, "ended by ^C"
	case name != "" && !slices.Contains(crashes, name):
		return NotCounted, "ended by " + name
	case name != "":
		return Failing, "crashed with " + name
	case r.Exit.Code != 0:
		return Failing, fmt.Sprintf("exit status %d", r.Exit.Code)
	}
	return Good, "exit status 0"
}

// current judges a run that goes on: it must be ready, if it has a condition for that,
// and must have printed no error since its last round began.
func (r *Run) current() (Outcome, string) {
	last, rounds := r.Found, len(r.Rounds) > 0
	if rounds {
		last = r.Rounds[len(r.Rounds)-1].Found
	}
	switch {
	case r.Ready == vocab.ReadyFailed:
		return Failing, "not ready"
	case r.Ready == vocab.ReadyStarting, r.Ready == "" && !rounds:
		return Running, "running"
	case last.Errors > 0:
		return Failing, count(last.Errors, "error") + " printed"
	}
	return Good, "no error printed"
}

// crashes are the signals by which a program ends itself through its own fault. Others
// come from somebody who ends it.
var crashes = []string{"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP", "SIGXCPU", "SIGXFSZ"}

// shellSignals are the signals that shells report as 128 and the number, where the number
// is the same on Linux and macOS. Programs that are no crash and are not here, such as
// those that end by SIGPIPE, count by their status.
var shellSignals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM",
}

// controlC is STATUS_CONTROL_C_EXIT, with which ^C ends a program on Windows.
const controlC = 0xC000013A

// endedBy returns the signal that ended a run, "" if none did.
func endedBy(e *vocab.Exit) string {
	switch {
	case e.Signal != "":
		return e.Signal
	case uint32(e.Code) == controlC:
		return "^C"
	case e.Code > 128:
		return shellSignals[e.Code-128]
	}
	return ""
}

// trial is one answer to whether it works: a run that has ended, or a round.
type trial struct {
	Point
	at *vocab.Checkout
}

// trials returns the answers that a run gives, newest first. A run with at most one round
// is judged as a whole: tools that also watch announce their only round.
func (r *Run) trials() []trial {
	outcome, why := r.Outcome()
	whole := r.trial(r.Started, r.Checkout, r.Found, outcome, why)
	if len(r.Rounds) == 0 || len(r.Rounds) == 1 && !r.Runs && outcome != NotCounted {
		if outcome == Good || outcome == Failing {
			return []trial{whole}
		}
		return nil
	}
	var all []trial
	if outcome == Failing && (!r.Runs || r.Ready == vocab.ReadyFailed) { // the end of a watcher that failed by itself
		last := r.Rounds[len(r.Rounds)-1]
		at := last.At
		if !r.Ended.IsZero() {
			at = r.Ended
		}
		all = append(all, r.trial(at, last.Checkout, last.Found, outcome, why))
	}
	if r.Ready == vocab.ReadyStarting {
		return all
	}
	for _, round := range slices.Backward(r.Rounds) {
		outcome, why := Good, "no error printed"
		if round.Errors > 0 {
			outcome, why = Failing, count(round.Errors, "error")+" printed"
		}
		all = append(all, r.trial(round.At, round.Checkout, round.Found, outcome, why))
	}
	return all
}

// Points returns the rounds of the run, newest first, or the run itself, also if it does
// not count.
func (r *Run) Points() []Point {
	var all []Point
	for _, t := range r.trials() {
		all = append(all, t.Point)
	}
	if len(all) == 0 {
		outcome, why := r.Outcome()
		all = append(all, r.trial(r.Started, r.Checkout, r.Found, outcome, why).Point)
	}
	return all
}

func (r *Run) trial(at time.Time, where *vocab.Checkout, found Found, outcome Outcome, why string) trial {
	t := trial{Point: Point{Run: r.ID, At: at, Outcome: outcome, Why: why, Errors: found.Errors, Warnings: found.Warnings}, at: where}
	if where != nil {
		t.Branch, t.Commit = where.Branch, Commit(where)
	}
	return t
}

// Digits of a commit that people see, and the mark of a tree that differs from it.
const (
	commitDigits = 12
	changesMark  = "+changes"
)

// Commit names the state of a work tree: COMMIT with 12 digits, or COMMIT+changes; "" if
// it is not known.
func Commit(c *vocab.Checkout) string {
	if c.Commit == "" {
		return ""
	}
	commit := c.Commit[:min(len(c.Commit), commitDigits)]
	if c.Changes == vocab.ChangesYes {
		commit += changesMark
	}
	return commit
}

// clean returns the whole commit that the trial was of, "" if the tree had changes.
func (t *trial) clean() string {
	if t.at == nil || t.at.Changes == vocab.ChangesYes {
		return ""
	}
	return t.at.Commit
}

// commit returns the whole commit that was checked out, "" if it is not known.
func (t *trial) commit() string {
	if t.at == nil {
		return ""
	}
	return t.at.Commit
}

// count is n of something, as people write it.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
