package localapi

import "time"

// Operations on declared terminals.
const (
	DeclareUp      = "up"
	DeclareDown    = "down"
	DeclareRestart = "restart"
)

// DeclareRequest asks to start or end declared terminals.
type DeclareRequest struct {
	Do    string   `json:"do"`
	Names []string `json:"names,omitempty"` // none means all
}

// Declared is one declared terminal.
type Declared struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // blocked, starting, running, waiting, exited, failed, down
	Since    time.Time `json:"since"`
	ID       string    `json:"id,omitempty"`      // of the terminal that runs or ran last
	Restart  string    `json:"restart"`           // never, on-failure, always
	Command  []string  `json:"command,omitempty"` // or
	Line     string    `json:"line,omitempty"`
	Next     time.Time `json:"next,omitzero"`   // while waiting: the next start
	Restarts int       `json:"restarts"`        // since it was last asked to be up
	Error    string    `json:"error,omitempty"` // why it could not be started
	ExitCode *int      `json:"exit_code,omitempty"`
	Changed  bool      `json:"changed,omitempty"` // the running terminal was started by another declaration

	Needs []string `json:"needs,omitempty"`
	Waits string   `json:"waits_for,omitempty"` // while blocked: which of those that it needs is not ready, and why
	// Ready is that of what runs, or ran last, if there is a condition; see Terminal.
	Ready      string    `json:"ready,omitempty"`
	ReadySince time.Time `json:"ready_since,omitzero"`
	ReadyWhy   string    `json:"ready_why,omitempty"`
}

// DeclaredList is the answer to a DeclareRequest.
type DeclaredList struct {
	SchemaVersion int        `json:"schema_version"`
	Declared      []Declared `json:"declared"`
}
