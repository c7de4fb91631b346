package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// ChatTurnStarted begins a turn.
type ChatTurnStarted struct {
	TurnID    string  `json:"turnId"`
	StartedAt string  `json:"startedAt,omitempty"` // ISO 8601
	Message   Message `json:"message"`
}

// ChatTurnComplete ends a turn.
type ChatTurnComplete struct {
	TurnID   string  `json:"turnId"`
	Duration float64 `json:"duration"` // milliseconds
}

// ChatTurnCancelled ends a turn before it is complete. A client may dispatch it.
type ChatTurnCancelled struct {
	TurnID   string  `json:"turnId"`
	Duration float64 `json:"duration"` // milliseconds
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
	Contributor *Contributor `json:"contributor,omitempty"` // nil = the host's tool
}

// ChatToolCallReady says that the input is complete, and that the call runs.
type ChatToolCallReady struct {
	ToolCallRef
	InvocationMessage Text            `json:"invocationMessage"`
	ToolInput         json.RawMessage `json:"toolInput,omitempty"` // see ToolCall.Arguments
	Confirmed         string          `json:"confirmed,omitempty"` // ConfirmedNotNeeded
}

// ChatToolCallConfirmed says whether a call may run. A client must deny a call of its own
// tool if it does not know the tool or cannot execute it.
type ChatToolCallConfirmed struct {
	ToolCallRef
	Approved      bool   `json:"approved"`
	Reason        string `json:"reason,omitempty"` // if not approved: ReasonDenied or ReasonSkipped
	ReasonMessage *Text  `json:"reasonMessage,omitempty"`
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
	return a.ToolCallRef.Validate()
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
