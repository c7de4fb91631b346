package localapi

import "time"

// PairRequest adds a host.
type PairRequest struct {
	Name string `json:"name,omitempty"` // "" is made of the URL
	URL  string `json:"url"`
	// Also are further URLs of the same host, which may be several nodes: the link tries another one where one does not answer.
	Also    []string `json:"also,omitempty"`
	Token   string   `json:"token,omitempty"`
	Pin     string   `json:"pin,omitempty"`     // client.Pin of the host's certificate
	Default bool     `json:"default,omitempty"` // lend here when nothing else is said; the first host is it anyway
	// AssumeClientTerminals pairs with a host that does not say that it takes client-executed terminals.
	AssumeClientTerminals bool   `json:"assume_client_terminals,omitempty"`
	OnDispose             string `json:"on_dispose,omitempty"` // auto, kill or unlend
	// Store is where secrets are kept, keyring or file; "" means the present or best place.
	Store string `json:"store,omitempty"`
}

// PairOffer is a pairing by a code that waits for somebody at the host.
type PairOffer struct {
	SchemaVersion int `json:"schema_version"`
	// ID names it for Finish; "" says that the host pairs by tokens alone, or that there is nothing to do.
	ID   string `json:"id,omitempty"`
	Code string `json:"code,omitempty"` // to be compared with the one at the host
	// HostKey and DeviceKey are fingerprints, of the host's key and this machine's.
	HostKey   string `json:"host_key,omitempty"`
	DeviceKey string `json:"device_key,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"` // from now
	// Paired is the host if this machine is paired with it by keys already, just so, and let in.
	Paired *HostStatus `json:"paired,omitempty"`
}

// HostStatus is one paired host and the link to it.
type HostStatus struct {
	Name string `json:"name"`
	URL  string `json:"url"` // without credentials
	// Also are its further URLs.
	Also []string `json:"also,omitempty"`
	// At is which of these URLs the connection is to; absent if there is only one, and while not online.
	At  string `json:"at,omitempty"`
	Pin string `json:"pin,omitempty"`
	// Credential is how this machine authenticates: key (its own), token or none.
	Credential string    `json:"credential"`
	HostKey    string    `json:"host_key,omitempty"` // fingerprint of the host's key, if paired by keys
	Default    bool      `json:"default"`
	State      string    `json:"state"` // connecting, online, waiting, refused, unsupported
	Since      time.Time `json:"since"`
	DownSince  time.Time `json:"down_since,omitzero"` // absent while online
	NextRetry  time.Time `json:"next_retry,omitzero"`
	Error      string    `json:"error,omitempty"`    // error of the last attempt; absent while online
	Protocol   string    `json:"protocol,omitempty"` // like the next two fields, only while online
	Server     string    `json:"server,omitempty"`
	Resume     bool      `json:"resume"`
	Refused    int64     `json:"refused_actions"`
	// LentMeans describes who sees a terminal that is lent there without naming anybody: everybody at the host, or its audience: the owner of
	// this machine there, and that person's agents. Absent while not online, like the next two.
	LentMeans string `json:"lent_means,omitempty"`
	Owner     string `json:"machine_owner,omitempty"` // who that is, as the host says; absent: its administrators
	Shares    bool   `json:"shares"`                  // the host takes links for guests
	// Park is for how many milliseconds the host may keep shared text while this machine is away, the smaller of lend.park and what the host
	// allows; absent if it keeps none, and while not online.
	Park int64 `json:"park_ms,omitempty"`
	// ClockSkew is how many seconds the host's clock is ahead of this machine's, accurate to about a second; absent if the clocks agree, and
	// while not online.
	ClockSkew int64 `json:"clock_skew_seconds,omitempty"`
	// Unacked is how many bytes of text the host has not acknowledged, over all lent terminals. Gaps is how often bytes were dropped before
	// they could be sent, since the daemon's start, and GapBytes how many.
	Unacked  int64  `json:"unacked_bytes"`
	Gaps     int    `json:"gaps"`
	GapBytes int64  `json:"gap_bytes"`
	Lent     []Lent `json:"lent"`
	// Withdrawn is how many terminals that are not shared any more the host may still keep, since it is offline and does not know; KeptUntil
	// is until when at the latest. Absent if there are none.
	Withdrawn int       `json:"withdrawn,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
	Tools     HostTools `json:"tools"`
}

// Lent is one terminal at one host.
type Lent struct {
	ID      string `json:"id"`
	URI     string `json:"uri"`
	Unacked int64  `json:"unacked_bytes"`
	Lost    int64  `json:"lost_bytes"`
	// There reports whether the host has the terminal now; false: pending.
	There   bool   `json:"there"`
	Problem string `json:"problem,omitempty"`
	// KeptUntil is until when the host may keep the terminal's text while this machine is away (lend.park); absent while it is online, and if
	// it keeps nothing.
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// Observers is the number of observers at the host; absent if the host does not report it.
	Observers *int `json:"observers,omitempty"`
	// Watchers lists who may watch and who does, according to the host; absent if it does not report them.
	Watchers *Watchers `json:"host_says,omitempty"`
}

// Values of HostStatus.LentMeans.
const (
	LentToEverybody = "everybody"
	LentToAudience  = "audience"
)

// HostChange changes the kept settings of a paired host.
type HostChange struct {
	Name    string `json:"name,omitempty"`    // the new one; "" leaves it
	Default bool   `json:"default,omitempty"` // true makes it the default host
	Tools   *bool  `json:"tools,omitempty"`   // offers this machine's tools to sessions there, or not; absent leaves it
	Retry   bool   `json:"retry,omitempty"`   // true tries at once to reach it, if there is no connection
}

// HostTools says whether sessions at a host are offered this machine's tools, and counts their calls.
type HostTools struct {
	On       bool   `json:"on"`
	Sessions int    `json:"sessions"` // sessions that are offered the tools now
	Running  int    `json:"running"`  // calls in progress
	Calls    int64  `json:"calls"`    // calls that have ended since the daemon's start
	Refused  int64  `json:"refused"`  // ended calls that were not carried out
	Problem  string `json:"problem,omitempty"`
}

// Unpaired describes the remains of a host that was forgotten here.
type Unpaired struct {
	SchemaVersion int `json:"schema_version"`
	// Keeps is why the host may still let this machine's key in: it could not be told. "" if there is no such key.
	Keeps string `json:"keeps,omitempty"`
	// Withdrawn is how many terminals the host may still keep, since it is offline and was not told, KeptUntil until when; see HostStatus.
	Withdrawn int       `json:"withdrawn,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
}
