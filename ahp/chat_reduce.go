package ahp

import (
	"slices"
	"time"
)

// ReduceChat returns a chat's state after an accepted action. It changes nothing
// reachable from s. If the action starts or ends a turn, now becomes the state's
// ModifiedAt. Actions that do not fit a call's status change nothing. A call runs as soon
// as it is ready: no host and no machine here lets one wait for a person in the chat.
func ReduceChat(s ChatState, a Action, now time.Time) ChatState {
	switch a := a.(type) {
	case ChatTurnStarted:
		s.ActiveTurn = &Turn{ID: a.TurnID, StartedAt: a.StartedAt, Message: a.Message, ResponseParts: []ResponsePart{}}
		s.Status = s.Status&^(sessionActivity|SessionIsRead) | SessionInProgress
		s.ModifiedAt = FormatTime(now)
	case ChatTurnComplete:
		return endTurn(s, a.TurnID, TurnComplete, a.Duration, now)
	case ChatTurnCancelled:
		return endTurn(s, a.TurnID, TurnCancelled, a.Duration, now)
	case ChatToolCallStart:
		return changeTurn(s, a.TurnID, func(t *Turn) {
			call := ToolCall{Status: ToolStreaming, ToolCallID: a.ToolCallID, ToolName: a.ToolName, DisplayName: a.DisplayName,
				Contributor: a.Contributor, Meta: a.Meta}
			t.ResponseParts = append(t.ResponseParts, ResponsePart{Kind: PartToolCall, ToolCall: &call})
		})
	case ChatToolCallReady:
		return changeCall(s, a.ToolCallRef, ToolStreaming, func(c *ToolCall) {
			c.Status, c.InvocationMessage, c.ToolInput, c.Confirmed = ToolRunning, &a.InvocationMessage, a.ToolInput, a.Confirmed
		})
	case ChatToolCallContentChanged:
		return changeCall(s, a.ToolCallRef, ToolRunning, func(c *ToolCall) { c.Content = list(a.Content) })
	case ChatToolCallComplete:
		return changeCall(s, a.ToolCallRef, ToolRunning, func(c *ToolCall) {
			c.Status, c.Success, c.PastTenseMessage, c.Content = ToolCompleted, &a.Result.Success, &a.Result.PastTenseMessage, a.Result.Content
			c.StructuredContent, c.Error = a.Result.StructuredContent, a.Result.Error
		})
	}
	return s
}

// FormatTime returns t as the protocol writes times: ISO 8601, UTC, with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// endTurn moves the active turn, if it has that id, to Turns. It cancels tool calls that
// have not ended.
func endTurn(s ChatState, id, state string, duration float64, now time.Time) ChatState {
	if s.ActiveTurn == nil || s.ActiveTurn.ID != id {
		return s
	}
	t := *s.ActiveTurn
	duration = max(0, duration)
	t.State, t.Duration, t.ResponseParts = state, &duration, slices.Clone(t.ResponseParts)
	for i, p := range t.ResponseParts {
		if c := *p.ToolCall; c.Status != ToolCompleted {
			c.Status, c.Reason, c.Confirmed, c.Content = ToolCancelled, ReasonSkipped, "", nil
			if c.InvocationMessage == nil {
				c.InvocationMessage = PlainText("")
			}
			t.ResponseParts[i].ToolCall = &c
		}
	}
	s.Turns, s.ActiveTurn = append(slices.Clip(s.Turns), t), nil
	s.Status = s.Status&^sessionActivity | SessionIdle
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

// changeCall replaces one tool call of the active turn, if it has that status, by a copy
// that f has changed.
func changeCall(s ChatState, ref ToolCallRef, status string, f func(c *ToolCall)) ChatState {
	return changeTurn(s, ref.TurnID, func(t *Turn) {
		for i, p := range t.ResponseParts {
			if p.ToolCall.ToolCallID != ref.ToolCallID || p.ToolCall.Status != status {
				continue
			}
			c := *p.ToolCall
			if ref.Meta != nil {
				c.Meta = ref.Meta
			}
			f(&c)
			t.ResponseParts[i].ToolCall = &c
		}
	})
}
