package runs

import "time"

// Woken returns when output has woken the recorder last, and whether its timer runs. Call
// it when the recorder waits.
func (r *Runs) Woken() (last time.Time, timer bool) {
	return r.recorder.budgeted, r.recorder.gathering
}
