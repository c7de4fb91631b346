package sessions

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/rights"
)

// forbids says, for each kind of action that a client may dispatch on a session or its
// chat, why this client may not; "" if it may. Only the host says anything else. It is
// never changed.
var forbids = map[string]func(s *Session, c Conn, a ahp.Action) string{
	ahp.ActionSessionActiveClientSet:     (*Session).forbidsJoining,
	ahp.ActionSessionActiveClientRemoved: (*Session).forbidsLeaving,
	ahp.ActionSessionTitleChanged:        (*Session).forbidsClosedTo,
	ahp.ActionChatTurnCancelled:          (*Session).forbidsCancelling,
	ahp.ActionChatToolCallConfirmed:      (*Session).forbidsAnswering,
	ahp.ActionChatToolCallContentChanged: (*Session).forbidsAnswering,
	ahp.ActionChatToolCallComplete:       (*Session).forbidsAnswering,
}

// Dispatch carries out a client's action on one of the session's channels, or returns why
// it is refused. err says why the action is invalid, if it is.
func (s *Session) Dispatch(c Conn, d *ahp.Dispatch, a ahp.Action, err error, origin *ahp.Origin) (refused string) {
	if refused = s.forbids(c, d, a, err); refused == "" {
		s.accept(c, a, origin)
	}
	return refused
}

// Refused is called when an action of c was refused and that was answered. If it was the
// result of a call, the call ends: nobody should wait for another result.
func (s *Session) Refused(c Conn, d *ahp.Dispatch, a ahp.Action, why string) {
	if call := s.callOf(c, a); call != nil && !c.Closing() && s.isChat(d.Channel) && a.Type() == ahp.ActionChatToolCallComplete {
		s.finish(call, Failed("the machine's result was refused: "+why), nil)
	}
}

func (s *Session) forbids(c Conn, d *ahp.Dispatch, a ahp.Action, err error) string {
	onChat := s.isChat(d.Channel)
	forbid, most := forbids[d.Kind], maxPublished
	if onChat {
		most = maxToolResult
	}
	mine := onChat && s.callOf(c, a) != nil // a machine answers in a chat that it does not see
	switch {
	case c.Closing():
		return "this connection is being closed"
	case !mine && !s.Sees(c, d.Channel):
		return "no such channel"
	case forbid == nil || onChat == strings.HasPrefix(d.Kind, "session/"):
		return fmt.Sprintf("clients may not dispatch %.80q here", d.Kind)
	case err != nil:
		return err.Error()
	case !utf8.Valid(d.Action): // values kept as received must not end the connections of others
		return errNotText.Error()
	case len(d.Action) > most:
		return fmt.Sprintf("the action has %d bytes, at most %d are allowed", len(d.Action), most)
	}
	return forbid(s, c, a)
}

func (s *Session) forbidsJoining(c Conn, a ahp.Action) string {
	client := a.(ahp.SessionActiveClientSet).ActiveClient
	switch id := c.Client().ID(); {
	case !c.Principal().May(rights.Tools):
		return fmt.Sprintf("a token for the role %s does not allow to publish tools", c.Principal().Role)
	case client.ClientID != id:
		return "a client may publish only its own tools"
	case s.members[id] == nil && len(s.members) >= maxActiveClients:
		return fmt.Sprintf("more than %d clients with tools in one session", maxActiveClients)
	}
	return ""
}

func (s *Session) forbidsLeaving(c Conn, a ahp.Action) string {
	if a.(ahp.SessionActiveClientRemoved).ClientID != c.Client().ID() {
		return "a client may withdraw only its own tools"
	}
	return ""
}

func (s *Session) forbidsClosedTo(c Conn, _ ahp.Action) string {
	if !s.Open(c) {
		return "only the client that created the session may do that"
	}
	return ""
}

func (s *Session) forbidsCancelling(c Conn, a ahp.Action) string {
	if t := s.talk.ActiveTurn; t == nil || t.ID != a.(ahp.ChatTurnCancelled).TurnID {
		return "no such turn is running"
	}
	return s.forbidsClosedTo(c, a)
}

func (s *Session) forbidsAnswering(c Conn, a ahp.Action) string {
	if s.callOf(c, a) == nil {
		return "no such tool call of this client"
	}
	switch a := a.(type) {
	case ahp.ChatToolCallConfirmed:
		if a.Approved {
			return "the call is already confirmed"
		}
	case ahp.ChatToolCallContentChanged:
		return s.forbidsBlocks(c, a.Content)
	case ahp.ChatToolCallComplete:
		if a.RequiresResultConfirmation {
			return "this host cannot confirm results"
		}
		return s.forbidsBlocks(c, a.Result.Content)
	}
	return ""
}

// forbidsBlocks refuses blocks that show another client's terminal as if it were the
// sender's. A terminal that the session's owner does not see counts as missing.
func (s *Session) forbidsBlocks(c Conn, contents []ahp.ToolContent) string {
	for _, b := range contents {
		if b.Terminal != nil && s.book.o.Shells.Foreign(b.Terminal.Resource, c.Client(), s.person) {
			return "content: the terminal is not this client's"
		}
	}
	return ""
}

// callOf returns the call that an action of c is about: one of a tool of c's client,
// under way; nil if there is none.
func (s *Session) callOf(c Conn, a ahp.Action) *toolCall {
	var ref ahp.ToolCallRef
	switch a := a.(type) {
	case ahp.ChatToolCallConfirmed:
		ref = a.ToolCallRef
	case ahp.ChatToolCallContentChanged:
		ref = a.ToolCallRef
	case ahp.ChatToolCallComplete:
		ref = a.ToolCallRef
	default:
		return nil
	}
	call := s.calls[ref.ToolCallID]
	if call == nil || call.client == nil || call.client != c.Client() || call.ref.TurnID != ref.TurnID {
		return nil
	}
	return call
}

// accept applies a client's permitted action.
func (s *Session) accept(c Conn, a ahp.Action, origin *ahp.Origin) {
	switch a := a.(type) {
	case ahp.SessionActiveClientSet:
		s.join(c, a.ActiveClient, origin)
	case ahp.SessionActiveClientRemoved:
		s.leave(c.Client(), origin)
	case ahp.SessionTitleChanged:
		s.modified = time.Now()
		s.apply(ahp.SessionTitleChanged{Title: ahp.CleanTitle(a.Title)}, origin, nil)
		s.book.changed(s)
	case ahp.ChatTurnCancelled:
		s.cancel(a, origin)
	case ahp.ChatToolCallConfirmed:
		// The reducers know no refusal of a running call: the result that follows ends
		// it.
		s.say(a, origin)
		s.finish(s.callOf(c, a), Failed("the machine refused the call"+because(a.ReasonMessage)), nil)
	case ahp.ChatToolCallContentChanged:
		s.say(a, origin)
	case ahp.ChatToolCallComplete:
		s.finish(s.callOf(c, a), a.Result, origin)
	}
}

func because(reason *ahp.Text) string {
	if reason == nil || reason.Value == "" {
		return ""
	}
	return ": " + reason.Value
}

// join publishes a client's tools. If the client publishes the same tools again, only it
// gets an answer, and nothing changes: VS Code would answer an announcement with one of
// its own.
func (s *Session) join(c Conn, tools ahp.ActiveClient, origin *ahp.Origin) {
	cl := c.Client()
	tools.DisplayName = ahp.CleanTitle(tools.DisplayName)
	a := ahp.SessionActiveClientSet{ActiveClient: tools}
	before, _ := json.Marshal(s.active(cl.ID())) // decoded values can be encoded
	now, _ := json.Marshal(&tools)
	if s.members[cl.ID()] == cl && string(before) == string(now) {
		c.Echo(s.uri, a, origin)
		return
	}
	s.members[cl.ID()] = cl
	s.apply(a, origin, cl)
	s.book.agents.ToolsChanged()
}

// active returns a client's entry, nil if it has none.
func (s *Session) active(clientID string) *ahp.ActiveClient {
	for i := range s.state.ActiveClients {
		if s.state.ActiveClients[i].ClientID == clientID {
			return &s.state.ActiveClients[i]
		}
	}
	return nil
}

// leave takes a client's tools back. Its calls fail.
func (s *Session) leave(cl Client, origin *ahp.Origin) {
	if s.members[cl.ID()] != cl {
		return
	}
	delete(s.members, cl.ID())
	for _, call := range s.calls {
		if call.client == cl {
			s.finish(call, Failed("the machine is offline"), nil)
		}
	}
	s.apply(ahp.SessionActiveClientRemoved{ClientID: cl.ID()}, origin, cl)
	s.book.agents.ToolsChanged()
}

// cancel ends the turn at a client's request, and with it the calls: clients that reduce
// the action see that, and the executor of a call sees its request go away.
func (s *Session) cancel(a ahp.ChatTurnCancelled, origin *ahp.Origin) {
	for _, call := range s.calls {
		s.over(call, Failed("the turn was cancelled"))
	}
	s.say(a, origin)
	s.turnOver()
}
