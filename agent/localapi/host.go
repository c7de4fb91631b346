package localapi

import (
	"time"

	"tether/vocab"
)

// PairRequest adds a host.
type PairRequest struct {
	Name string `json:"name,omitempty"` // "" means a name made from the URL
	URL  string `json:"url"`
	// Also has further URLs of the same host, which may have several nodes. If one does
	// not answer, the link tries another.
	Also    []string `json:"also,omitempty"`
	Token   string   `json:"token,omitempty"`
	Pin     string   `json:"pin,omitempty"`     // client.Pin of the host's certificate
	Default bool     `json:"default,omitempty"` // lend to this host if a request names none; the first host is always the default
	// AssumeClientTerminals allows pairing with a host that does not announce that it
	// takes client-executed terminals.
	AssumeClientTerminals bool   `json:"assume_client_terminals,omitempty"`
	OnDispose             string `json:"on_dispose,omitempty"` // auto, kill or unlend
	// Store is where secrets are kept, keyring or file; "" means the present place, or
	// before the first pairing the best one.
	Store string `json:"store,omitempty"`
}

// PairOffer is a pairing by a code. It waits until somebody at the host has confirmed it.
type PairOffer struct {
	SchemaVersion int `json:"schema_version"`
	// ID names the offer for Finish. It is "" if the host pairs by tokens alone, or if
	// there is nothing to do.
	ID   string `json:"id,omitempty"`
	Code string `json:"code,omitempty"` // to be compared with the code that the host shows
	// HostKey is the fingerprint of the host's key, DeviceKey that of this machine's key.
	HostKey   string `json:"host_key,omitempty"`
	DeviceKey string `json:"device_key,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"` // how long the offer is valid from now on
	// Paired is the host if this machine is already paired with it by keys, with the same
	// settings, and the host lets it in.
	Paired *HostStatus `json:"paired,omitempty"`
}

// HostStatus is one paired host and the link to it.
type HostStatus struct {
	Name       string       `json:"name"`
	URL        string       `json:"url"` // without credentials
	Also       []string     `json:"also,omitempty"`
	At         string       `json:"at,omitempty"` // the connected one of several URLs
	Pin        string       `json:"pin,omitempty"`
	Credential string       `json:"credential"`         // key (this machine's own), token or none
	HostKey    string       `json:"host_key,omitempty"` // fingerprint, if paired by keys
	Default    bool         `json:"default"`
	State      string       `json:"state"` // connecting, online, waiting, refused, unsupported
	Since      time.Time    `json:"since"`
	DownSince  time.Time    `json:"down_since,omitzero"`
	NextRetry  time.Time    `json:"next_retry,omitzero"`
	Error      string       `json:"error,omitempty"`
	Protocol   string       `json:"protocol,omitempty"` // only while online, as the next two
	Server     string       `json:"server,omitempty"`
	Resume     bool         `json:"resume"`
	Refused    int64        `json:"refused_actions"`
	LentMeans  string       `json:"lent_means,omitempty"`         // to whom, if nobody is named: everybody, or an audience
	Owner      string       `json:"machine_owner,omitempty"`      // according to the host; absent: its administrators
	Shares     bool         `json:"shares"`                       // the host accepts links for guests
	Park       int64        `json:"park_ms,omitempty"`            // how long the host may keep text while this machine is away
	ClockSkew  int64        `json:"clock_skew_seconds,omitempty"` // the host's clock is ahead; absent if they agree
	Unacked    int64        `json:"unacked_bytes"`                // not acknowledged by the host
	Gaps       int          `json:"gaps"`                         // how often bytes were dropped unsent
	GapBytes   int64        `json:"gap_bytes"`
	Lent       []vocab.Lent `json:"lent"`
	Withdrawn  int          `json:"withdrawn,omitempty"` // that an offline host may still keep
	KeptUntil  time.Time    `json:"kept_until,omitzero"` // when it forgets the last
	Tools      HostTools    `json:"tools"`
}

// HostChange changes the kept settings of a paired host.
type HostChange struct {
	Name    string `json:"name,omitempty"`    // the new name; "" keeps the old one
	Default bool   `json:"default,omitempty"` // true makes it the default host
	Tools   *bool  `json:"tools,omitempty"`   // whether this machine's tools are offered to sessions at the host; absent keeps the setting
	Retry   bool   `json:"retry,omitempty"`   // true tries to connect at once, if there is no connection
}

// HostTools says whether sessions at a host are offered this machine's tools, and counts
// their calls.
type HostTools struct {
	On       bool   `json:"on"`
	Sessions int    `json:"sessions"` // sessions that are offered the tools now
	Running  int    `json:"running"`  // calls in progress
	Calls    int64  `json:"calls"`    // calls that have ended since the daemon's start
	Refused  int64  `json:"refused"`  // ended calls that were not carried out
	Problem  string `json:"problem,omitempty"`
}

// Unpaired describes what a host that was forgotten here may still have of this machine.
type Unpaired struct {
	SchemaVersion int `json:"schema_version"`
	// Keeps says why the host could not be told that the pairing has ended, so that it
	// may still accept this machine's key. It is "" if the host was told, or has no such
	// key.
	Keeps string `json:"keeps,omitempty"`
	// Withdrawn is the number of terminals that the host may still keep, since it is
	// offline and was not told, and KeptUntil is until when; see HostStatus.
	Withdrawn int       `json:"withdrawn,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
}
