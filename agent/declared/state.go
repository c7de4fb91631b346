package declared

import (
	"time"

	"tether/agent/config"
	"tether/vocab"
)

// State is the state of a declared terminal.
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
	Blocked  State = "blocked"  // it starts when all terminals that it needs are ready
	Starting State = "starting" // it is being started, or adopted from an earlier daemon
	Running  State = "running"
	Waiting  State = "waiting" // it has ended, and is started again at Next
	Exited   State = "exited"
	Failed   State = "failed" // it could not be started, and is not tried again
	Down     State = "down"   // the person has put it down
)

// Status is one declared terminal at one moment.
type Status struct {
	Spec     config.Declared
	State    State
	Since    time.Time
	ID       string    // of the running or the last terminal; "" if there was none
	Next     time.Time // time of the next start, when Waiting
	Restarts int       // number of restarts since the last Up
	Err      string    // why the last start failed or the next one cannot happen
	Cause    error     // of the last start that failed
	Waits    string    // which needed terminal is not ready, and why, when Blocked
	Code     int       // exit status; for Exited and Waiting
	Changed  bool      // the running terminal was started by another declaration

	vocab.Readiness // of the running or the last terminal, if there is a condition
}

// Bounds of the pause before a restart. It doubles with each end, and starts over after a
// run of healthyAfter.
const (
	firstRestart = time.Second
	maxRestart   = time.Minute
	healthyAfter = time.Minute
)

// backoff is the pause before a restart. The zero value begins with the shortest pause.
type backoff struct{ last time.Duration }

// next returns how long to wait before the restart, after a run of that duration.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= healthyAfter {
		b.last = 0
	}
	b.last = min(max(2*b.last, firstRestart), maxRestart)
	return b.last
}
