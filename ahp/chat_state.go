package ahp

import "encoding/json"

// ChatSummary is a chat in a session's list.
type ChatSummary struct {
	Resource   string        `json:"resource"`
	Title      string        `json:"title"`
	Status     SessionStatus `json:"status"`
	ModifiedAt string        `json:"modifiedAt"` // ISO 8601
}

// PartialChatSummary holds the changed members of a ChatSummary; nil = unchanged.
type PartialChatSummary struct {
	Status     *SessionStatus `json:"status,omitempty"`
	ModifiedAt *string        `json:"modifiedAt,omitempty"`
}

// ChatState is the state of a chat's channel.
type ChatState struct {
	ChatSummary
	Turns      []Turn `json:"turns"` // required: the ended turns
	ActiveTurn *Turn  `json:"activeTurn,omitempty"`
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
	ID            string         `json:"id"`
	StartedAt     string         `json:"startedAt,omitempty"` // ISO 8601
	Duration      *float64       `json:"duration,omitempty"`  // milliseconds; once the turn has ended
	Message       Message        `json:"message"`
	ResponseParts []ResponsePart `json:"responseParts"`   // required, may be empty
	State         string         `json:"state,omitempty"` // TurnComplete, …; once the turn has ended
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

// MessageOrigin says who wrote a message.
type MessageOrigin struct {
	Kind string `json:"kind"` // "agent", or "user" for a person
}

// Message begins a turn.
type Message struct {
	Text   string        `json:"text"`
	Origin MessageOrigin `json:"origin"`
}

// PartToolCall is the Kind of a tool call in a turn.
const PartToolCall = "toolCall"

// ResponsePart is a piece of a turn's response: here always a tool call.
type ResponsePart struct {
	Kind     string    `json:"kind"`
	ToolCall *ToolCall `json:"toolCall"`
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
