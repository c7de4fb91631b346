package ahp

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Values of ToolCall.Status:
//
//	streaming → (ready) running → completed
//	       ↘ cancelled ↙ (its turn has ended)
const (
	ToolStreaming = "streaming"
	ToolRunning   = "running"
	ToolCompleted = "completed"
	ToolCancelled = "cancelled"
)

// ConfirmedNotNeeded is the value of ToolCall.Confirmed. It is advice: a client that runs
// a tool asks its own person.
const ConfirmedNotNeeded = "not-needed"

// Values of ToolCall.Reason.
const (
	ReasonDenied  = "denied"
	ReasonSkipped = "skipped"
)

// ContributorClient is the Contributor.Kind of a client's tool.
const ContributorClient = "client"

// Contributor says whose tool is called.
type Contributor struct {
	Kind     string `json:"kind"`
	ClientID string `json:"clientId,omitempty"` // ContributorClient
}

// ToolCall is a call of a tool in a turn. Which fields count depends on Status.
type ToolCall struct {
	Status            string          `json:"status"`
	ToolCallID        string          `json:"toolCallId"` // unique in the turn
	ToolName          string          `json:"toolName"`
	DisplayName       string          `json:"displayName"`
	Contributor       *Contributor    `json:"contributor,omitempty"` // nil = the host's tool
	Meta              Meta            `json:"_meta,omitempty"`
	InvocationMessage *Text           `json:"invocationMessage,omitempty"`
	ToolInput         json.RawMessage `json:"toolInput,omitempty"` // see Arguments
	Confirmed         string          `json:"confirmed,omitempty"` // from ToolRunning on

	// ToolCompleted; Content of ToolRunning, too.
	Success           *bool           `json:"success,omitempty"`
	PastTenseMessage  *Text           `json:"pastTenseMessage,omitempty"`
	Content           []ToolContent   `json:"content,omitzero"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	Error             *ToolError      `json:"error,omitempty"`

	Reason string `json:"reason,omitempty"` // ToolCancelled
}

// CalledAt reports whether the called tool is that client's.
func (c ToolCall) CalledAt(clientID string) bool {
	return clientID != "" && c.Contributor != nil && c.Contributor.Kind == ContributorClient && c.Contributor.ClientID == clientID
}

// Arguments returns the input as a JSON object. On the wire, the input is a string that
// holds the object. A missing or empty input is the empty object. It returns an error if
// the input is a reference to content elsewhere, or holds no object.
func (c ToolCall) Arguments() (json.RawMessage, error) {
	var text string
	switch {
	case !present(c.ToolInput):
		return json.RawMessage("{}"), nil
	case json.Unmarshal(c.ToolInput, &text) != nil:
		return nil, errors.New("toolInput is not a string: references are not followed")
	case text == "":
		return json.RawMessage("{}"), nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, errors.New("toolInput does not hold a JSON object")
	}
	return json.RawMessage(text), nil
}

// NewToolInput returns the value of ToolCall.ToolInput for arguments, a JSON object.
func NewToolInput(arguments json.RawMessage) json.RawMessage { return marshal(string(arguments)) }

// ToolError says why a tool call failed.
type ToolError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// ToolResult is the result of a tool.
type ToolResult struct {
	Success           bool            `json:"success"`
	PastTenseMessage  Text            `json:"pastTenseMessage"`
	Content           []ToolContent   `json:"content,omitzero"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"` // an object
	Error             *ToolError      `json:"error,omitempty"`
}

// Validate bounds the number of blocks, and checks the terminals among them and the
// structured content. The size of texts is bounded only by the limit for a message.
func (r ToolResult) Validate() error {
	if r.Error != nil {
		if err := checkLength("error.code", r.Error.Code, MaxID); err != nil {
			return fmt.Errorf("result: %w", err)
		}
	}
	if err := checkObject("structuredContent", r.StructuredContent, MaxData); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return checkContents(r.Content)
}

func checkContents(contents []ToolContent) error {
	if len(contents) > MaxToolContents {
		return fmt.Errorf("content has %d blocks, at most %d are allowed", len(contents), MaxToolContents)
	}
	for _, c := range contents {
		if c.Terminal != nil {
			if err := checkURI("content: resource", c.Terminal.Resource); err != nil {
				return err
			}
			if err := checkLength("content: title", c.Terminal.Title, MaxTitle); err != nil {
				return err
			}
		}
	}
	return nil
}

// Types of a ToolContent that this package reads; others are kept as they came.
const (
	ContentText     = "text"
	ContentTerminal = "terminal"
)

// ToolContent is a block of a tool's result: a text, a terminal that can be subscribed
// to, or something else.
type ToolContent struct {
	Type     string
	Text     string         // ContentText
	Terminal *TerminalBlock // ContentTerminal

	Raw json.RawMessage // a block of another type, verbatim
}

// TextContent returns a block of text.
func TextContent(s string) ToolContent { return ToolContent{Type: ContentText, Text: s} }

// TerminalContent returns a block that shows a terminal.
func TerminalContent(resource, title string, isPty bool) ToolContent {
	return ToolContent{Type: ContentTerminal,
		Terminal: &TerminalBlock{Type: ContentTerminal, Resource: resource, Title: title, IsPty: &isPty}}
}

type textContentWire struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MarshalJSON implements json.Marshaler.
func (c ToolContent) MarshalJSON() ([]byte, error) {
	switch {
	case c.Type == ContentTerminal && c.Terminal != nil:
		return marshal(c.Terminal), nil
	case c.Type != ContentText && c.Raw != nil:
		return c.Raw, nil
	}
	return marshal(textContentWire{c.Type, c.Text}), nil
}

// UnmarshalJSON keeps blocks of other types verbatim.
func (c *ToolContent) UnmarshalJSON(raw []byte) error {
	var head struct{ Type string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	*c = ToolContent{Type: head.Type}
	switch head.Type {
	case ContentText:
		var w textContentWire
		err := json.Unmarshal(raw, &w)
		c.Text = w.Text
		return err
	case ContentTerminal:
		c.Terminal = new(TerminalBlock)
		return json.Unmarshal(raw, c.Terminal)
	}
	c.Raw = append(json.RawMessage(nil), raw...)
	return nil
}
