package ahp

import (
	"encoding/json"
	"slices"
	"time"
)

// ReduceChat returns a chat's state after an accepted action. It changes nothing
// reachable from s. If the action starts or ends a turn, now becomes the state's
// ModifiedAt.
func ReduceChat(s ChatState, a Action, now time.Time) ChatState {
	switch a := a.(type) {
	case ChatTurnStarted:
		s = startTurn(s, a)
	case ChatTurnComplete:
		return endTurn(s, a.TurnID, Turn{State: TurnComplete, Duration: &a.Duration}, now)
	case ChatTurnCancelled:
		return endTurn(s, a.TurnID, Turn{State: TurnCancelled, Duration: &a.Duration}, now)
	case ChatToolCallStart:
		return changeTurn(s, a.TurnID, func(t *Turn) {
			t.ResponseParts = append(t.ResponseParts, ResponsePart{Kind: PartToolCall, ToolCall: startCall(a)})
		})
	default:
		return reduceToolCall(s, a)
	}
	s.ModifiedAt = FormatTime(now)
	return s
}

// FormatTime returns t as the protocol writes times: ISO 8601, UTC, with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func startTurn(s ChatState, a ChatTurnStarted) ChatState {
	s.ActiveTurn = &Turn{ID: a.TurnID, StartedAt: a.StartedAt, Message: a.Message, ResponseParts: []ResponsePart{}}
	s.Status = s.activity() &^ SessionIsRead
	if id := a.QueuedMessageID; id != "" {
		if s.SteeringMessage != nil && s.SteeringMessage.ID == id {
			s.SteeringMessage = nil
		}
		s.QueuedMessages = slices.DeleteFunc(slices.Clone(s.QueuedMessages), func(m PendingMessage) bool { return m.ID == id })
	}
	return s
}

// endTurn moves the active turn, if it has that id, to Turns, with the State and Duration
// of end. It cancels tool calls that have not ended.
func endTurn(s ChatState, id string, end Turn, now time.Time) ChatState {
	if s.ActiveTurn == nil || s.ActiveTurn.ID != id {
		return s
	}
	t := *s.ActiveTurn
	t.State = end.State
	duration := max(0, *end.Duration)
	t.Duration = &duration
	t.ResponseParts = slices.Clone(t.ResponseParts)
	for i, p := range t.ResponseParts {
		if p.ToolCall == nil || p.ToolCall.Ended() {
			continue
		}
		c := p.ToolCall.base(ToolCancelled, nil)
		c.Reason = ReasonSkipped
		if p.ToolCall.Status == ToolStreaming {
			c.ToolInput = nil
		}
		if c.InvocationMessage == nil {
			c.InvocationMessage = PlainText("")
		}
		t.ResponseParts[i].ToolCall = &c
	}
	s.Turns, s.ActiveTurn = append(slices.Clip(s.Turns), t), nil
	s.Status = s.activity()
	s.ModifiedAt = FormatTime(now)
	return s
}

// changeTurn replaces the active turn, if it has that id, by a copy that f has changed.
func changeTurn(s ChatState, id string, f func(t *Turn)) ChatState {
	if s.ActiveTurn == nil || s.ActiveTurn.ID != id {
		return s
	}
	t := *s.ActiveTurn
	t.ResponseParts = slices.Clone(t.ResponseParts)
	f(&t)
	s.ActiveTurn = &t
	return s
}

// activity returns the status that follows from the chat's active turn. Bits that do not
// depend on it stay unchanged.
func (s ChatState) activity() SessionStatus {
	now := SessionIdle
	if s.ActiveTurn != nil {
		now = SessionInProgress
		for _, p := range s.ActiveTurn.ResponseParts {
			if c := p.ToolCall; c != nil && c.blocked() {
				now = SessionInputNeeded
			}
		}
	}
	return s.Status&^sessionActivity | now
}

// blocked reports whether the call waits for a person.
func (c ToolCall) blocked() bool {
	return c.Status == ToolPendingConfirmation || c.Status == ToolPendingResultConfirmation || c.Status == toolAuthRequired
}

// reduceToolCall changes one tool call of the active turn. Actions that do not fit the
// call's status change nothing.
func reduceToolCall(s ChatState, a Action) ChatState {
	var ref ToolCallRef
	var change func(c ToolCall) ToolCall
	switch a := a.(type) {
	case ChatToolCallReady:
		ref, change = a.ToolCallRef, a.reduce
	case ChatToolCallConfirmed:
		ref, change = a.ToolCallRef, a.reduce
	case ChatToolCallContentChanged:
		ref, change = a.ToolCallRef, a.reduce
	case ChatToolCallComplete:
		ref, change = a.ToolCallRef, a.reduce
	default:
		return s
	}
	s = changeTurn(s, ref.TurnID, func(t *Turn) {
		for i, p := range t.ResponseParts {
			if p.ToolCall != nil && p.ToolCall.ToolCallID == ref.ToolCallID {
				c := change(*p.ToolCall)
				t.ResponseParts[i].ToolCall = &c
			}
		}
	})
	if s.ActiveTurn != nil && s.ActiveTurn.ID == ref.TurnID && s.ActiveTurn.ToolCall(ref.ToolCallID) != nil {
		s.Status = s.activity()
	}
	return s
}

func startCall(a ChatToolCallStart) *ToolCall {
	return &ToolCall{Status: ToolStreaming, ToolCallID: a.ToolCallID, ToolName: a.ToolName, DisplayName: a.DisplayName,
		Intention: a.Intention, Contributor: a.Contributor, Meta: a.Meta}
}

// base returns a call with another status and only the fields that a call keeps in every
// status. A nil meta keeps the call's own.
func (c ToolCall) base(status string, meta Meta) ToolCall {
	if meta == nil {
		meta = c.Meta
	}
	return ToolCall{Status: status, ToolCallID: c.ToolCallID, ToolName: c.ToolName, DisplayName: c.DisplayName,
		Intention: c.Intention, Contributor: c.Contributor, Meta: meta, InvocationMessage: c.InvocationMessage,
		ToolInput: c.ToolInput}
}

func (a ChatToolCallReady) reduce(c ToolCall) ToolCall {
	if c.Status != ToolStreaming && c.Status != ToolRunning && c.Status != ToolPendingConfirmation {
		return c
	}
	next := c.base(ToolPendingConfirmation, a.Meta)
	next.InvocationMessage, next.ToolInput = &a.InvocationMessage, a.ToolInput
	if a.Intention != nil {
		next.Intention = a.Intention
	}
	if a.Confirmed != "" {
		next.Status, next.Confirmed = ToolRunning, a.Confirmed
		return next
	}
	next.ConfirmationTitle, next.RiskAssessment, next.Edits = a.ConfirmationTitle, a.RiskAssessment, a.Edits
	next.Editable, next.Options = a.Editable, a.Options
	if c.Status == ToolPendingConfirmation {
		next.keep(c)
	}
	return next
}

// keep copies the fields that c lacks from the same call before it had to wait again.
func (c *ToolCall) keep(before ToolCall) {
	if c.ConfirmationTitle == nil {
		c.ConfirmationTitle = before.ConfirmationTitle
	}
	if c.Editable == nil {
		c.Editable = before.Editable
	}
	for _, f := range []struct{ to, from *json.RawMessage }{
		{&c.ToolInput, &before.ToolInput}, {&c.RiskAssessment, &before.RiskAssessment},
		{&c.Edits, &before.Edits}, {&c.Options, &before.Options},
	} {
		if !present(*f.to) {
			*f.to = *f.from
		}
	}
}

func (a ChatToolCallConfirmed) reduce(c ToolCall) ToolCall {
	if c.Status != ToolPendingConfirmation {
		return c
	}
	next := c.base(ToolCancelled, a.Meta)
	next.SelectedOption = findOption(c.Options, a.SelectedOptionID)
	if !a.Approved {
		next.Reason, next.ReasonMessage, next.UserSuggestion = a.Reason, a.ReasonMessage, a.UserSuggestion
		return next
	}
	next.Status, next.Confirmed = ToolRunning, a.Confirmed
	if present(a.EditedToolInput) {
		next.ToolInput = a.EditedToolInput
	}
	return next
}

// findOption returns the offered option with that id, or nil.
func findOption(options json.RawMessage, id string) json.RawMessage {
	var all []json.RawMessage
	if id == "" || json.Unmarshal(options, &all) != nil {
		return nil
	}
	for _, raw := range all {
		var one struct{ ID string }
		if json.Unmarshal(raw, &one) == nil && one.ID == id {
			return raw
		}
	}
	return nil
}

func (a ChatToolCallContentChanged) reduce(c ToolCall) ToolCall {
	if c.Status != ToolRunning {
		return c
	}
	if a.Meta != nil {
		c.Meta = a.Meta
	}
	c.Content = list(a.Content)
	return c
}

func (a ChatToolCallComplete) reduce(c ToolCall) ToolCall {
	if c.Status != ToolRunning && c.Status != ToolPendingConfirmation {
		return c
	}
	next := c.base(ToolCompleted, a.Meta)
	if a.RequiresResultConfirmation {
		next.Status = ToolPendingResultConfirmation
	}
	if next.Confirmed = ConfirmedNotNeeded; c.Status == ToolRunning {
		next.Confirmed, next.SelectedOption = c.Confirmed, c.SelectedOption
	}
	next.Success, next.PastTenseMessage, next.Content = &a.Result.Success, &a.Result.PastTenseMessage, a.Result.Content
	next.StructuredContent, next.Error = a.Result.StructuredContent, a.Result.Error
	return next
}
