package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tether/ahp"
	"tether/internal/jsonspan"
)

var (
	// ErrNoTool is returned for a tool that nobody has published in the session.
	ErrNoTool = errors.New("host: no such tool")
	errCalls  = errors.New("host: too many tool calls at a time in this session")
)

// toolCall is a call under way. Guarded by the host's mutex.
type toolCall struct {
	ref    ahp.ToolCallRef
	need   string              // id of the request to the client
	client *client             // who executes it; nil: the host
	done   chan ahp.ToolResult // holds the result once there is one; one reads it
}

// ToolRequest names the tool to be called.
type ToolRequest struct {
	ClientID  string          // the publishing client
	Name      string          // of the tool
	Arguments json.RawMessage // an object; nil is the empty one
	Agent     string          // the calling agent, for people to read; may be empty
}

// CallTool makes a client execute a tool that it has published in the session, and waits
// for the result: until ctx ends, the client is gone for longer than the grace time, or
// the session ends. The tool's own failures are in the result. Only the client decides
// whether it carries the call out.
func (s *Session) CallTool(ctx context.Context, r ToolRequest) (ahp.ToolResult, error) {
	call, err := s.ask(r)
	if err != nil {
		return ahp.ToolResult{}, err
	}
	select {
	case result := <-call.done:
		return result, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-s.h.ctx.Done():
		err = errClosing
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	select {
	case result := <-call.done: // it was faster
		return result, nil
	default:
	}
	s.finishLocked(call, failed("the agent no longer waits"), nil)
	return ahp.ToolResult{}, err
}

// ask begins a call of a client's tool.
func (s *Session) ask(r ToolRequest) (*toolCall, error) {
	if err := checkArguments(r.Arguments); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	client := s.members[r.ClientID]
	tool, ok := s.toolLocked(r.ClientID, r.Name)
	switch {
	case s.ended:
		return nil, ErrNoSession
	case client == nil || !ok || !s.offered(&client.principal) && s.creator != client:
		return nil, ErrNoTool
	}
	input := r.Arguments
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	start := ahp.ChatToolCallStart{ToolName: tool.Name, DisplayName: displayName(tool),
		Contributor: &ahp.Contributor{Kind: ahp.ContributorClient, ClientID: r.ClientID}}
	ready := ahp.ChatToolCallReady{InvocationMessage: ahp.Text{Value: displayName(tool) + " at " + client.machineLocked()},
		ToolInput: ahp.NewToolInput(input), Confirmed: ahp.ConfirmedNotNeeded}
	call, err := s.beginLocked(start, ready, r.Agent)
	if err != nil {
		return nil, err
	}
	call.client, call.need = client, s.chat.URI()+"#"+call.ref.ToolCallID
	running := *s.talk.ActiveTurn.ToolCall(call.ref.ToolCallID)
	s.applyLocked(ahp.SessionInputNeededSet{Request: ahp.InputRequest{ID: call.need, Kind: ahp.InputToolClientExecution,
		Chat: s.chat.URI(), TurnID: call.ref.TurnID, ClientID: r.ClientID, ToolCall: &running}}, nil, client)
	return call, nil
}

// maxArguments bounds the arguments of a call, in bytes.
const maxArguments = 64 << 10

func checkArguments(args json.RawMessage) error {
	var object map[string]json.RawMessage
	switch {
	case len(args) > maxArguments:
		return fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(args), maxArguments)
	case len(args) > 0 && (jsonspan.Unmarshal(args, &object) != nil || object == nil):
		return errors.New("the arguments are not a JSON object")
	}
	return nil
}

// toolLocked is a tool that a client has published.
func (s *Session) toolLocked(clientID, name string) (ahp.ToolDefinition, bool) {
	if a := s.activeLocked(clientID); a != nil {
		for _, t := range a.Tools {
			if t.Name == name {
				return t, true
			}
		}
	}
	return ahp.ToolDefinition{}, false
}

func displayName(t ahp.ToolDefinition) string {
	if title := cleanTitle(t.Title); title != "" {
		return title
	}
	return t.Name
}

// beginLocked begins a call in the chat, in the turn under way or in one of its own.
func (s *Session) beginLocked(start ahp.ChatToolCallStart, ready ahp.ChatToolCallReady, agent string) (*toolCall, error) {
	switch {
	case s.ended:
		return nil, ErrNoSession
	case len(s.calls) >= maxCalls || s.talk.ActiveTurn != nil && s.turnBytes > maxTurnBytes:
		return nil, errCalls
	}
	name := cleanTitle(agent)
	agent = cmp.Or(name, "an agent")
	s.turnCalls++
	ref := ahp.ToolCallRef{TurnID: s.openTurnLocked(agent), ToolCallID: "call-" + strconv.Itoa(s.turnCalls)}
	call := &toolCall{ref: ref, done: make(chan ahp.ToolResult, 1)}
	s.calls[ref.ToolCallID] = call
	start.ToolCallRef, ready.ToolCallRef = ref, ref
	start.Meta = ahp.NewAgentMeta(name)
	s.sayLocked(start, nil)
	s.sayLocked(ready, nil)
	return call, nil
}

// finishLocked ends a call in the chat with its result, once.
func (s *Session) finishLocked(call *toolCall, result ahp.ToolResult, origin *ahp.Origin) {
	if s.calls[call.ref.ToolCallID] != call {
		return
	}
	s.sayLocked(ahp.ChatToolCallComplete{ToolCallRef: call.ref, Result: result}, origin)
	s.overLocked(call, result)
	s.closeTurnLocked()
}

// overLocked forgets a call and hands its result to the waiting caller.
func (s *Session) overLocked(call *toolCall, result ahp.ToolResult) {
	delete(s.calls, call.ref.ToolCallID)
	for _, t := range s.h.heldLocked(s) {
		if call.uses(t) {
			s.h.applyLocked(t, ahp.TerminalClaimed{Claim: s.claim(nil)}, nil) // it goes on behind the scenes
		}
	}
	if call.client != nil {
		s.applyLocked(ahp.SessionInputNeededRemoved{ID: call.need}, nil, call.client)
	}
	call.done <- result
}

// failed is the result of a call that did not work.
func failed(why string) ahp.ToolResult {
	return ahp.ToolResult{PastTenseMessage: ahp.Text{Value: "Failed: " + why}, Error: &ahp.ToolError{Message: why}}
}
