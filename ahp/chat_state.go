package ahp

import (
	"encoding/json"
	"errors"
)

// ChatSummary is a chat in a session's list. Fields that only a chat's view needs are
// kept as received.
type ChatSummary struct {
	Resource           string          `json:"resource"`
	Title              string          `json:"title"`
	Status             SessionStatus   `json:"status"`
	Activity           *string         `json:"activity,omitempty"`
	ModifiedAt         string          `json:"modifiedAt"` // ISO 8601
	Origin             json.RawMessage `json:"origin,omitempty"`
	ParentChat         string          `json:"parentChat,omitempty"`
	Interactivity      string          `json:"interactivity,omitempty"`
	WorkingDirectories json.RawMessage `json:"workingDirectories,omitempty"`
}

// PartialChatSummary holds the changed members of a ChatSummary; nil = unchanged.
type PartialChatSummary struct {
	Title              *string         `json:"title,omitempty"`
	Status             *SessionStatus  `json:"status,omitempty"`
	Activity           *string         `json:"activity,omitempty"`
	ModifiedAt         *string         `json:"modifiedAt,omitempty"`
	Origin             json.RawMessage `json:"origin,omitempty"`
	ParentChat         *string         `json:"parentChat,omitempty"`
	Interactivity      *string         `json:"interactivity,omitempty"`
	WorkingDirectories json.RawMessage `json:"workingDirectories,omitempty"`
}

// ChatState is the state of a chat's channel.
type ChatState struct {
	ChatSummary
	Turns           []Turn           `json:"turns"` // required: the ended turns
	TurnsNextCursor string           `json:"turnsNextCursor,omitempty"`
	ActiveTurn      *Turn            `json:"activeTurn,omitempty"`
	SteeringMessage *PendingMessage  `json:"steeringMessage,omitempty"`
	QueuedMessages  []PendingMessage `json:"queuedMessages,omitempty"`
	Draft           json.RawMessage  `json:"draft,omitempty"`
	Config          json.RawMessage  `json:"config,omitempty"`
	Changesets      json.RawMessage  `json:"changesets,omitempty"`
	Meta            Meta             `json:"_meta,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s ChatState) MarshalJSON() ([]byte, error) {
	type fields ChatState
	s.Turns = list(s.Turns)
	return marshal(fields(s)), nil
}

// Values of Turn.State.
const (
	TurnComplete  = "complete"
	TurnCancelled = "cancelled"
)

// Turn is one message and the response to it, ended or in progress.
type Turn struct {
	ID            string          `json:"id"`
	StartedAt     string          `json:"startedAt,omitempty"` // ISO 8601
	Duration      *float64        `json:"duration,omitempty"`  // milliseconds; once the turn has ended
	Message       Message         `json:"message"`
	ResponseParts []ResponsePart  `json:"responseParts"` // required, may be empty
	Usage         json.RawMessage `json:"usage,omitempty"`
	State         string          `json:"state,omitempty"` // TurnComplete, …; once the turn has ended
	Error         json.RawMessage `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (t Turn) MarshalJSON() ([]byte, error) {
	type fields Turn
	t.ResponseParts, t.Duration = list(t.ResponseParts), finite(t.Duration)
	return marshal(fields(t)), nil
}

// ToolCall returns t's own tool call with that id, or nil.
func (t *Turn) ToolCall(id string) *ToolCall {
	for i := range t.ResponseParts {
		if c := t.ResponseParts[i].ToolCall; c != nil && c.ToolCallID == id {
			return c
		}
	}
	return nil
}

// PendingMessage is a message that waits for its turn.
type PendingMessage struct {
	ID      string  `json:"id"`
	Message Message `json:"message"`
}

// MessageUser is the MessageOrigin.Kind of a person's message, the only one a client may
// send.
const MessageUser = "user"

// MessageOrigin says who wrote a message.
type MessageOrigin struct {
	Kind string `json:"kind"` // MessageUser or another one
}

// Message begins a turn.
type Message struct {
	Text        string          `json:"text"`
	Origin      MessageOrigin   `json:"origin"`
	Attachments json.RawMessage `json:"attachments,omitempty"`
	Model       json.RawMessage `json:"model,omitempty"`
	Agent       json.RawMessage `json:"agent,omitempty"`
	Meta        Meta            `json:"_meta,omitempty"`
}

// PartToolCall is the Kind of a ResponsePart that this package reads; others are kept as
// they came.
const PartToolCall = "toolCall"

// ResponsePart is a piece of a turn's response.
type ResponsePart struct {
	Kind     string
	ToolCall *ToolCall // PartToolCall

	Raw json.RawMessage // a part of another kind, verbatim
}

type toolPartWire struct {
	Kind     string    `json:"kind"`
	ToolCall *ToolCall `json:"toolCall"`
}

// MarshalJSON implements json.Marshaler.
func (p ResponsePart) MarshalJSON() ([]byte, error) {
	if p.Kind == PartToolCall {
		return marshal(toolPartWire{p.Kind, p.ToolCall}), nil
	}
	return p.Raw, nil
}

// UnmarshalJSON keeps parts of other kinds verbatim.
func (p *ResponsePart) UnmarshalJSON(raw []byte) error {
	var w toolPartWire
	var head struct{ Kind string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	*p = ResponsePart{Kind: head.Kind}
	if head.Kind != PartToolCall {
		p.Raw = append(json.RawMessage(nil), raw...)
		return nil
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	if p.ToolCall = w.ToolCall; p.ToolCall == nil {
		return errors.New("responsePart: toolCall is missing")
	}
	return nil
}

// Text is a text for people: plain, or markdown. The zero value is the plain empty text.
type Text struct {
	Value    string
	Markdown bool
}

// PlainText returns a text without markup.
func PlainText(s string) *Text { return &Text{Value: s} }

type markdownWire struct {
	Markdown string `json:"markdown"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Markdown {
		return marshal(markdownWire{t.Value}), nil
	}
	return marshal(t.Value), nil
}

// UnmarshalJSON reads a string or an object with markdown.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '{' {
		var w markdownWire
		err := json.Unmarshal(raw, &w)
		*t = Text{w.Markdown, true}
		return err
	}
	*t = Text{}
	return json.Unmarshal(raw, &t.Value)
}
