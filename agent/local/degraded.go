package local

import "time"

// Degraded is something that does not work as it should while the daemon
// goes on.
type Degraded struct {
	Cause string    `json:"cause"` // stays the same: "state directory"
	Text  string    `json:"text"`  // what it is and what to do
	Since time.Time `json:"since"`
}
