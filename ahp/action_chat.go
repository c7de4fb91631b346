package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// ChatTurnStarted begins a turn. A client may dispatch it if the message's origin is
// MessageUser.
type ChatTurnStarted struct {
	TurnID          string  `json:"turnId"`
	StartedAt       string  `json:"startedAt,omitempty"` // ISO 8601
	Message         Message `json:"message"`
	QueuedMessageID string  `json:"queuedMessageId,omitempty"`
	Meta            Meta    `json:"_meta,omitempty"`
}

// ChatTurnComplete ends a turn.
type ChatTurnComplete struct {
	TurnID   string  `json:"turnId"`
	Duration float64 `json:"duration"` // milliseconds
	Meta     Meta    `json:"_meta,omitempty"`
}

// ChatTurnCancelled ends a turn before it is complete. A client may dispatch it.
type ChatTurnCancelled struct {
	TurnID   string  `json:"turnId"`
	Duration float64 `json:"duration"` // milliseconds
	Meta     Meta    `json:"_meta,omitempty"`
}

// ToolCallRef says which tool call an action is about.
type ToolCallRef struct {
	TurnID     string `json:"turnId"`
	ToolCallID string `json:"toolCallId"`
	Meta       Meta   `json:"_meta,omitempty"` // replaces the call's; nil keeps it
}

// ChatToolCallStart begins a tool call; its input is not known yet.
type ChatToolCallStart struct {
	ToolCallRef
	ToolName    string       `json:"toolName"`
	DisplayName string       `json:"displayName"`
	Intention   *string      `json:"intention,omitempty"`
	Contributor *Contributor `json:"contributor,omitempty"` // nil = the host's tool
}

// ChatToolCallReady says that the input is complete. With Confirmed, the call runs.
// Without it, the call waits for a confirmation, even if it was already running.
type ChatToolCallReady struct {
	ToolCallRef
	Contributor       *Contributor    `json:"contributor,omitempty"` // the same client as in ChatToolCallStart, if any; ReduceChat ignores it
	Intention         *string         `json:"intention,omitempty"`
	InvocationMessage Text            `json:"invocationMessage"`
	ToolInput         json.RawMessage `json:"toolInput,omitempty"` // see ToolCall.Arguments
	ConfirmationTitle *Text           `json:"confirmationTitle,omitempty"`
	RiskAssessment    json.RawMessage `json:"riskAssessment,omitempty"`
	Edits             json.RawMessage `json:"edits,omitempty"`
	Editable          *bool           `json:"editable,omitempty"`
	Confirmed         string          `json:"confirmed,omitempty"` // ConfirmedNotNeeded, …; "" = wait
	Options           json.RawMessage `json:"options,omitempty"`
}

// ChatToolCallConfirmed approves or denies a call that waits for a confirmation. A client
// must deny a call of its own tool if it does not know the tool or cannot execute it.
type ChatToolCallConfirmed struct {
	ToolCallRef
	Approved         bool            `json:"approved"`
	Confirmed        string          `json:"confirmed,omitempty"` // if approved: ConfirmedUserAction, …
	EditedToolInput  json.RawMessage `json:"editedToolInput,omitempty"`
	SelectedOptionID string          `json:"selectedOptionId,omitempty"`
	Reason           string          `json:"reason,omitempty"` // if not approved: ReasonDenied or ReasonSkipped
	ReasonMessage    *Text           `json:"reasonMessage,omitempty"`
	UserSuggestion   json.RawMessage `json:"userSuggestion,omitempty"`
}

// ChatToolCallContentChanged replaces the current content of a running tool, such as its
// terminal. For a client's tool, only that client may dispatch it.
type ChatToolCallContentChanged struct {
	ToolCallRef
	Content []ToolContent `json:"content"`
}

// ChatToolCallComplete ends a tool call, successfully or not. For a client's tool, only
// that client may dispatch it.
type ChatToolCallComplete struct {
	ToolCallRef
	Result                     ToolResult `json:"result"`
	RequiresResultConfirmation bool       `json:"requiresResultConfirmation,omitempty"`
}

// Type implements Action.
func (ChatTurnStarted) Type() string { return ActionChatTurnStarted }

// Type implements Action.
func (ChatTurnComplete) Type() string { return ActionChatTurnComplete }

// Type implements Action.
func (ChatTurnCancelled) Type() string { return ActionChatTurnCancelled }

// Type implements Action.
func (ChatToolCallStart) Type() string { return ActionChatToolCallStart }

// Type implements Action.
func (ChatToolCallReady) Type() string { return ActionChatToolCallReady }

// Type implements Action.
func (ChatToolCallConfirmed) Type() string { return ActionChatToolCallConfirmed }

// Type implements Action.
func (ChatToolCallContentChanged) Type() string { return ActionChatToolCallContentChanged }

// Type implements Action.
func (ChatToolCallComplete) Type() string { return ActionChatToolCallComplete }

// Validate checks the ids.
func (r ToolCallRef) Validate() error {
	return cmp.Or(checkID("turnId", r.TurnID), checkID("toolCallId", r.ToolCallID))
}

// Validate checks the id and bounds the message.
func (a ChatTurnStarted) Validate() error {
	return cmp.Or(checkID("turnId", a.TurnID), checkLength("startedAt", a.StartedAt, MaxID),
		checkLength("queuedMessageId", a.QueuedMessageID, MaxID), checkLength("message.text", a.Message.Text, MaxData))
}

// Validate checks the id and the duration.
func (a ChatTurnCancelled) Validate() error {
	if finite(&a.Duration) == nil {
		return errors.New("duration is not a number")
	}
	return checkID("turnId", a.TurnID)
}

// Validate checks the ids and the kind of answer.
func (a ChatToolCallConfirmed) Validate() error {
	if !a.Approved && a.Reason != ReasonDenied && a.Reason != ReasonSkipped {
		return fmt.Errorf("reason is %.40q, want %q or %q", a.Reason, ReasonDenied, ReasonSkipped)
	}
	return cmp.Or(a.ToolCallRef.Validate(), checkLength("confirmed", a.Confirmed, MaxID),
		checkLength("selectedOptionId", a.SelectedOptionID, MaxID))
}

// Validate checks the ids and the blocks.
func (a ChatToolCallContentChanged) Validate() error {
	return cmp.Or(a.ToolCallRef.Validate(), checkContents(a.Content))
}

// Validate checks the ids and the result.
func (a ChatToolCallComplete) Validate() error {
	return cmp.Or(a.ToolCallRef.Validate(), a.Result.Validate())
}

func checkID(name, id string) error {
	if id == "" {
		return fmt.Errorf("%s is empty", name)
	}
	return checkLength(name, id, MaxID)
}

func (a ChatToolCallContentChanged) forVersion(string) any {
	a.Content = list(a.Content)
	return a
}
