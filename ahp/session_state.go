package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// SessionScheme and ChatScheme start the URIs of the sessions and chats that tether
// makes. Those of others may have any scheme.
const (
	SessionScheme = "ahp-session:/"
	ChatScheme    = "ahp-chat:/"
)

// LifecycleReady is the value of SessionState.Lifecycle for sessions that can be used:
// all of tether's.
const LifecycleReady = "ready"

// SessionState is the state of a session's channel.
type SessionState struct {
	Provider           string         `json:"provider"`
	Title              string         `json:"title"`
	Status             SessionStatus  `json:"status"`
	WorkingDirectories []string       `json:"workingDirectories,omitzero"` // URIs
	Lifecycle          string         `json:"lifecycle"`
	ActiveClients      []ActiveClient `json:"activeClients"` // required, may be empty
	Chats              []ChatSummary  `json:"chats"`         // required, may be empty
	DefaultChat        string         `json:"defaultChat,omitempty"`
	InputNeeded        []InputRequest `json:"inputNeeded,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (s SessionState) MarshalJSON() ([]byte, error) {
	type fields SessionState
	s.ActiveClients, s.Chats = list(s.ActiveClients), list(s.Chats)
	return marshal(fields(s)), nil
}

// ActiveClient is a client that provides tools to a session.
type ActiveClient struct {
	ClientID       string           `json:"clientId"`
	DisplayName    string           `json:"displayName,omitempty"`
	Tools          []ToolDefinition `json:"tools"` // required, may be empty
	Customizations json.RawMessage  `json:"customizations,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c ActiveClient) MarshalJSON() ([]byte, error) {
	type fields ActiveClient
	c.Tools = list(c.Tools)
	return marshal(fields(c)), nil
}

// Validate checks the id, bounds number and size of the tools, and refuses two of one
// name.
func (c ActiveClient) Validate() error {
	if err := cmp.Or(CheckClientID(c.ClientID), checkLength("displayName", c.DisplayName, MaxTitle)); err != nil {
		return fmt.Errorf("activeClient: %w", err)
	}
	if len(c.Tools) > MaxTools {
		return fmt.Errorf("activeClient: %d tools, at most %d are allowed", len(c.Tools), MaxTools)
	}
	names := make(map[string]bool, len(c.Tools))
	for _, t := range c.Tools {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("activeClient: tool %.40q: %w", t.Name, err)
		}
		if names[t.Name] {
			return fmt.Errorf("activeClient: tool %q is there twice", t.Name)
		}
		names[t.Name] = true
	}
	return nil
}

// ToolDefinition is a tool that a client or the host offers to a session. Its schemas and
// annotations come from MCP.
type ToolDefinition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"` // an object; none = any input
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	Meta         Meta            `json:"_meta,omitempty"`
}

// Validate checks the name, which is made of letters, digits, "_", "-" and ".", and the
// shape and size of the rest.
func (t ToolDefinition) Validate() error {
	if t.Name == "" || len(t.Name) > MaxToolName {
		return fmt.Errorf("name has %d bytes, want 1 to %d", len(t.Name), MaxToolName)
	}
	for _, c := range []byte(t.Name) {
		if !isToolNameByte(c) {
			return errors.New(`name may hold only letters, digits, "_", "-" and "."`)
		}
	}
	return cmp.Or(checkLength("title", t.Title, MaxTitle), checkLength("description", t.Description, MaxDescription),
		checkObject("inputSchema", t.InputSchema, MaxSchema), checkObject("outputSchema", t.OutputSchema, MaxSchema),
		checkObject("annotations", t.Annotations, MaxSchema))
}

func isToolNameByte(c byte) bool {
	letter := c|0x20 >= 'a' && c|0x20 <= 'z'
	return letter || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// checkObject checks the size of an optional member, and that it is an object.
func checkObject(name string, raw json.RawMessage, most int) error {
	switch {
	case !present(raw):
		return nil
	case len(raw) > most:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", name, len(raw), most)
	case raw[0] != '{':
		return fmt.Errorf("%s is not an object", name)
	}
	return nil
}

// present reports whether an optional member was there; null counts as absent.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// InputToolClientExecution is the kind of an InputRequest that asks a client to execute
// its tool.
const InputToolClientExecution = "toolClientExecution"

// InputRequest is something that a session waits for. The session lists it, so that a
// client need not follow the chats. A request to execute a client's tool is for that
// client alone. The answer goes to the chat. Of requests of other kinds, only ID, Kind
// and Chat are read.
type InputRequest struct {
	ID       string    `json:"id"` // of the request, in the session
	Kind     string    `json:"kind"`
	Chat     string    `json:"chat"`               // where the answer goes
	TurnID   string    `json:"turnId"`             // of the tool call
	ClientID string    `json:"clientId,omitempty"` // the client that must execute it
	ToolCall *ToolCall `json:"toolCall,omitempty"` // running
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *InputRequest) UnmarshalJSON(raw []byte) error {
	var head struct{ ID, Kind, Chat string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	*r = InputRequest{ID: head.ID, Kind: head.Kind, Chat: head.Chat}
	if r.Kind != InputToolClientExecution {
		return nil
	}
	type fields InputRequest
	return json.Unmarshal(raw, (*fields)(r))
}
