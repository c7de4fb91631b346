package ahp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"tether/internal/jsonspan"
)

// Action is a change of a channel's state: one of the Root, Terminal, Session and Chat
// structs of this package, or UnknownAction.
type Action interface {
	// Type returns the kind as on the wire, e.g. ActionTerminalData.
	Type() string
}

// UnknownAction is an action of a kind this package has no type for. Reducers ignore it;
// encoding repeats it verbatim.
type UnknownAction struct {
	Kind string
	Raw  json.RawMessage // the whole action
}

// Type implements Action.
func (a UnknownAction) Type() string { return a.Kind }

// DecodeAction decodes one action. The result keeps no reference to raw. Unknown kinds
// and unknown members are accepted. It returns an error if the kind is missing, or if an
// action of a known kind lacks a required member or has a member of the wrong type.
func DecodeAction(raw []byte) (Action, error) {
	var kind, missing string
	var present []string
	err := jsonspan.Object(raw, func(key, value []byte) (err error) {
		if string(key) == "type" {
			kind, err = decodeString("type", value)
		}
		if string(value) != "null" {
			present = append(present, string(key))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	if kind == "" {
		return nil, errors.New("action: type is missing")
	}
	// Output is the exception: programs print what they want, and what is no character in
	// it is shown as U+FFFD.
	if kind != ActionTerminalData && kind != ActionTerminalOutput {
		if err := jsonspan.CheckText(raw); err != nil {
			return nil, fmt.Errorf("%.80q: %w", kind, err)
		}
	}
	k, ok := kinds[kind]
	if !ok {
		return UnknownAction{Kind: kind, Raw: slices.Clone(raw)}, nil
	}
	for _, name := range k.required {
		if !slices.Contains(present, name) {
			missing = name
		}
	}
	if missing != "" {
		return nil, fmt.Errorf("%s: %s is missing", kind, missing)
	}
	a, err := k.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, describe(err))
	}
	return a, nil
}

// Known reports whether this package has a type for actions of that kind.
func Known(kind string) bool { _, ok := kinds[kind]; return ok }

// AppendAction appends the action as JSON in the newest shape.
func AppendAction(dst []byte, a Action) []byte { return AppendActionFor(dst, a, Versions()[0]) }

// AppendActionFor appends the action as JSON in the shape of a negotiated protocol
// version; only RootTerminalsChanged differs. It panics if a RawMessage inside the action
// is not JSON.
func AppendActionFor(dst []byte, a Action, version string) []byte {
	if u, ok := a.(UnknownAction); ok && len(u.Raw) > 0 {
		return append(dst, u.Raw...)
	}
	var body any = a
	if v, ok := a.(interface{ forVersion(string) any }); ok {
		body = v.forVersion(version)
	}
	if _, ok := a.(UnknownAction); ok {
		body = struct{}{}
	}
	dst = append(dst, `{"type":`...)
	dst = jsonspan.AppendQuoteString(dst, a.Type())
	if members := marshal(body)[1:]; len(members) > 1 { // more than the closing brace
		dst = append(dst, ',')
		return append(dst, members...)
	}
	return append(dst, '}')
}

// ValidateAction checks the ranges and lengths of an action that came from a client.
// Unknown kinds pass.
func ValidateAction(a Action) error {
	if v, ok := a.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("%s: %w", a.Type(), err)
		}
	}
	return nil
}

// kind is how an action of one type is read.
type kind struct {
	required []string
	decode   func(raw []byte) (Action, error)
}

func decodeAs[T Action](raw []byte) (Action, error) {
	var a T
	err := json.Unmarshal(raw, &a)
	return a, err
}

// kinds has the kinds that this package decodes. It is never changed.
var kinds = map[string]kind{
	ActionRootAgentsChanged:         {[]string{"agents"}, decodeAs[RootAgentsChanged]},
	ActionRootActiveSessionsChanged: {[]string{"activeSessions"}, decodeAs[RootActiveSessionsChanged]},
	ActionRootTerminalsChanged:      {[]string{"terminals"}, decodeAs[RootTerminalsChanged]},
	ActionRootConfigChanged:         {[]string{"config"}, decodeAs[RootConfigChanged]},

	ActionTerminalData:                      {[]string{"data"}, decodeAs[TerminalData]},
	ActionTerminalOutput:                    {[]string{"data"}, decodeAs[TerminalOutput]},
	ActionTerminalInput:                     {[]string{"data"}, decodeAs[TerminalInput]},
	ActionTerminalResized:                   {[]string{"cols", "rows"}, decodeAs[TerminalResized]},
	ActionTerminalClaimed:                   {[]string{"claim"}, decodeAs[TerminalClaimed]},
	ActionTerminalTitleChanged:              {[]string{"title"}, decodeAs[TerminalTitleChanged]},
	ActionTerminalCwdChanged:                {[]string{"cwd"}, decodeAs[TerminalCwdChanged]},
	ActionTerminalExited:                    {nil, decodeAs[TerminalExited]},
	ActionTerminalCleared:                   {nil, decodeAs[TerminalCleared]},
	ActionTerminalCommandDetectionAvailable: {nil, decodeAs[TerminalCommandDetectionAvailable]},
	ActionTerminalCommandExecuted:           {[]string{"commandId", "commandLine", "timestamp"}, decodeAs[TerminalCommandExecuted]},
	ActionTerminalCommandFinished:           {[]string{"commandId"}, decodeAs[TerminalCommandFinished]},

	ActionSessionTitleChanged:        {[]string{"title"}, decodeAs[SessionTitleChanged]},
	ActionSessionChatUpdated:         {[]string{"chat", "changes"}, decodeAs[SessionChatUpdated]},
	ActionSessionActiveClientSet:     {[]string{"activeClient"}, decodeAs[SessionActiveClientSet]},
	ActionSessionActiveClientRemoved: {[]string{"clientId"}, decodeAs[SessionActiveClientRemoved]},
	ActionSessionInputNeededSet:      {[]string{"request"}, decodeAs[SessionInputNeededSet]},
	ActionSessionInputNeededRemoved:  {[]string{"id"}, decodeAs[SessionInputNeededRemoved]},

	ActionChatTurnStarted:            {[]string{"turnId", "message"}, decodeAs[ChatTurnStarted]},
	ActionChatTurnComplete:           {[]string{"turnId"}, decodeAs[ChatTurnComplete]},
	ActionChatTurnCancelled:          {[]string{"turnId"}, decodeAs[ChatTurnCancelled]},
	ActionChatToolCallStart:          {[]string{"turnId", "toolCallId", "toolName"}, decodeAs[ChatToolCallStart]},
	ActionChatToolCallReady:          {[]string{"turnId", "toolCallId", "invocationMessage"}, decodeAs[ChatToolCallReady]},
	ActionChatToolCallConfirmed:      {[]string{"turnId", "toolCallId", "approved"}, decodeAs[ChatToolCallConfirmed]},
	ActionChatToolCallContentChanged: {[]string{"turnId", "toolCallId", "content"}, decodeAs[ChatToolCallContentChanged]},
	ActionChatToolCallComplete:       {[]string{"turnId", "toolCallId", "result"}, decodeAs[ChatToolCallComplete]},
}

// finite returns f, or nil for a number that JSON cannot hold.
func finite(f *float64) *float64 {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return nil
	}
	return f
}
