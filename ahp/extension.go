package ahp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/vocab"
)

// ExtensionVersion is the version of the client-terminals extension that this package
// speaks.
const ExtensionVersion = 1

// Bounds of ClientTerminals.MaxDataBytes, bytes of text in one output action.
const (
	DefaultMaxDataBytes = 64 << 10
	MinMaxDataBytes     = 1 << 10
)

// ClientTerminals is a host's marker: the statement that the host takes client-executed
// terminals. Every field except Version goes beyond the proposal.
type ClientTerminals struct {
	Version        int64 `json:"version"`                // 0 = the bare proposal
	GraceMs        int64 `json:"graceMs,omitempty"`      // milliseconds that a terminal outlives its owner's connection
	Resume         bool  `json:"resume,omitempty"`       // offsets are read and acknowledged
	CommandActions bool  `json:"commandActions"`         // the owner may dispatch command actions
	MaxDataBytes   int64 `json:"maxDataBytes,omitempty"` // bytes of text in one output action
	Screens        bool  `json:"screens,omitempty"`      // the owner may send the screen, see TerminalOutput
	States         bool  `json:"states,omitempty"`       // the owner may report how the program uses its keyboard, see MethodState
	HeartbeatMs    int64 `json:"heartbeatMs,omitempty"`  // milliseconds between the owner's checks that the host still answers; 0 = the owner decides
	MayLend        *bool `json:"mayLend,omitempty"`      // whether this connection may create client-executed terminals; nil = not said

	// Audiences says that the host shows a lent terminal only to its audience. Nil:
	// everybody at the host sees it.
	Audiences *Audiences `json:"audiences,omitempty"`
	// Shares says that the host takes shares, see MethodShare.
	Shares bool `json:"shares,omitempty"`
	// ParkMs is the longest time, in milliseconds, for which the host keeps terminals for
	// its own doors while their machine is away and their owner allows it; see Park. 0:
	// it keeps none.
	ParkMs int64 `json:"parkMs,omitempty"`
	// Runs says that the host sends MethodRuns to machines that answer it.
	Runs bool `json:"runs,omitempty"`
	// Ports says that the host sends requests for lent ports to machines that take them,
	// see PortsTerminal.
	Ports bool `json:"ports,omitempty"`
}

// Forbids reports whether the host says that this connection may not create
// client-executed terminals.
func (t ClientTerminals) Forbids() bool { return t.MayLend != nil && !*t.MayLend }

// NewClientTerminals returns the marker of a host that takes offsets and command actions,
// with this grace time in milliseconds.
func NewClientTerminals(graceMs int64) ClientTerminals {
	return ClientTerminals{Version: ExtensionVersion, GraceMs: graceMs, Resume: true, CommandActions: true,
		MaxDataBytes: DefaultMaxDataBytes}
}

// Meta returns the marker as the _meta of an InitializeResult.
func (t ClientTerminals) Meta() Meta { return Meta{MarkerKey: marshal(t)} }

// FindClientTerminals returns the host's marker: the typed clientTerminals member if it
// can be read, else the one in _meta. It returns false if there is no marker that is an
// object and has our version. A typed member may lack a version, which means the bare
// proposal. Numbers out of range are replaced by the nearest one in range.
func FindClientTerminals(r InitializeResult) (ClientTerminals, bool) {
	if t, ok := readMarker(r.ClientTerminals); ok {
		return t, true
	}
	t, ok := readMarker(r.Meta[MarkerKey])
	return t, ok && t.Version == ExtensionVersion
}

// readMarker decodes a marker. One without a version, as a typed member might be, means
// the bare proposal.
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
		t.HeartbeatMs = min(max(t.HeartbeatMs, MinHeartbeatMs), MaxHeartbeatMs)
	}
	t.MaxDataBytes = cmp.Or(t.MaxDataBytes, DefaultMaxDataBytes)
	t.MaxDataBytes = min(max(t.MaxDataBytes, MinMaxDataBytes), MaxData)
	return t, true
}

// ClientMarker is a client's marker in InitializeParams._meta: the extension versions it
// speaks.
type ClientMarker struct {
	Versions []int64 `json:"versions"`
	Runs     bool    `json:"runs,omitempty"`  // the client answers MethodRuns
	Ports    bool    `json:"ports,omitempty"` // the client takes requests for lent ports
}

// Meta returns the marker, with the version that this package speaks, as the _meta of an
// InitializeParams.
func (c ClientMarker) Meta() Meta {
	c.Versions = []int64{ExtensionVersion}
	return Meta{MarkerKey: marshal(c)}
}

// NewClientMeta returns the _meta of an InitializeParams that offers the extension.
func NewClientMeta() Meta { return ClientMarker{}.Meta() }

// FindClientMarker returns the marker in a client's _meta. It returns false if there is
// none that offers the version that this package speaks.
func FindClientMarker(m Meta) (c ClientMarker, ok bool) {
	if json.Unmarshal(m[MarkerKey], &c) != nil || !slices.Contains(c.Versions, ExtensionVersion) {
		return ClientMarker{}, false
	}
	return c, true
}

// OffersExtension reports whether a client's _meta offers the version that this package
// speaks.
func OffersExtension(m Meta) bool {
	_, ok := FindClientMarker(m)
	return ok
}

// NewAgentMeta returns the _meta of a tool call made by the agent of that name, nil for
// an empty name.
func NewAgentMeta(name string) Meta {
	if name == "" {
		return nil
	}
	return Meta{AgentKey: marshal(name)}
}

// maxAgentName bounds a name in AgentKey, in bytes.
const maxAgentName = 64

// FindAgent returns the host's name for the agent that makes a tool call, "" if it is
// missing or too long.
func FindAgent(m Meta) string {
	var name string
	if json.Unmarshal(m[AgentKey], &name) != nil || len(name) > maxAgentName {
		return ""
	}
	return name
}

// TerminalMeta holds the extension's additions to a terminal, in the _meta of its state
// and of its entry in the catalogue.
type TerminalMeta struct {
	Former  string    `json:"tether/formerTerminal,omitempty"`  // FormerKey; "" = none
	Missing int64     `json:"tether/missingBytes,omitempty"`    // MissingKey; only in the state
	Awaits  Awaiting  `json:"tether/awaits,omitempty"`          // AwaitsKey; only in the catalogue
	Ready   Readiness `json:"tether/ready,omitempty"`           // ReadyKey; only in the catalogue
	Adopted string    `json:"tether/adopted,omitempty"`         // AdoptedKey; "" = none
	Picture bool      `json:"tether/repeatedPicture,omitempty"` // PictureKey
	// Ports are open to those who may watch the terminal; see LentPort.
	Ports []LentPort `json:"tether/ports,omitempty"` // PortsKey
	// Screen is the value of ScreenKey. Nil: the content is everything that the terminal
	// has printed, at one size, or the output before it is unknown.
	Screen *Screen `json:"tether/screen,omitempty"`
}

// UnmarshalJSON ignores invalid values: other programs may use the same keys.
func (m *TerminalMeta) UnmarshalJSON(raw []byte) error {
	var all Meta
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	*m = TerminalMeta{Former: FindFormer(all), Screen: DecodeScreen(all[ScreenKey]), Ports: FindPorts(all)}
	m.Adopted, m.Picture = FindAdopted(all)
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

// NewTerminalMeta returns the _meta of a CreateTerminalParams: the URI that the terminal
// had at the host before ("" = none), and whether its child waits for slow readers. It is
// nil if there is nothing to say.
func NewTerminalMeta(former string, holds bool) Meta {
	var m Meta
	if former != "" {
		m = m.with(FormerKey, former)
	}
	if holds {
		m = m.with(HoldsKey, true)
	}
	return m
}

// AddAdopted stores in the _meta of a CreateTerminalParams the program whose pane a
// terminal reads, and whether as a repeated picture, and returns the _meta.
func AddAdopted(m Meta, program string, picture bool) Meta {
	m = m.with(AdoptedKey, program)
	if picture {
		m = m.with(PictureKey, true)
	}
	return m
}

// maxAdopted bounds the name of a program, in bytes.
const maxAdopted = 32

// FindAdopted returns what AddAdopted stored; "" if there is nothing or it is invalid.
func FindAdopted(m Meta) (program string, picture bool) {
	if json.Unmarshal(m[AdoptedKey], &program) != nil || len(program) > maxAdopted || strings.Trim(program, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", false
	}
	return program, program != "" && json.Unmarshal(m[PictureKey], &picture) == nil && picture
}

// AddTime stores a time in a _meta, under CreatedKey or ExitedKey, and returns the _meta.
// The zero time, which means unknown, is left out.
func AddTime(m Meta, key string, at time.Time) Meta {
	if at.IsZero() {
		return m
	}
	return m.with(key, at.UnixMilli())
}

// AddCommands stores the number of ended commands in the _meta of a CreateTerminalParams,
// and returns the _meta. 0 is left out.
func AddCommands(m Meta, ended int64) Meta {
	if ended <= 0 {
		return m
	}
	return m.with(CommandsKey, ended)
}

// FindCommands returns the number that AddCommands stored, 0 if there is none or it is
// invalid.
func FindCommands(m Meta) int64 {
	var n int64
	if json.Unmarshal(m[CommandsKey], &n) != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}

// Bounds of a checkout, in bytes.
const (
	maxCheckoutPath   = 4 << 10
	maxCheckoutBranch = 255
	maxCheckoutCommit = 64
)

// AddCheckout stores the git work tree of a terminal's directory in the _meta of a
// CreateTerminalParams, and returns the _meta. The zero value is left out.
func AddCheckout(m Meta, c vocab.Checkout) Meta {
	if c == (vocab.Checkout{}) {
		return m
	}
	if m == nil {
		m = Meta{}
	}
	m[CheckoutKey] = marshal(c)
	return m
}

// FindCheckout returns the work tree that AddCheckout stored, the zero value if there is
// none or it is invalid.
func FindCheckout(m Meta) vocab.Checkout {
	var c vocab.Checkout
	if json.Unmarshal(m[CheckoutKey], &c) != nil || !validCheckout(c) {
		return vocab.Checkout{}
	}
	return c
}

func validCheckout(c vocab.Checkout) bool {
	return len(c.Repository) <= maxCheckoutPath && len(c.Worktree) <= maxCheckoutPath && len(c.Branch) <= maxCheckoutBranch &&
		len(c.Commit) <= maxCheckoutCommit && strings.Trim(c.Commit, "0123456789abcdef") == "" && c.Changes == ""
}

// FindTime returns the time that AddTime stored under key, or the zero time. The value
// comes from outside and may be invalid.
func FindTime(m Meta, key string) time.Time {
	var ms int64
	if json.Unmarshal(m[key], &ms) != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// FindHolds reports whether a CreateTerminalParams says that its child waits for slow
// readers.
func FindHolds(m Meta) bool {
	holds := false
	return json.Unmarshal(m[HoldsKey], &holds) == nil && holds
}

// FindFormer returns the former URI that NewTerminalMeta stored, "" if it is missing or
// invalid.
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
	Applied int64  `json:"applied"` // text offset after the last byte that the host has, in bytes
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

// CommandMeta is the _meta of TerminalCommandExecuted and of a command's content part. It
// says how far the command's boundaries can be trusted.
type CommandMeta struct {
	// Unverified says that the command's marks lacked the terminal's nonce: a shell with
	// marks of its own, or any other program, printed them.
	Unverified bool `json:"tether/unverified,omitempty"`
}

// IsUnverified reports whether m marks a command as unverified. It may be called on nil.
func (m *CommandMeta) IsUnverified() bool { return m != nil && m.Unverified }

// NewCommandMeta returns the _meta of a command, nil for a verified one, which needs
// none.
func NewCommandMeta(verified bool) *CommandMeta {
	if verified {
		return nil
	}
	return &CommandMeta{Unverified: true}
}
