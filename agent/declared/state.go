package declared

import (
	"time"

	"tether/agent/config"
)

// State says how a declared terminal is.
type State string

// The states.
//
//	       Up, Begin
//	Down ────────────▶ Starting ──▶ Running ──▶ Waiting ──▶ Starting …
//	 ▲                    │            │  end     (it is due again)
//	 │ Down, killed       ▼            ▼
//	any                 Failed       Exited      (it is not)
const (
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
	Code     int       // the status it ended with; for Exited and Waiting
	Changed  bool      // the running terminal was started by another declaration
}

// The time until a terminal is started again: it doubles with each end, and
// begins anew after a run of healthyAfter.
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
