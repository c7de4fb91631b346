package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// TerminalData is output that a host sends to subscribers.
type TerminalData struct {
	Data   string
	Screen *Screen // the whole screen after Data, if output before it was skipped; nil: Data continues the content
}

// TerminalOutput is output that the owner of a client-executed terminal sends to the
// host. It changes the state as TerminalData does.
type TerminalOutput struct {
	Data   string
	Offset *int64 // of the first byte in the terminal's UTF-8 text, in bytes; nil without the resume extension

	// Screen is the terminal's screen after Data. The owner sends it to a host that lost
	// or never had earlier output, if the host's marker says that it takes screens. As
	// JSON it has at most MaxOutputScreen bytes. Nil: Data continues the content.
	Screen *Screen
}

// TerminalInput is text for the pty. It changes no state; hosts broadcast it, which is
// why tether never sends it.
type TerminalInput struct {
	Data string `json:"data"`
}

// TerminalResized sets the size.
type TerminalResized struct {
	Cols int64 `json:"cols"`
	Rows int64 `json:"rows"`
}

// TerminalClaimed replaces the claim.
type TerminalClaimed struct {
	Claim Claim `json:"claim"`
}

// TerminalTitleChanged sets the title.
type TerminalTitleChanged struct {
	Title string `json:"title"`
}

// TerminalCwdChanged sets the working directory, a URI or a plain path.
type TerminalCwdChanged struct {
	Cwd string `json:"cwd"`
}

// TerminalExited says that the process ended. A nil ExitCode means that the code is
// unknown.
type TerminalExited struct {
	ExitCode *int64 `json:"exitCode,omitempty"`
	Meta     Meta   `json:"_meta,omitempty"` // when it ended, see ExitedKey
}

// TerminalCleared empties the content and keeps everything else.
type TerminalCleared struct{}

// TerminalCommandDetectionAvailable says that shell integration was seen.
type TerminalCommandDetectionAvailable struct{}

// TerminalCommandExecuted begins a command part.
type TerminalCommandExecuted struct {
	CommandID   string `json:"commandId"` // unique in the terminal
	CommandLine string `json:"commandLine"`
	Timestamp   int64  `json:"timestamp"` // Unix milliseconds

	Meta *CommandMeta `json:"_meta,omitempty"`
}

// TerminalCommandFinished completes the command part with that id.
type TerminalCommandFinished struct {
	CommandID  string   `json:"commandId"`
	ExitCode   *int64   `json:"exitCode,omitempty"`
	DurationMs *float64 `json:"durationMs,omitempty"` // milliseconds
}

// Type implements Action.
func (TerminalData) Type() string { return ActionTerminalData }

// Type implements Action.
func (TerminalOutput) Type() string { return ActionTerminalOutput }

// Type implements Action.
func (TerminalInput) Type() string { return ActionTerminalInput }

// Type implements Action.
func (TerminalResized) Type() string { return ActionTerminalResized }

// Type implements Action.
func (TerminalClaimed) Type() string { return ActionTerminalClaimed }

// Type implements Action.
func (TerminalTitleChanged) Type() string { return ActionTerminalTitleChanged }

// Type implements Action.
func (TerminalCwdChanged) Type() string { return ActionTerminalCwdChanged }

// Type implements Action.
func (TerminalExited) Type() string { return ActionTerminalExited }

// Type implements Action.
func (TerminalCleared) Type() string { return ActionTerminalCleared }

// Type implements Action.
func (TerminalCommandDetectionAvailable) Type() string {
	return ActionTerminalCommandDetectionAvailable
}

// Type implements Action.
func (TerminalCommandExecuted) Type() string { return ActionTerminalCommandExecuted }

// Type implements Action.
func (TerminalCommandFinished) Type() string { return ActionTerminalCommandFinished }

// Validate bounds the data.
func (a TerminalData) Validate() error { return checkLength("data", a.Data, MaxData) }

// Validate bounds the data and the offset.
func (a TerminalOutput) Validate() error {
	if a.Offset != nil && *a.Offset < 0 {
		return errNegativeOffset(*a.Offset)
	}
	return checkLength("data", a.Data, MaxData)
}

// Validate bounds the data.
func (a TerminalInput) Validate() error { return checkLength("data", a.Data, MaxData) }

// Validate checks that columns and rows are 1 to MaxSize.
func (a TerminalResized) Validate() error {
	return cmp.Or(checkSize("cols", a.Cols), checkSize("rows", a.Rows))
}

// Validate checks the claim.
func (a TerminalClaimed) Validate() error { return a.Claim.Validate() }

// Validate bounds the title.
func (a TerminalTitleChanged) Validate() error { return checkLength("title", a.Title, MaxTitle) }

// Validate bounds the directory.
func (a TerminalCwdChanged) Validate() error { return checkLength("cwd", a.Cwd, MaxCwd) }

// Validate checks the id and bounds the line.
func (a TerminalCommandExecuted) Validate() error {
	return cmp.Or(checkCommandID(a.CommandID), checkLength("commandLine", a.CommandLine, MaxCommandLine))
}

// Validate checks the id and the duration.
func (a TerminalCommandFinished) Validate() error {
	if a.DurationMs != nil && (*a.DurationMs < 0 || finite(a.DurationMs) == nil) {
		return fmt.Errorf("durationMs is %v, want 0 or more", *a.DurationMs)
	}
	return checkCommandID(a.CommandID)
}

func checkCommandID(id string) error {
	if id == "" {
		return errors.New("commandId is empty")
	}
	return checkLength("commandId", id, MaxCommandID)
}

func (a TerminalCommandFinished) forVersion(string) any {
	a.DurationMs = finite(a.DurationMs)
	return a
}

// outputWire is the form of TerminalData and TerminalOutput on the wire.
type outputWire struct {
	Data string      `json:"data"`
	Meta *outputMeta `json:"_meta,omitempty"`
}

type outputMeta struct {
	Offset *int64          `json:"tether/offset,omitempty"` // OffsetKey
	Screen json.RawMessage `json:"tether/screen,omitempty"` // ScreenKey
}

func (a TerminalData) forVersion(string) any { return newOutputWire(a.Data, nil, a.Screen) }

func (a TerminalOutput) forVersion(string) any { return newOutputWire(a.Data, a.Offset, a.Screen) }

func newOutputWire(data string, offset *int64, screen *Screen) outputWire {
	w := outputWire{Data: data}
	if offset != nil || screen != nil {
		w.Meta = &outputMeta{Offset: offset}
	}
	if screen != nil {
		w.Meta.Screen = marshal(screen)
	}
	return w
}

func (w *outputWire) decode(raw []byte) (offset *int64, screen *Screen, err error) {
	if err := json.Unmarshal(raw, w); err != nil || w.Meta == nil {
		return nil, nil, err
	}
	return w.Meta.Offset, DecodeScreen(w.Meta.Screen), nil
}

// UnmarshalJSON takes the screen out of _meta.
func (a *TerminalData) UnmarshalJSON(raw []byte) error {
	var w outputWire
	_, screen, err := w.decode(raw)
	*a = TerminalData{Data: w.Data, Screen: screen}
	return err
}

// UnmarshalJSON takes the offset and the screen out of _meta.
func (a *TerminalOutput) UnmarshalJSON(raw []byte) error {
	var w outputWire
	offset, screen, err := w.decode(raw)
	*a = TerminalOutput{Data: w.Data, Offset: offset, Screen: screen}
	return err
}
