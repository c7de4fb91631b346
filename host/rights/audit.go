package rights

import "time"

// AuditEvent is something that a principal did, for the record. It contains no token and
// no output of a terminal.
type AuditEvent struct {
	At       time.Time `json:"at"`
	Type     string    `json:"type"` // one of the Audit constants
	Remote   string    `json:"remote,omitempty"`
	Name     string    `json:"principal,omitempty"`
	Role     Role      `json:"role,omitempty"`
	Client   string    `json:"client,omitempty"`   // clientId
	Terminal string    `json:"terminal,omitempty"` // URI
	Detail   string    `json:"detail,omitempty"`   // more, in words
}

// Types of AuditEvents.
const (
	AuditConnected  = "connected"  // a client was admitted
	AuditRefused    = "refused"    // a client was refused
	AuditClient     = "client"     // a connection has identified its client
	AuditEnded      = "ended"      // a connection has ended
	AuditCreated    = "created"    // a terminal was announced or started
	AuditDisposed   = "disposed"   // a terminal was disposed of
	AuditSubscribed = "subscribed" // a principal watches a terminal
	AuditSession    = "session"    // a session was created or disposed of
	AuditCalled     = "called"     // an agent has called a machine's tool
	AuditPort       = "port"       // a machine opens or closes a port, or a principal first asks it
	AuditWithdrawn  = "withdrawn"  // an administrator has ended a grant
	AuditShared     = "shared"     // a machine has shared a terminal by a link
	AuditRevoked    = "revoked"    // an entry was ended at the page
	AuditDenied     = "denied"     // an attempt that the role does not allow
)
