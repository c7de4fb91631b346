package localapi

import (
	"time"

	"tether/platform/proc"
	"tether/vocab"
)

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
	// Limits, of up, are as in SpawnRequest; the terminals that it starts keep them. With
	// FeatureLimits.
	Limits *proc.Limits `json:"limits,omitempty"`
}

// Declared is one declared terminal.
type Declared struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // blocked, starting, running, waiting, exited, failed, down
	Since    time.Time `json:"since"`
	ID       string    `json:"id,omitempty"`      // id of the terminal that runs, or ran last
	Restart  string    `json:"restart"`           // never, on-failure, always
	Command  []string  `json:"command,omitempty"` // argv; absent if Line is set
	Line     string    `json:"line,omitempty"`    // line for the system's shell
	Next     time.Time `json:"next,omitzero"`
	Restarts int       `json:"restarts"` // since somebody last asked for the terminal
	Error    string    `json:"error,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Changed  bool      `json:"changed,omitempty"` // the running terminal was started by another declaration
	Notice   string    `json:"notice,omitempty"`  // what is not as the person asked

	Needs []string `json:"needs,omitempty"`
	Waits string   `json:"waits_for,omitempty"` // which needed terminal is not ready, and why
	vocab.Readiness
}

// DeclaredList is the answer to a DeclareRequest.
type DeclaredList struct {
	SchemaVersion int        `json:"schema_version"`
	Declared      []Declared `json:"declared"`
}
