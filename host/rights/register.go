package rights

import (
	"crypto/sha256"
	"errors"
	"time"
)

// EntryKind is the kind of an entry.
type EntryKind string

// The kinds, in the order of the page. A terminal cannot be ended at the host's page:
// only its machine ends it.
const (
	EntryMachine  EntryKind = "machine"
	EntryAgent    EntryKind = "agent"
	EntryPerson   EntryKind = "person"
	EntryGrant    EntryKind = "grant"
	EntryShare    EntryKind = "share"
	EntrySession  EntryKind = "session"
	EntryTerminal EntryKind = "terminal"
)

// Entry is a record of an access right at the host.
type Entry struct {
	Kind   EntryKind  `json:"kind"`
	ID     string     `json:"id"` // unique among those of its kind
	Name   string     `json:"name"`
	Owner  string     `json:"owner,omitempty"`  // the person's name; empty: the administrator
	Detail string     `json:"detail,omitempty"` // a role, groups, the grantee
	Since  *time.Time `json:"since,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	// Online and Terminals are set for a machine, Size for a terminal: bytes of text that
	// the host has.
	Online    bool  `json:"online,omitempty"`
	Terminals int   `json:"terminals,omitempty"`
	Size      int64 `json:"size,omitempty"`

	OwnerID string `json:"-"`
}

// ErrNoEntry is returned by Register.End for an entry that does not exist, or not any
// more.
var ErrNoEntry = errors.New("it is not there any more")

// Register is the list of access rights. It is safe for concurrent use, and may read and
// write files.
type Register interface {
	// Entries returns all machines, agents, people and grants, and logins other than
	// those that only the host's browsers have.
	Entries() ([]Entry, error)
	// End ends one of them, and its connections within two seconds. ErrNoEntry means that
	// it is gone.
	End(kind EntryKind, id string) error
	// Session reports whether Entries has the login to which the token with that hash
	// belongs.
	Session(token [sha256.Size]byte) bool
}
