package localapi

import (
	"time"

	"tether/agent/audit"
)

// Approval is a question that waits for the person, one that nobody answered in time, or an approval that stands.
type Approval struct {
	ID       string    `json:"id"`    // "q-…" of a question, "g-…" of an approval
	State    string    `json:"state"` // waiting, expired, granted
	Actor    string    `json:"actor"`
	Who      string    `json:"who,omitempty"` // an agent at a host, by the name that the host gives it; for people to read
	Door     string    `json:"door,omitempty"`
	Argv     []string  `json:"argv,omitempty"`
	Line     string    `json:"line,omitempty"`
	Cwd      string    `json:"cwd"`
	Env      []string  `json:"env,omitempty"`      // names of the variables that it sets
	Settings []string  `json:"settings,omitempty"` // NAME=value; values that decide which code runs are shown, secrets in others masked
	Scripts  []Script  `json:"scripts,omitempty"`  // of a question: files that it runs, as they were then
	Summary  string    `json:"summary,omitempty"`  // of a question, for notifications: the requester and the command, short and without secrets
	Rule     string    `json:"rule,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
	Expires  time.Time `json:"expires"` // a question is denied then
}

// Script is a file that a command runs, as it was when the question was asked.
type Script struct {
	Path string `json:"path"`
	Sum  string `json:"sha256,omitempty"` // of its contents; "" if it could not be read
	Size int64  `json:"size"`             // bytes
}

// The states of an Approval.
const (
	ApprovalWaiting = "waiting"
	ApprovalExpired = "expired" // approving it lets the next attempt through
	ApprovalGranted = "granted"
)

// ApprovalList is the answer to a list: waiting questions, oldest first, then expired ones, then grants.
type ApprovalList struct {
	SchemaVersion int        `json:"schema_version"`
	Version       uint64     `json:"version"` // changes with the list
	Approvals     []Approval `json:"approvals"`
}

// ApprovalAnswer answers a question.
type ApprovalAnswer struct {
	Allow bool `json:"allow"`
	// ForSeconds makes an approval stand for so long; 0 is for this once.
	ForSeconds int64 `json:"for_seconds,omitempty"`
}

// Approved is the result of an answer.
type Approved struct {
	SchemaVersion int       `json:"schema_version"`
	ID            string    `json:"id"`
	Allow         bool      `json:"allow"`
	Grant         *Approval `json:"grant,omitempty"`
}

// AuditHead is the end of the audit log as the daemon that writes it knows it.
type AuditHead struct {
	SchemaVersion int        `json:"schema_version"`
	Head          audit.Head `json:"head"`
}
