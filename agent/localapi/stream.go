package localapi

import (
	"encoding/json"
	"fmt"

	"tether/events"
	"tether/internal/jsonspan"
)

// ControlType is the kind of a Control.
type ControlType string

// The types of controls, with the side that sends them and the fields that they use.
// Either side ignores unknown types.
const (
	ControlResize  ControlType = "resize"  // client: Cols, Rows are the client's size now
	ControlHangUp  ControlType = "hangup"  // client: its window, in which the terminal's program was started, is gone
	ControlResized ControlType = "resized" // server: Cols, Rows are the terminal's size now
	ControlLagged  ControlType = "lagged"  // server: Lost bytes are missing before the next output
	ControlExit    ControlType = "exit"    // server: Code, Signal; the last message
	ControlDropped ControlType = "dropped" // server: the attachment has ended and Message says why; the last message
	ControlError   ControlType = "error"   // server: Message describes the client's fault
	ControlLent    ControlType = "lent"    // server: Hosts, which may be empty, can watch from now on
	ControlFed     ControlType = "fed"     // server, only to the writer of a standard input: Offset is the next byte that the command lacks
)

// Control is what a stream of a terminal has beside bytes: a text frame on the WebSocket
// of an attached terminal, or a piece of followed output.
type Control struct {
	Type    ControlType `json:"type"`
	Cols    uint16      `json:"cols,omitempty"`
	Rows    uint16      `json:"rows,omitempty"`
	Lost    int64       `json:"lost,omitempty"`
	Redrawn bool        `json:"redrawn,omitempty"` // for ControlLagged: the whole screen follows, for a terminal on which nothing is set
	Code    int         `json:"code,omitempty"`
	Signal  string      `json:"signal,omitempty"`
	Message string      `json:"message,omitempty"`
	Hosts   []string    `json:"hosts,omitempty"`
	Offset  int64       `json:"offset,omitempty"`
	Closed  bool        `json:"closed,omitempty"` // for ControlFed: the command reads no more
	Error   *Error      `json:"error,omitempty"`  // why no more input is taken
	Keep    bool        `json:"keep,omitempty"`   // for ControlDropped: the terminal runs on, and the next daemon will have it
}

// Encode returns the frame's text.
func (c Control) Encode() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return data
}

// ParseControl decodes what Control.Encode has returned.
func ParseControl(data []byte) (Control, error) {
	var c Control
	if err := jsonspan.Unmarshal(data, &c); err != nil {
		return Control{}, fmt.Errorf("control frame: %w", err)
	}
	return c, nil
}

// EventsRequest asks for events in terminals.
type EventsRequest struct {
	Subscriptions []events.Request `json:"subscriptions"`    // 1 to 64
	Follow        bool             `json:"follow,omitempty"` // continue with new events; else only past events, as far as the log goes back
	Raw           bool             `json:"raw,omitempty"`    // do not mask secrets; has no effect for agents that may not see them
}

// EventLine is one line of the stream of events. At most one of Event, Active, End and
// Dropped is set. If none is, Cursor says how far the log was examined.
type EventLine struct {
	Sub    int           `json:"sub"` // index of the subscription
	Event  *events.Event `json:"event,omitempty"`
	Active bool          `json:"active,omitempty"` // the subscription begins at Cursor, or goes on there after missing output
	// Truncated, with Active, says that output is missing after the requested cursor, or
	// after the last event.
	Truncated bool   `json:"truncated,omitempty"`
	Cursor    string `json:"cursor,omitempty"` // cursor from which to continue the subscription
	End       bool   `json:"end,omitempty"`    // the subscription has ended; Error says why, if something is wrong
	Error     *Error `json:"error,omitempty"`
	Dropped   bool   `json:"dropped,omitempty"` // the daemon ends; ask the next daemon
}

// MayRunRequest asks whether the caller may start a command itself.
type MayRunRequest struct {
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"`
	// CommandBytes has, by their index, the arguments that are not UTF-8; CwdBytes is
	// such a Cwd.
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"`
	CwdBytes     []byte         `json:"cwd_bytes,omitempty"`
}

// MayRun is the answer to a MayRunRequest if the command may run. Otherwise the answer is
// an Error.
type MayRun struct {
	SchemaVersion int `json:"schema_version"`
}
