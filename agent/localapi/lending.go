package localapi

import (
	"time"

	"tether/vocab"
)

// LendRequest lends a terminal.
type LendRequest struct {
	Host string `json:"host,omitempty"` // "" means the default host
	// ForMs is after how many milliseconds the lending ends; 0 means that it does not end
	// by itself.
	ForMs int64 `json:"for_ms,omitempty"`
	// To lists who else at the host may watch: NAME, group:NAME, agent:NAME or everyone.
	// They see all retained output; with FromNow, only output from now on.
	To      []string `json:"to,omitempty"`
	FromNow bool     `json:"from_now,omitempty"`
	// Ports are opened to those who may watch: numbers, or AutoPort. ForMs is then only
	// theirs if the terminal is lent already. Write allows requests that change
	// something.
	Ports []string `json:"ports,omitempty"`
	Write bool     `json:"write,omitempty"`
}

// AutoPort in LendRequest.Ports stands for the ports on which the terminal's programs
// will listen.
const AutoPort = "auto"

// UnlendRequest ends the lending of a terminal to a host. An empty Host means all hosts.
type UnlendRequest struct {
	Host string `json:"host,omitempty"`
	// From, if it is not empty, lists who may not watch any more, while the lending
	// continues. NAME and agent:NAME may not watch even if something else lets them;
	// group:NAME and everyone lose their access if the terminal was lent to them.
	From []string `json:"from,omitempty"`
	// Ports, if it is not empty, lists the ports that are closed, while the lending
	// continues.
	Ports []string `json:"ports,omitempty"`
}

// Loan is the lending of a terminal to one host.
type Loan struct {
	Host  string     `json:"host"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"`
	// State is there, pending (the host does not have it yet), offline or refused; absent
	// if nothing is left to send, and for agents.
	State     string           `json:"state,omitempty"`
	Observers *int             `json:"observers,omitempty"`
	Audience  *Audience        `json:"audience,omitempty"`  // never for agents
	Watchers  *vocab.Watchers  `json:"host_says,omitempty"` // never for agents
	Ports     []vocab.LentPort `json:"ports,omitempty"`     // open there to those who may watch, or closed
}

// KeptAt is a host that may still keep the text of a terminal although its sharing was
// ended, because the host is offline. It is told when the connection is back.
type KeptAt struct {
	Host  string    `json:"host"`
	Until time.Time `json:"until"` // at the latest
}

// Values of Loan.State.
const (
	LoanThere   = "there"
	LoanPending = "pending"
	LoanOffline = "offline"
	LoanRefused = "refused"
)

// Audience lists who may watch a terminal at a host. The owner of this machine there
// always may.
type Audience struct {
	To         []string `json:"to"`          // NAME, group:NAME, agent:NAME or everyone
	FromNow    []string `json:"from_now"`    // of to: those who see only later output
	NotTo      []string `json:"not_to"`      // may not watch, even if the host grants it
	GuestsOnly bool     `json:"guests_only"` // see tether share
}

// ShareRequest makes a link with which a guest watches one terminal, or sees one lent
// port and nothing else, without a login.
type ShareRequest struct {
	Host  string `json:"host,omitempty"`   // "" means the default host
	Port  int    `json:"port,omitempty"`   // 0 means the terminal; a port that is not lent there is open to the guests alone
	ForMs int64  `json:"for_ms,omitempty"` // 0 means an hour; at most ahp.MaxShareTime
	Once  bool   `json:"once,omitempty"`   // only the first browser that opens it is let in
	// Here names a host of the client's own instead of a paired one. The answer is then a
	// NewShare at once, and a ShareEnd at the end of the link. The link ends with the
	// request.
	Here *PrivateHost `json:"here,omitempty"`
}

// PrivateHost is a host on loopback to which one terminal is lent for the time of one
// request. It is never paired and never listed.
type PrivateHost struct {
	URL   string `json:"url"` // ws://ADDRESS:PORT
	Token string `json:"token"`
	// Agents lets everybody with a token of the host watch, such as an agent, instead of
	// the guest alone.
	Agents bool `json:"agents,omitempty"`
}

// ShareEnd says that the link at a private host has ended otherwise than with its
// request.
type ShareEnd struct {
	Ended bool `json:"ended"` // its time was up, or somebody has ended it; false means that the daemon ends
}

// NewShare is a new share with its link. The link is returned only this once.
type NewShare struct {
	Share
	Link string `json:"link"`
	// Loopback says that the link works only on this machine.
	Loopback bool `json:"loopback"`
}

// Share is a link that lets a guest watch.
type Share struct {
	ID         string    `json:"id"`
	Terminal   string    `json:"terminal"`
	Name       string    `json:"name"`
	Host       string    `json:"host"`
	Port       int       `json:"port,omitempty"` // the lent port that the guest sees, and nothing else; 0: the terminal
	Until      time.Time `json:"until"`
	Once       bool      `json:"once"`
	GuestsOnly bool      `json:"guests_only"` // nobody else may watch the terminal there
}

// Shares is the answer to a request for all shares.
type Shares struct {
	SchemaVersion int     `json:"schema_version"`
	Shares        []Share `json:"shares"`
}
