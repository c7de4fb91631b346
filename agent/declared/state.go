package declared

import (
	"time"

	"tether/agent/config"
)

// State says how a declared terminal is.
type State string

// The states.
//
//	                Blocked (until all that it needs are ready)
//	                 │  ▲
//	       Up, Begin ▼  │
//	Down ────────────▶ Starting ──▶ Running ──▶ Waiting ──▶ Starting …
//	 ▲                    │            │  end     (it is due again)
//	 │ Down, killed       ▼            ▼
//	any                 Failed       Exited      (it is not)
const (
	Blocked  State = "blocked"  // it starts when all that it needs are ready
	Starting State = "starting" // or being taken up from an earlier daemon
	Running  State = "running"
	Waiting  State = "waiting" // to be started again, at Next
	Exited   State = "exited"
	Failed   State = "failed" // it could not be started, and is not tried again
	Down     State = "down"   // the person wants it so
)

// Status is one declared terminal at one moment.
type Status struct {
	Spec     config.Declared
	State    State
	Since    time.Time
	ID       string    // of the terminal that runs, or ran last; "" if there was none
	Next     time.Time // when Waiting: the next start
	Restarts int       // since it was last asked to be up
	Err      string    // why the last start failed, or the obstacle to one
	Waits    string    // when Blocked: which of those that it needs is not ready, and why
	Code     int       // the status it ended with; for Exited and Waiting
	Changed  bool      // the running terminal was started by another declaration

	// Ready is of what runs, or ran last, if there is a condition.
	Ready      ReadyState
	ReadySince time.Time
	ReadyWhy   string // which condition holds, or why none does
}

// The time until a terminal is started again: it doubles with each end, and begins anew after a run of healthyAfter.
const (
	firstRestart = time.Second
	maxRestart   = time.Minute
	healthyAfter = time.Minute
)

// backoff is that time; the zero value begins.
type backoff struct{ last time.Duration }

// next returns how long to wait after a run that took so long.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= healthyAfter {
		b.last = 0
	}
	b.last = min(max(2*b.last, firstRestart), maxRestart)
	return b.last
}
