package localapi

import "time"

// LendRequest lends a terminal.
type LendRequest struct {
	Host string `json:"host,omitempty"` // "" is the default host
	// ForMs ends it after this many milliseconds, 0 not by itself.
	ForMs int64 `json:"for_ms,omitempty"`
	// To lets others at the host watch: NAME, group:NAME, agent:NAME or everyone. They are shown all retained output, unless FromNow is set.
	To      []string `json:"to,omitempty"`
	FromNow bool     `json:"from_now,omitempty"`
}

// UnlendRequest ends lending. "" is all hosts.
type UnlendRequest struct {
	Host string `json:"host,omitempty"`
	// From, if it is not empty, keeps these from watching, while the lending continues: NAME and agent:NAME, whatever lets them; group:NAME
	// and everyone, if the terminal was lent to them.
	From []string `json:"from,omitempty"`
}

// Loan is one host that a terminal is lent to.
type Loan struct {
	Host  string     `json:"host"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"` // absent: no time limit
	// State is there (the host has the terminal), pending (the host does not have it yet), offline (output is sent when the host is back) or
	// refused (see tether status). It is absent if nothing is left to send, and for agents.
	State string `json:"state,omitempty"`
	// Observers is the number of observers at the host; absent if the host does not report it.
	Observers *int `json:"observers,omitempty"`
	// Audience lists who may watch at the host, besides those to whom this machine belongs there. It is absent for agents.
	Audience *Audience `json:"audience,omitempty"`
	// Watchers lists who may watch and who does, according to the host; absent if it does not report them, and for agents.
	Watchers *Watchers `json:"host_says,omitempty"`
}

// KeptAt is a host that may still keep the text of a terminal whose sharing was ended: it is offline and hears of that when it is reached
// again.
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

// Audience lists who may watch a terminal at a host. The owner of this machine there always may.
type Audience struct {
	To []string `json:"to"` // NAME, group:NAME, agent:NAME or everyone
	// FromNow lists the names in To that see only output printed after they were named.
	FromNow []string `json:"from_now"`
	NotTo   []string `json:"not_to"` // may not watch, even if the host grants it
	// GuestsOnly reports whether nobody may watch but guests with a link, see tether share.
	GuestsOnly bool `json:"guests_only"`
}

// Watchers lists who may watch a terminal at a host and who does, according to the host.
type Watchers struct {
	May      []string  `json:"may"`
	Refused  []string  `json:"refused"` // names in the audience that the host does not take
	Watching []Watcher `json:"watching"`
	More     int       `json:"more"` // number of watchers beyond those listed
}

// Watcher is a watcher at a host, according to the host.
type Watcher struct {
	Who   string    `json:"who"`
	Kind  string    `json:"kind"` // person, agent, guest or machine
	Since time.Time `json:"since"`
}

// ShareRequest makes a link with which a guest watches one terminal, without a login.
type ShareRequest struct {
	Host  string `json:"host,omitempty"`   // "" is the default one
	ForMs int64  `json:"for_ms,omitempty"` // 0 is an hour; at most ahp.MaxShareTime
	Once  bool   `json:"once,omitempty"`   // only the first browser that opens it is let in
}

// NewShare is a share with its link, which nobody can ask for again.
type NewShare struct {
	Share
	Link string `json:"link"`
	// Loopback says that the link works on this machine alone.
	Loopback bool `json:"loopback"`
}

// Share is a link that lets a guest watch.
type Share struct {
	ID         string    `json:"id"`
	Terminal   string    `json:"terminal"`
	Name       string    `json:"name"`
	Host       string    `json:"host"`
	Until      time.Time `json:"until"`
	Once       bool      `json:"once"`
	GuestsOnly bool      `json:"guests_only"` // nobody else may watch the terminal there
}

// Shares is the answer to a request for all of them.
type Shares struct {
	SchemaVersion int     `json:"schema_version"`
	Shares        []Share `json:"shares"`
}
