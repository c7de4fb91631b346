package localapi

import (
	"encoding/json"
	"fmt"
	"time"

	"tether/events"
)

// ControlType is the kind of a Control.
type ControlType string

// The controls. Either side ignores unknown ones.
const (
	ControlResize  ControlType = "resize"  // client: Cols, Rows are its size now
	ControlResized ControlType = "resized" // server: Cols, Rows are the terminal's size now
	ControlLagged  ControlType = "lagged"  // server: Lost bytes are missing before the next output
	ControlExit    ControlType = "exit"    // server: Code, Signal; the last message
	ControlDropped ControlType = "dropped" // server: Message says why; the last message
	ControlError   ControlType = "error"   // server: Message describes the client's fault
	ControlLent    ControlType = "lent"    // server: Hosts can watch from now on, perhaps none
)

// Control is a text frame on the WebSocket of an attached terminal.
type Control struct {
	Type    ControlType `json:"type"`
	Cols    uint16      `json:"cols,omitempty"`
	Rows    uint16      `json:"rows,omitempty"`
	Lost    int64       `json:"lost,omitempty"`
	Code    int         `json:"code,omitempty"`
	Signal  string      `json:"signal,omitempty"`
	Message string      `json:"message,omitempty"`
	Hosts   []string    `json:"hosts,omitempty"`
	Keep    bool        `json:"keep,omitempty"` // dropped: the terminal goes on, and the next daemon has it
}

// Encode returns the frame's text.
func (c Control) Encode() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	return data
}

// ParseControl is the inverse of Control.Encode.
func ParseControl(data []byte) (Control, error) {
	var c Control
	if err := json.Unmarshal(data, &c); err != nil {
		return Control{}, fmt.Errorf("control frame: %w", err)
	}
	return c, nil
}

// EventType is the kind of an Event.
type EventType string

// The events of a followed terminal. Clients ignore unknown ones.
const (
	EventOutput  EventType = "output"  // Data; Raw is the offset after it
	EventResized EventType = "resized" // Cols, Rows are the size from here on
	EventLagged  EventType = "lagged"  // Lost bytes are missing before the next output
	EventExit    EventType = "exit"    // Code, Signal, At; the last one
	EventDropped EventType = "dropped" // Message says why; the last one, though the terminal may live
)

// Event is one line of JSON for a terminal's followers.
type Event struct {
	Type    EventType `json:"type"`
	Raw     int64     `json:"raw,omitempty"`    // where to follow from to go on after this
	Data    string    `json:"data,omitempty"`   // text as observers see it: valid UTF-8, with escape sequences
	Masked  int       `json:"masked,omitempty"` // places of Data that an agent is not shown
	Lost    int64     `json:"lost,omitempty"`
	Cols    int       `json:"cols,omitempty"`
	Rows    int       `json:"rows,omitempty"`
	Code    int       `json:"code,omitempty"`
	Signal  string    `json:"signal,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Message string    `json:"message,omitempty"`
}

// EventsRequest asks for events in terminals.
type EventsRequest struct {
	Subscriptions []events.Request `json:"subscriptions"`    // 1 to 64
	Follow        bool             `json:"follow,omitempty"` // continue; else only past events, as far as the log has them
	Raw           bool             `json:"raw,omitempty"`    // do not mask secrets; not for agents that are not shown them
}

// EventLine is one line of the stream. Exactly one of Event, Active, End and Dropped is set, or none: then it reports how far the log was
// examined.
type EventLine struct {
	Sub    int           `json:"sub"` // index of the subscription
	Event  *events.Event `json:"event,omitempty"`
	Active bool          `json:"active,omitempty"` // where it begins, and again if something is missing
	// Truncated, of Active: something after the cursor asked for, or after the last event, is missing.
	Truncated bool   `json:"truncated,omitempty"`
	Cursor    string `json:"cursor,omitempty"` // where to go on
	End       bool   `json:"end,omitempty"`    // nothing more comes of this one; Error says why, if something is wrong
	Error     *Error `json:"error,omitempty"`
	Dropped   bool   `json:"dropped,omitempty"` // the daemon goes; the next one answers
}

// MayRunRequest asks whether a command may run that the caller starts itself.
type MayRunRequest struct {
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"`
}

// MayRun is the answer: it may, or there would be an error.
type MayRun struct {
	SchemaVersion int `json:"schema_version"`
}
