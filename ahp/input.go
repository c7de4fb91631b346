package ahp

import (
	"fmt"
	"slices"
	"time"

	"tether/internal/jsonspan"
)

// MethodState is the notification of a terminal's owner to a host that takes states, see [ClientTerminals]: what the program in the
// foreground does with its keyboard. Params are StateParams. It is sent behind the output before it, and replaces what was said before.
const MethodState = "x-tether/state"

// AwaitsKey is in a terminal's entry in the catalogue while its program waits for somebody to type: InputAwaits or InputSecret.
const AwaitsKey = "tether/awaits"

// The states of input.
const (
	InputAwaits     = "awaiting_input"  // the program reads a line, or a key behind a prompt
	InputSecret     = "awaiting_secret" // it reads a line without echo
	InputRunning    = "running"         // it prints
	InputQuiet      = "quiet"           // it prints nothing and asks nothing
	InputFullScreen = "full_screen"     // it draws on the alternate screen
	InputUnknown    = "unknown"         // this cannot be told
)

var inputs = []string{InputAwaits, InputSecret, InputRunning, InputQuiet, InputFullScreen, InputUnknown}

// StateParams is the params of MethodState. No text of the terminal is in it: the host has what was printed.
type StateParams struct {
	Channel    string `json:"channel"`
	Input      string `json:"input"`                // one of the states of input
	InputSince int64  `json:"inputSince,omitempty"` // when it became so by the owner's clock, in Unix milliseconds; 0: not said
}

// NewState returns the params that say what a program does, and since when.
func NewState(channel, input string, since time.Time) StateParams {
	return StateParams{Channel: channel, Input: input, InputSince: since.UnixMilli()}
}

// Since is when it became so by the owner's clock, the zero time if that is not said.
func (p StateParams) Since() time.Time {
	if p.InputSince == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.InputSince)
}

// Validate tells what is wrong with the params. A state that is not known, as newer programs may have, becomes InputUnknown.
func (p *StateParams) Validate() error {
	if p.InputSince < 0 {
		return fmt.Errorf("inputSince is %d, want 0 or more", p.InputSince)
	}
	if !slices.Contains(inputs, p.Input) {
		p.Input = InputUnknown
	}
	return CheckURI(p.Channel)
}

// Awaiting says in a catalogue whether somebody is to type; it is small, since hosts may list many terminals.
type Awaiting uint8

// The values.
const (
	AwaitsNothing Awaiting = iota
	AwaitsInput            // InputAwaits
	AwaitsSecret           // InputSecret
)

// Awaits is what a state of input says of that.
func Awaits(input string) Awaiting {
	switch input {
	case InputAwaits:
		return AwaitsInput
	case InputSecret:
		return AwaitsSecret
	}
	return AwaitsNothing
}

// String is the state of input, "" for AwaitsNothing.
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

// stateHead is what a message of MethodState begins with, up to its channel.
const stateHead = `{"jsonrpc":"2.0","method":"` + MethodState + `","params":{"channel":`

// AppendState appends a whole message of MethodState to dst.
func AppendState(dst []byte, p StateParams) []byte {
	dst = append(dst, stateHead...)
	dst = jsonspan.AppendQuoteString(dst, p.Channel)
	dst = append(dst, `,"input":`...)
	dst = jsonspan.AppendQuoteString(dst, p.Input)
	return append(fmt.Appendf(dst, `,"inputSince":%d`, p.InputSince), "}}"...)
}
