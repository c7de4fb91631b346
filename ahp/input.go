package ahp

import (
	"fmt"
	"slices"
	"time"

	"tether/internal/jsonspan"
	"tether/vocab"
)

// MethodState is an owner's notification to a host whose marker has States, see
// [ClientTerminals]. It says how the program in the foreground uses its keyboard, whether
// a declared terminal is ready, and which checkout the terminal's directory shows. Params
// are StateParams. The owner sends it after all earlier output. It replaces the former
// state.
const MethodState = "x-tether/state"

// AwaitsKey is in a terminal's entry in the catalogue while its program waits for input:
// InputAwaits or InputSecret.
const AwaitsKey = "tether/awaits"

// The states of input.
const (
	InputAwaits     = "awaiting_input"  // the program reads a line, or a key after a prompt
	InputSecret     = "awaiting_secret" // it reads a line without echo
	InputRunning    = "running"         // it prints
	InputQuiet      = "quiet"           // it neither prints nor asks for anything
	InputFullScreen = "full_screen"     // it draws on the alternate screen
	InputUnknown    = "unknown"         // the owner cannot tell
)

var inputs = []string{InputAwaits, InputSecret, InputRunning, InputQuiet, InputFullScreen, InputUnknown}

// ReadyKey is in a terminal's entry in the catalogue if the owner has said when it is
// ready: one of the states of readiness.
const ReadyKey = "tether/ready"

// The states of readiness.
const (
	ReadyStarting = "starting" // the condition does not hold yet
	ReadyYes      = "ready"    // it held once
	ReadyFailed   = "failed"   // it did not hold in time, or the program ended before
	ReadyStopped  = "stopped"  // it was ready, and its program has ended
)

// readies has the states of readiness; a Readiness is an index.
var readies = []string{"", ReadyStarting, ReadyYes, ReadyFailed, ReadyStopped}

// maxReadyWhy bounds StateParams.ReadyWhy, in bytes.
const maxReadyWhy = 256

// StateParams is the params of MethodState. It holds no output of the terminal, which the
// host has already.
type StateParams struct {
	Channel    string `json:"channel"`
	Input      string `json:"input"`                // one of the states of input
	InputSince int64  `json:"inputSince,omitempty"` // when Input became so by the owner's clock, in Unix milliseconds; 0: unknown

	Ready      string `json:"ready,omitempty"`      // a state of readiness; "": there is no condition
	ReadySince int64  `json:"readySince,omitempty"` // when Ready became so, as InputSince
	ReadyWhy   string `json:"readyWhy,omitempty"`   // which condition holds, or why none holds; secrets are masked

	// Checkout is the git work tree of the terminal's directory; the zero value for none.
	Checkout vocab.Checkout `json:"checkout,omitzero"`
}

// NewState returns params which say that the program has been in that state of input
// since that time.
func NewState(channel, input string, since time.Time) StateParams {
	return StateParams{Channel: channel, Input: input, InputSince: since.UnixMilli()}
}

// Since returns when Input became so by the owner's clock, the zero time if that is
// unknown.
func (p StateParams) Since() time.Time {
	if p.InputSince == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.InputSince)
}

// SetReady sets the terminal's readiness, since when, and why.
func (p *StateParams) SetReady(state string, since time.Time, why string) {
	p.Ready, p.ReadySince, p.ReadyWhy = state, since.UnixMilli(), why
}

// BecameReady returns when Ready became so by the owner's clock, the zero time if that is
// unknown.
func (p StateParams) BecameReady() time.Time {
	if p.ReadySince == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.ReadySince)
}

// Validate checks the params. An unknown state, which a newer owner may send, is no
// error: it becomes InputUnknown, or an empty Ready.
func (p *StateParams) Validate() error {
	if p.InputSince < 0 || p.ReadySince < 0 {
		return fmt.Errorf("inputSince is %d and readySince is %d, want 0 or more", p.InputSince, p.ReadySince)
	}
	if err := checkLength("readyWhy", p.ReadyWhy, maxReadyWhy); err != nil {
		return err
	}
	if !validCheckout(p.Checkout) {
		p.Checkout = vocab.Checkout{}
	}
	if ReadinessOf(p.Ready) == 0 {
		p.Ready = ""
	}
	if !slices.Contains(inputs, p.Input) {
		p.Input = InputUnknown
	}
	return CheckURI(p.Channel)
}

// Awaiting says in a catalogue whether the program waits for input. It is small, since
// hosts may list many terminals.
type Awaiting uint8

// Values of Awaiting.
const (
	AwaitsNothing Awaiting = iota
	AwaitsInput            // InputAwaits
	AwaitsSecret           // InputSecret
)

// Awaits returns the Awaiting of a state of input.
func Awaits(input string) Awaiting {
	switch input {
	case InputAwaits:
		return AwaitsInput
	case InputSecret:
		return AwaitsSecret
	}
	return AwaitsNothing
}

// String returns the state of input, "" for AwaitsNothing.
func (a Awaiting) String() string {
	switch a {
	case AwaitsInput:
		return InputAwaits
	case AwaitsSecret:
		return InputSecret
	}
	return ""
}

// MarshalText implements encoding.TextMarshaler.
func (a Awaiting) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Readiness is a state of readiness in a catalogue, 0 for none. It is small, as Awaiting
// is.
type Readiness uint8

// ReadinessOf returns the Readiness of a state such as ReadyYes, 0 for any other text.
func ReadinessOf(ready string) Readiness { return Readiness(max(slices.Index(readies, ready), 0)) }

// String returns the state, "" for none.
func (r Readiness) String() string {
	if int(r) >= len(readies) {
		return ""
	}
	return readies[r]
}

// MarshalText implements encoding.TextMarshaler.
func (r Readiness) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// stateHead is the beginning of a message of MethodState, up to its channel.
const stateHead = `{"jsonrpc":"2.0","method":"` + MethodState + `","params":{"channel":`

// AppendState appends a whole message of MethodState to dst.
func AppendState(dst []byte, p StateParams) []byte {
	dst = append(dst, stateHead...)
	dst = jsonspan.AppendQuoteString(dst, p.Channel)
	dst = append(dst, `,"input":`...)
	dst = jsonspan.AppendQuoteString(dst, p.Input)
	dst = fmt.Appendf(dst, `,"inputSince":%d`, p.InputSince)
	if p.Ready != "" {
		dst = fmt.Appendf(dst, `,"ready":%q,"readySince":%d,"readyWhy":`, p.Ready, p.ReadySince)
		dst = jsonspan.AppendQuoteString(dst, p.ReadyWhy)
	}
	if p.Checkout != (vocab.Checkout{}) {
		dst = append(append(dst, `,"checkout":`...), marshal(p.Checkout)...)
	}
	return append(dst, "}}"...)
}
