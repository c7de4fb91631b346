package localapi

import (
	"time"

	"tether/agent/audit"
)

// Approval is a question that waits for the person, one that nobody answered in time, or
// an approval that stands.
type Approval struct {
	ID        string         `json:"id"`    // "q-…" for a question, "g-…" for an approval
	State     string         `json:"state"` // waiting, expired, granted
	Actor     string         `json:"actor"`
	Who       string         `json:"who,omitempty"` // a host's name for its agent
	Door      string         `json:"door,omitempty"`
	Argv      []string       `json:"argv,omitempty"`
	Line      string         `json:"line,omitempty"`
	Setting   bool           `json:"setting,omitempty"` // line is a changed part of the configuration
	Cwd       string         `json:"cwd"`
	ArgvBytes map[int][]byte `json:"argv_bytes,omitempty"` // arguments that are not UTF-8, by index
	CwdBytes  []byte         `json:"cwd_bytes,omitempty"`
	Env       []string       `json:"env,omitempty"`      // names of the variables that the command sets
	Settings  []string       `json:"settings,omitempty"` // NAME=value, secrets masked unless they decide what runs
	Scripts   []Script       `json:"scripts,omitempty"`  // files that the command runs, as they were at the question
	Summary   string         `json:"summary,omitempty"`  // requester and command in short, without secrets
	Rule      string         `json:"rule,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Since     time.Time      `json:"since"`
	Expires   time.Time      `json:"expires"` // when the question is denied, or the approval ends
}

// Script is a file that a command runs, as it was when the question was asked.
type Script struct {
	Path string `json:"path"`
	Sum  string `json:"sha256,omitempty"` // SHA-256 of the contents; "" if the file could not be read
	Size int64  `json:"size"`
}

// The states of an Approval.
const (
	ApprovalWaiting = "waiting"
	ApprovalExpired = "expired" // approving it lets the next attempt through
	ApprovalGranted = "granted"
)

// ApprovalList is the answer to a request for the list: waiting questions, oldest first,
// then expired ones, then grants.
type ApprovalList struct {
	SchemaVersion int        `json:"schema_version"`
	Version       uint64     `json:"version"` // changes whenever the list does
	Approvals     []Approval `json:"approvals"`
}

// ApprovalAnswer answers a question.
type ApprovalAnswer struct {
	Allow bool `json:"allow"`
	// ForSeconds is for how many seconds the approval stands; 0 approves the command
	// once.
	ForSeconds int64 `json:"for_seconds,omitempty"`
}

// Approved is the result of an answer.
type Approved struct {
	SchemaVersion int       `json:"schema_version"`
	ID            string    `json:"id"`
	Allow         bool      `json:"allow"`
	Grant         *Approval `json:"grant,omitempty"`
}

// AuditHead is the end of the audit log, as known to the daemon that writes the log.
type AuditHead struct {
	SchemaVersion int        `json:"schema_version"`
	Head          audit.Head `json:"head"`
}
