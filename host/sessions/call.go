package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

var (
	// ErrNoTool is returned for a tool that nobody has published in the session.
	ErrNoTool = errors.New("host: no such tool")
	errCalls  = errors.New("host: too many tool calls at a time in this session")
)

// toolCall is a call under way. The book's lock guards it.
type toolCall struct {
	ref    ahp.ToolCallRef
	need   string              // id of the request to the client
	client Client              // who executes it; nil: the host
	done   chan ahp.ToolResult // holds the result once there is one; one reads it
}

// uses reports whether a terminal with that claim is in use by the call.
func (call *toolCall) uses(c ahp.Claim) bool {
	return c.Kind == ahp.ClaimSession && c.ToolCallID == call.ref.ToolCallID && c.TurnID == call.ref.TurnID
}

// begin begins a call in the chat, in the turn under way or in one of its own.
func (s *Session) begin(start ahp.ChatToolCallStart, ready ahp.ChatToolCallReady, agent string) (*toolCall, error) {
	switch {
	case s.ended:
		return nil, ErrNoSession
	case len(s.calls) >= maxCalls || s.talk.ActiveTurn != nil && s.turnBytes > maxTurnBytes:
		return nil, errCalls
	}
	name := ahp.CleanTitle(agent)
	agent = cmp.Or(name, "an agent")
	s.turnCalls++
	ref := ahp.ToolCallRef{TurnID: s.openTurn(agent), ToolCallID: "call-" + strconv.Itoa(s.turnCalls)}
	call := &toolCall{ref: ref, done: make(chan ahp.ToolResult, 1)}
	s.calls[ref.ToolCallID] = call
	start.ToolCallRef, ready.ToolCallRef = ref, ref
	start.Meta = ahp.NewAgentMeta(name)
	s.say(start, nil)
	s.say(ready, nil)
	return call, nil
}

// runs reports whether the call is under way.
func (s *Session) runs(call *toolCall) bool { return s.calls[call.ref.ToolCallID] == call }

// finish ends a call in the chat with its result, once.
func (s *Session) finish(call *toolCall, result ahp.ToolResult, origin *ahp.Origin) {
	if !s.runs(call) {
		return
	}
	s.say(ahp.ChatToolCallComplete{ToolCallRef: call.ref, Result: result}, origin)
	s.over(call, result)
	s.closeTurn()
}

// over forgets a call and hands its result to the waiting caller. The shells that the
// call uses stay the session's.
func (s *Session) over(call *toolCall, result ahp.ToolResult) {
	delete(s.calls, call.ref.ToolCallID)
	for _, t := range s.held() {
		if call.uses(t.State().Claim) {
			t.Claim(s.claim(nil))
		}
	}
	if call.client != nil {
		s.apply(ahp.SessionInputNeededRemoved{ID: call.need}, nil, call.client)
	}
	call.done <- result
}

// Failed is the result of a call that did not work.
func Failed(why string) ahp.ToolResult {
	return ahp.ToolResult{PastTenseMessage: ahp.Text{Value: "Failed: " + why}, Error: &ahp.ToolError{Message: why}}
}

// Caller calls tools in one session, for agents. Its methods take the lock, and may be
// called from any goroutine.
type Caller struct{ s *Session }

// Caller returns the caller of the session with that URI, or ErrNoSession.
func (b *Book) Caller(uri string) (*Caller, error) {
	if s := b.named(uri); s != nil {
		return s.caller, nil
	}
	return nil, ErrNoSession
}

// Add makes a session that belongs to no client, and returns its caller.
func (b *Book) Add(title string) (*Caller, error) {
	s, err := b.add(ahp.SessionScheme+rand.Text(), nil, "", ahp.SessionState{Title: ahp.CleanTitle(title)})
	if err != nil {
		return nil, err
	}
	return s.caller, nil
}

func (c *Caller) lock() (unlock func()) {
	l := c.s.book.o.Lock
	l.Lock()
	return l.Unlock
}

// URI names the session's channel.
func (c *Caller) URI() string { return c.s.uri }

// Principal stands for the session as the creator of shells.
func (c *Caller) Principal() rights.Principal { return *c.s.holder.Principal() }

// Dispose ends the session: its calls fail, and the shells that it holds are disposed of.
// It may be called again.
func (c *Caller) Dispose() {
	unlock := c.lock()
	killed := c.s.dispose("the session was disposed of")
	unlock()
	Kill(killed)
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
func (c *Caller) CallTool(ctx context.Context, r ToolRequest) (ahp.ToolResult, error) {
	s := c.s
	call, err := c.ask(r)
	if err != nil {
		return ahp.ToolResult{}, err
	}
	select {
	case result := <-call.done:
		return result, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-s.book.o.Context.Done():
		err = errClosing
	}
	defer c.lock()()
	select {
	case result := <-call.done: // it was faster
		return result, nil
	default:
	}
	s.finish(call, Failed("the agent no longer waits"), nil)
	return ahp.ToolResult{}, err
}

// ask begins a call of a client's tool.
func (c *Caller) ask(r ToolRequest) (*toolCall, error) {
	if err := checkArguments(r.Arguments); err != nil {
		return nil, err
	}
	defer c.lock()()
	s := c.s
	client := s.members[r.ClientID]
	tool, ok := s.tool(r.ClientID, r.Name)
	switch {
	case s.ended:
		return nil, ErrNoSession
	case client == nil || !ok || !s.offered(client.Principal()) && s.creator != client:
		return nil, ErrNoTool
	}
	input := r.Arguments
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	start := ahp.ChatToolCallStart{ToolName: tool.Name, DisplayName: displayName(tool),
		Contributor: &ahp.Contributor{Kind: ahp.ContributorClient, ClientID: r.ClientID}}
	ready := ahp.ChatToolCallReady{InvocationMessage: ahp.Text{Value: displayName(tool) + " at " + client.Machine()},
		ToolInput: ahp.NewToolInput(input), Confirmed: ahp.ConfirmedNotNeeded}
	call, err := s.begin(start, ready, r.Agent)
	if err != nil {
		return nil, err
	}
	call.client, call.need = client, s.chat.URI()+"#"+call.ref.ToolCallID
	running := *s.talk.ActiveTurn.ToolCall(call.ref.ToolCallID)
	s.apply(ahp.SessionInputNeededSet{Request: ahp.InputRequest{ID: call.need, Kind: ahp.InputToolClientExecution,
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

// tool is a tool that a client has published.
func (s *Session) tool(clientID, name string) (ahp.ToolDefinition, bool) {
	if a := s.active(clientID); a != nil {
		for _, t := range a.Tools {
			if t.Name == name {
				return t, true
			}
		}
	}
	return ahp.ToolDefinition{}, false
}

func displayName(t ahp.ToolDefinition) string {
	return cmp.Or(ahp.CleanTitle(t.Title), t.Name)
}
