package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// Implementation names a client or a host. It is informational: nothing may depend on it.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Title   string `json:"title,omitempty"`
}

// InitializeParams opens a connection. The zero Capabilities claims none.
type InitializeParams struct {
	Channel              string          `json:"channel"` // RootURI
	ProtocolVersions     []string        `json:"protocolVersions"`
	ClientID             string          `json:"clientId"` // stable over connections of one logical client
	ClientInfo           *Implementation `json:"clientInfo,omitempty"`
	InitialSubscriptions []string        `json:"initialSubscriptions,omitempty"`
	Locale               string          `json:"locale,omitempty"` // BCP 47
	Capabilities         json.RawMessage `json:"capabilities,omitempty"`
	Meta                 Meta            `json:"_meta,omitempty"`
}

// Validate checks the params; Negotiate checks the versions.
func (p InitializeParams) Validate() error {
	if len(p.ProtocolVersions) == 0 {
		return errors.New("protocolVersions is missing or empty")
	}
	return cmp.Or(checkRoot(p.Channel), CheckClientID(p.ClientID),
		checkURIs("initialSubscriptions", p.InitialSubscriptions))
}

// InitializeResult is the host's answer.
type InitializeResult struct {
	ProtocolVersion             string          `json:"protocolVersion"` // one of the offered ones, verbatim
	ServerSeq                   int64           `json:"serverSeq"`
	Snapshots                   []Snapshot      `json:"snapshots"` // required, may be empty
	ServerInfo                  *Implementation `json:"serverInfo,omitempty"`
	DefaultDirectory            string          `json:"defaultDirectory,omitempty"` // URI
	CompletionTriggerCharacters []string        `json:"completionTriggerCharacters,omitempty"`
	TerminalCommandPrefix       string          `json:"terminalCommandPrefix,omitempty"`
	ClientTerminals             json.RawMessage `json:"clientTerminals,omitempty"` // see FindClientTerminals
	Meta                        Meta            `json:"_meta,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r InitializeResult) MarshalJSON() ([]byte, error) {
	type fields InitializeResult
	r.Snapshots = list(r.Snapshots)
	return marshal(fields(r)), nil
}

// ReconnectParams opens a connection that continues an earlier one of the same client.
type ReconnectParams struct {
	Channel           string   `json:"channel"` // RootURI; VS Code 1.131 leaves it out
	ClientID          string   `json:"clientId"`
	LastSeenServerSeq int64    `json:"lastSeenServerSeq"`
	Subscriptions     []string `json:"subscriptions"` // everything the client wants back
	Meta              Meta     `json:"_meta,omitempty"`
}

// Validate checks the params.
func (p ReconnectParams) Validate() error {
	if p.LastSeenServerSeq < 0 {
		return fmt.Errorf("lastSeenServerSeq is %d, want 0 or more", p.LastSeenServerSeq)
	}
	return cmp.Or(checkRoot(p.Channel), CheckClientID(p.ClientID), checkURIs("subscriptions", p.Subscriptions))
}

// MarshalJSON implements json.Marshaler.
func (p ReconnectParams) MarshalJSON() ([]byte, error) {
	type fields ReconnectParams
	p.Subscriptions = list(p.Subscriptions)
	return marshal(fields(p)), nil
}

// Types of a ReconnectResult.
const (
	ReconnectReplay   = "replay"
	ReconnectSnapshot = "snapshot"
)

// ReconnectResult is the host's answer: the missed actions, or the present states. The
// protocol version stays the one negotiated before.
type ReconnectResult struct {
	Type      string     `json:"type"`      // ReconnectReplay or ReconnectSnapshot
	Actions   []Envelope `json:"actions"`   // replay: in serverSeq order
	Missing   []string   `json:"missing"`   // replay: subscriptions that are gone
	Snapshots []Snapshot `json:"snapshots"` // snapshot: a subscription without one is gone
}

// MarshalJSON implements json.Marshaler.
func (r ReconnectResult) MarshalJSON() ([]byte, error) {
	if r.Type == ReconnectSnapshot {
		return marshal(struct {
			Type      string     `json:"type"`
			Snapshots []Snapshot `json:"snapshots"`
		}{r.Type, list(r.Snapshots)}), nil
	}
	return marshal(struct {
		Type    string     `json:"type"`
		Actions []Envelope `json:"actions"`
		Missing []string   `json:"missing"`
	}{ReconnectReplay, list(r.Actions), list(r.Missing)}), nil
}

// Validate returns an error if the type is unknown.
func (r ReconnectResult) Validate() error {
	if r.Type != ReconnectReplay && r.Type != ReconnectSnapshot {
		return fmt.Errorf("reconnect: type is %.40q, want %q or %q", r.Type, ReconnectReplay, ReconnectSnapshot)
	}
	return nil
}

// checkRoot accepts an absent channel, because VS Code 1.131 leaves it out.
func checkRoot(channel string) error {
	if channel != "" && channel != RootURI {
		return fmt.Errorf("channel is %.80q, want %q", channel, RootURI)
	}
	return nil
}

func checkURIs(name string, uris []string) error {
	if len(uris) > MaxSubscriptions {
		return fmt.Errorf("%s has %d entries, at most %d are allowed", name, len(uris), MaxSubscriptions)
	}
	for i, u := range uris {
		if err := checkURI(fmt.Sprintf("%s[%d]", name, i), u); err != nil {
			return err
		}
	}
	return nil
}
