package local

import (
	"encoding/json"
	"fmt"
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

func (c Control) encode() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	return data
}

func parseControl(data []byte) (Control, error) {
	var c Control
	if err := json.Unmarshal(data, &c); err != nil {
		return Control{}, fmt.Errorf("control frame: %w", err)
	}
	return c, nil
}
