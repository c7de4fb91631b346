package ahp

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ExtensionVersion is the version of the client-terminals extension this package speaks.
const ExtensionVersion = 1

// Bounds of ClientTerminals.MaxDataBytes, bytes of text in one output action.
const (
	DefaultMaxDataBytes = 64 << 10
	MinMaxDataBytes     = 1 << 10
)

// ClientTerminals is a host's marker: it takes client-executed terminals. All but Version goes beyond the proposal.
type ClientTerminals struct {
	Version        int64 `json:"version"`                // 0 = the bare proposal
	GraceMs        int64 `json:"graceMs,omitempty"`      // milliseconds a terminal outlives its owner's connection
	Resume         bool  `json:"resume,omitempty"`       // offsets are read and acknowledged
	CommandActions bool  `json:"commandActions"`         // the owner may dispatch command actions
	MaxDataBytes   int64 `json:"maxDataBytes,omitempty"` // bytes of text in one output action
	Screens        bool  `json:"screens,omitempty"`      // the owner may send the screen, see TerminalOutput
	States         bool  `json:"states,omitempty"`       // the owner may report how the program uses its keyboard, see MethodState
	HeartbeatMs    int64 `json:"heartbeatMs,omitempty"`  // milliseconds between signs of life that the host asks for; 0 = as the owner likes
	MayLend        *bool `json:"mayLend,omitempty"`      // whether this connection may create client-executed terminals; nil = not said

	// Audiences says that the host shows a lent terminal only to its audience. Nil: everybody at the host sees it.
	Audiences *Audiences `json:"audiences,omitempty"`
	// Shares says that the host takes shares, see MethodShare.
	Shares bool `json:"shares,omitempty"`
	// ParkMs is the longest time, in milliseconds, that the host keeps terminals for its own doors while their machine is away, if their owner allows
	// it; see Park. 0: it keeps none.
	ParkMs int64 `json:"parkMs,omitempty"`
}

// Forbids reports whether the host says that this connection may not create client-executed terminals.
func (t ClientTerminals) Forbids() bool { return t.MayLend != nil && !*t.MayLend }

// NewClientTerminals returns the marker of a host that does all of version 1 with this grace time, in milliseconds.
func NewClientTerminals(graceMs int64) ClientTerminals {
	return ClientTerminals{Version: ExtensionVersion, GraceMs: graceMs, Resume: true, CommandActions: true,
		MaxDataBytes: DefaultMaxDataBytes}
}

// Meta returns the marker as the _meta of an InitializeResult.
func (t ClientTerminals) Meta() Meta { return Meta{MarkerKey: marshal(t)} }

// FindClientTerminals returns the host's marker: a typed clientTerminals member if there is one, else the one in _meta. It returns false if
// there is none, if it is not an object, or if its version differs from ours. Numbers are brought into range.
func FindClientTerminals(r InitializeResult) (ClientTerminals, bool) {
	if t, ok := readMarker(r.ClientTerminals); ok {
		return t, true
	}
	t, ok := readMarker(r.Meta[MarkerKey])
	return t, ok && t.Version == ExtensionVersion
}

// readMarker takes a marker without a version, as a typed member might be, for the bare proposal.
func readMarker(raw json.RawMessage) (t ClientTerminals, ok bool) {
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &t) != nil {
		return ClientTerminals{}, false
	}
	switch t.Version {
	case 0:
		return ClientTerminals{MaxDataBytes: DefaultMaxDataBytes}, true
	case ExtensionVersion:
	default:
		return ClientTerminals{}, false
	}
	t.GraceMs = min(max(t.GraceMs, 0), MaxGraceMs)
	t.ParkMs = min(max(t.ParkMs, 0), MaxPark.Milliseconds())
	if t.HeartbeatMs != 0 {
		t.HeartbeatMs = max(t.HeartbeatMs, MinHeartbeatMs)
	}
	if t.MaxDataBytes == 0 {
		t.MaxDataBytes = DefaultMaxDataBytes
	}
	t.MaxDataBytes = min(max(t.MaxDataBytes, MinMaxDataBytes), MaxData)
	return t, true
}

// ClientMarker is a client's marker in InitializeParams._meta: the extension versions it speaks.
type ClientMarker struct {
	Versions []int64 `json:"versions"`
}

// NewClientMeta returns the _meta of an InitializeParams that offers the extension.
func NewClientMeta() Meta {
	return Meta{MarkerKey: marshal(ClientMarker{Versions: []int64{ExtensionVersion}})}
}

// OffersExtension reports whether a client's _meta offers the version this package speaks.
func OffersExtension(m Meta) bool {
	var c ClientMarker
	return json.Unmarshal(m[MarkerKey], &c) == nil && slices.Contains(c.Versions, ExtensionVersion)
}

// NewAgentMeta returns the _meta of a tool call that this agent makes, nil without a name.
func NewAgentMeta(name string) Meta {
	if name == "" {
		return nil
	}
	return Meta{AgentKey: marshal(name)}
}

// maxAgentName bounds a name in AgentKey, in bytes.
const maxAgentName = 64

// FindAgent returns the host's name for the agent that makes a tool call; "" if there is none, or one that is too long.
func FindAgent(m Meta) string {
	var name string
	if json.Unmarshal(m[AgentKey], &name) != nil || len(name) > maxAgentName {
		return ""
	}
	return name
}

// TerminalMeta holds the extension's additions to a terminal, in the _meta of its state and of its entry in the catalogue.
type TerminalMeta struct {
	Former  string    `json:"tether/formerTerminal,omitempty"` // FormerKey; "" = none
	Missing int64     `json:"tether/missingBytes,omitempty"`   // MissingKey; only in the state
	Awaits  Awaiting  `json:"tether/awaits,omitempty"`         // AwaitsKey; only in the catalogue
	Ready   Readiness `json:"tether/ready,omitempty"`          // ReadyKey; only in the catalogue
	// Screen is the value of ScreenKey. Nil: the content is everything that the terminal has printed, at one size, or the output before it is
	// unknown.
	Screen *Screen `json:"tether/screen,omitempty"`
}

// UnmarshalJSON ignores invalid values: other programs may use the same keys.
func (m *TerminalMeta) UnmarshalJSON(raw []byte) error {
	var all Meta
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	*m = TerminalMeta{Former: FindFormer(all), Screen: DecodeScreen(all[ScreenKey])}
	if s := ""; json.Unmarshal(all[AwaitsKey], &s) == nil {
		m.Awaits = Awaits(s)
	}
	if s := ""; json.Unmarshal(all[ReadyKey], &s) == nil {
		m.Ready = ReadinessOf(s)
	}
	if n := int64(0); json.Unmarshal(all[MissingKey], &n) == nil && n > 0 {
		m.Missing = n
	}
	return nil
}

// NewTerminalMeta returns the _meta of a CreateTerminalParams: the URI that the terminal had at the host before ("" = none), and whether
// its child waits for slow readers. It is nil if there is nothing to say.
func NewTerminalMeta(former string, holds bool) Meta {
	m := Meta{}
	if former != "" {
		m[FormerKey] = marshal(former)
	}
	if holds {
		m[HoldsKey] = marshal(true)
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// AddTime adds when something happened to a _meta, under CreatedKey or ExitedKey. A time that is not known, the zero time, is left out.
func AddTime(m Meta, key string, at time.Time) Meta {
	if at.IsZero() {
		return m
	}
	if m == nil {
		m = Meta{}
	}
	m[key] = marshal(at.UnixMilli())
	return m
}

// AddCommands adds how many commands have ended to the _meta of a CreateTerminalParams.
func AddCommands(m Meta, ended int64) Meta {
	if ended <= 0 {
		return m
	}
	if m == nil {
		m = Meta{}
	}
	m[CommandsKey] = marshal(ended)
	return m
}

// FindCommands returns the number that AddCommands stored, 0 if there is none or it is invalid.
func FindCommands(m Meta) int64 {
	var n int64
	if json.Unmarshal(m[CommandsKey], &n) != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}

// FindTime returns the time that AddTime stored under key, or the zero time. The value comes from outside and may be invalid.
func FindTime(m Meta, key string) time.Time {
	var ms int64
	if json.Unmarshal(m[key], &ms) != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// FindHolds reports whether a CreateTerminalParams says that its child waits for slow readers.
func FindHolds(m Meta) bool {
	holds := false
	return json.Unmarshal(m[HoldsKey], &holds) == nil && holds
}

// FindFormer returns the URI in NewTerminalMeta, or "".
func FindFormer(m Meta) string {
	var uri string
	if json.Unmarshal(m[FormerKey], &uri) != nil || CheckURI(uri) != nil {
		return ""
	}
	return uri
}

// AckParams is the params of MethodAck.
type AckParams struct {
	Channel string `json:"channel"`
	Applied int64  `json:"applied"` // bytes: the position after the last one the host has
}

// Validate checks the params.
func (p AckParams) Validate() error {
	if p.Applied < 0 {
		return fmt.Errorf("applied is %d, want 0 or more", p.Applied)
	}
	return CheckURI(p.Channel)
}

// ObserversParams is the params of MethodObservers.
type ObserversParams struct {
	Channel string `json:"channel"`
	Count   int64  `json:"count"` // subscriptions besides the owner's
}

// Validate checks the params.
func (p ObserversParams) Validate() error {
	if p.Count < 0 || p.Count > maxObservers {
		return fmt.Errorf("count is %d, want 0 to %d", p.Count, maxObservers)
	}
	return CheckURI(p.Channel)
}

const maxObservers = 1 << 20 // far more than any host serves

func errNegativeOffset(n int64) error { return fmt.Errorf("%s is %d, want 0 or more", OffsetKey, n) }

// CommandMeta is the _meta of a command's start and of its content part: how its boundaries are known.
type CommandMeta struct {
	// Unverified reports that marks without the terminal's nonce made the command: a shell that writes its own marks, or any program that
	// prints them.
	Unverified bool `json:"tether/unverified,omitempty"`
}

// IsUnverified says whether m marks a command as unverified. It may be called on nil.
func (m *CommandMeta) IsUnverified() bool { return m != nil && m.Unverified }

// NewCommandMeta returns the _meta of a command, nil for a verified one, which needs none.
func NewCommandMeta(verified bool) *CommandMeta {
	if verified {
		return nil
	}
	return &CommandMeta{Unverified: true}
}
