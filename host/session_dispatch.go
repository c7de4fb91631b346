package host

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/shells"
)

// sessionForbids says, for each kind of action that a client may dispatch on a session or
// its chat, why this client may not; "" if it may. Everything else is the host's to say.
// It is never changed.
var sessionForbids = map[string]func(s *Session, c *conn, a ahp.Action) string{
	ahp.ActionSessionActiveClientSet:     forbidsJoining,
	ahp.ActionSessionActiveClientRemoved: forbidsLeaving,
	ahp.ActionSessionTitleChanged:        forbidsClosedTo,
	ahp.ActionChatTurnCancelled:          forbidsCancelling,
	ahp.ActionChatToolCallConfirmed:      forbidsAnswering,
	ahp.ActionChatToolCallContentChanged: forbidsAnswering,
	ahp.ActionChatToolCallComplete:       forbidsAnswering,
}

// actSession takes an action on a channel of a session. It reports whether it is one.
func (c *conn) actSessionLocked(d *ahp.Dispatch, a ahp.Action, err error) bool {
	s := c.h.sessions[d.Channel]
	if s == nil {
		return false
	}
	reason := s.forbidsLocked(c, d, a, err)
	if reason != "" {
		c.refuseLocked(d, reason)
		if call := s.callLocked(c, a); call != nil && !c.closing && d.Channel == s.chat.URI() && a.Type() == ahp.ActionChatToolCallComplete {
			s.finishLocked(call, failed("the machine's result was refused: "+reason), nil) // nobody should wait for another one
		}
		return true
	}
	s.acceptLocked(c, a, c.origin(d))
	return true
}

func (s *Session) forbidsLocked(c *conn, d *ahp.Dispatch, a ahp.Action, err error) string {
	onChat := d.Channel == s.chat.URI()
	forbids, most := sessionForbids[d.Kind], maxPublished
	if onChat {
		most = maxToolResult
	}
	mine := onChat && s.callLocked(c, a) != nil // a machine answers in a chat that it does not see
	switch {
	case c.closing:
		return "this connection is being closed"
	case !mine && !c.seesChannelLocked(s, s.at(d.Channel)):
		return "no such channel"
	case forbids == nil || onChat == isSessionKind(d.Kind):
		return fmt.Sprintf("clients may not dispatch %.80q here", d.Kind)
	case err != nil:
		return err.Error()
	case !utf8.Valid(d.Action): // values kept as received must not end the connections of others
		return errNotText.Error()
	case len(d.Action) > most:
		return fmt.Sprintf("the action has %d bytes, at most %d are allowed", len(d.Action), most)
	}
	return forbids(s, c, a)
}

func isSessionKind(kind string) bool { return len(kind) > 8 && kind[:8] == "session/" }

func forbidsJoining(s *Session, c *conn, a ahp.Action) string {
	client := a.(ahp.SessionActiveClientSet).ActiveClient
	switch {
	case !c.may(rights.Tools):
		return fmt.Sprintf("a token for the role %s does not allow to publish tools", c.remote.principal.Role)
	case client.ClientID != c.client.id:
		return "a client may publish only its own tools"
	case s.members[c.client.id] == nil && len(s.members) >= maxActiveClients:
		return fmt.Sprintf("more than %d clients with tools in one session", maxActiveClients)
	}
	return ""
}

func forbidsLeaving(s *Session, c *conn, a ahp.Action) string {
	if a.(ahp.SessionActiveClientRemoved).ClientID != c.client.id {
		return "a client may withdraw only its own tools"
	}
	return ""
}

func forbidsClosedTo(s *Session, c *conn, _ ahp.Action) string {
	if !s.open(c) {
		return "only the client that created the session may do that"
	}
	return ""
}

func forbidsCancelling(s *Session, c *conn, a ahp.Action) string {
	if t := s.talk.ActiveTurn; t == nil || t.ID != a.(ahp.ChatTurnCancelled).TurnID {
		return "no such turn is running"
	}
	return forbidsClosedTo(s, c, a)
}

func forbidsAnswering(s *Session, c *conn, a ahp.Action) string {
	call := s.callLocked(c, a)
	if call == nil {
		return "no such tool call of this client"
	}
	switch a := a.(type) {
	case ahp.ChatToolCallConfirmed:
		if a.Approved {
			return "the call is already confirmed"
		}
	case ahp.ChatToolCallContentChanged:
		return s.foreignBlockLocked(c, a.Content)
	case ahp.ChatToolCallComplete:
		if a.RequiresResultConfirmation {
			return "this host cannot confirm results"
		}
		return s.foreignBlockLocked(c, a.Result.Content)
	}
	return ""
}

// foreignBlockLocked refuses blocks that show another client's terminal as if it were the
// sender's. A terminal invisible to the session's owner counts as missing.
func (s *Session) foreignBlockLocked(c *conn, contents []ahp.ToolContent) string {
	h, v := s.h, s.h.roster.Viewer(rights.Principal{Role: rights.RoleObserver, Owner: s.person})
	for _, block := range contents {
		if block.Terminal == nil {
			continue
		}
		if t := h.terminals[block.Terminal.Resource]; t != nil && t.creator != c.client {
			if _, ok := v.Sees(t.subject, h.roster); !ok {
				continue
			}
			return "content: the terminal is not this client's"
		}
	}
	return ""
}

// callLocked is the call that an action of c is about: one of a tool of c's client, under
// way.
func (s *Session) callLocked(c *conn, a ahp.Action) *toolCall {
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
	if call == nil || call.client == nil || call.client != c.client || call.ref.TurnID != ref.TurnID {
		return nil
	}
	return call
}

// acceptLocked applies a client's permitted action.
func (s *Session) acceptLocked(c *conn, a ahp.Action, origin *ahp.Origin) {
	switch a := a.(type) {
	case ahp.SessionActiveClientSet:
		s.joinLocked(c, a.ActiveClient, origin)
	case ahp.SessionActiveClientRemoved:
		s.leaveLocked(c.client, origin)
	case ahp.SessionTitleChanged:
		s.modified = time.Now()
		s.applyLocked(ahp.SessionTitleChanged{Title: cleanTitle(a.Title)}, origin, nil)
		s.h.sessionChangedLocked(s)
	case ahp.ChatTurnCancelled:
		s.cancelLocked(a, origin)
	case ahp.ChatToolCallConfirmed:
		// The reducers know no refusal of a running call: the result that follows ends
		// it.
		s.sayLocked(a, origin)
		s.finishLocked(s.callLocked(c, a), failed("the machine refused the call"+because(a.ReasonMessage)), nil)
	case ahp.ChatToolCallContentChanged:
		s.sayLocked(a, origin)
	case ahp.ChatToolCallComplete:
		s.finishLocked(s.callLocked(c, a), a.Result, origin)
	}
}

func because(reason *ahp.Text) string {
	if reason == nil || reason.Value == "" {
		return ""
	}
	return ": " + reason.Value
}

// joinLocked publishes a client's tools. Publishing the same tools again changes nothing
// and is answered to the sender alone: VS Code would answer an announcement with one of
// its own.
func (s *Session) joinLocked(c *conn, client ahp.ActiveClient, origin *ahp.Origin) {
	client.DisplayName = cleanTitle(client.DisplayName)
	a := ahp.SessionActiveClientSet{ActiveClient: client}
	before, _ := json.Marshal(s.activeLocked(c.client.id)) // decoded values can be encoded
	now, _ := json.Marshal(&client)
	if s.members[c.client.id] == c.client && string(before) == string(now) {
		if c.echoes.Allow() {
			c.directLocked(s.h.pieceLocked(s.uri, a, origin))
		}
		return
	}
	s.members[c.client.id] = c.client
	s.applyLocked(a, origin, c.client)
	s.h.toolsChangedLocked()
}

// activeLocked is a client's entry, nil if it has none.
func (s *Session) activeLocked(clientID string) *ahp.ActiveClient {
	for i := range s.state.ActiveClients {
		if s.state.ActiveClients[i].ClientID == clientID {
			return &s.state.ActiveClients[i]
		}
	}
	return nil
}

// leaveLocked takes a client's tools back. Its calls fail.
func (s *Session) leaveLocked(cl *client, origin *ahp.Origin) {
	if s.members[cl.id] != cl {
		return
	}
	delete(s.members, cl.id)
	for _, call := range s.calls {
		if call.client == cl {
			s.finishLocked(call, failed("the machine is offline"), nil)
		}
	}
	s.applyLocked(ahp.SessionActiveClientRemoved{ClientID: cl.id}, origin, cl)
	s.h.toolsChangedLocked()
}

// cancelLocked ends the turn at a client's request. That cancels the calls: clients that
// reduce the action see it, and the executor of a call sees its request go away.
func (s *Session) cancelLocked(a ahp.ChatTurnCancelled, origin *ahp.Origin) {
	for _, call := range s.calls {
		s.overLocked(call, failed("the turn was cancelled"))
	}
	s.sayLocked(a, origin)
	s.turnOverLocked()
}

// absentLocked is called when a client's connection is gone, and when it has another one.
// Where it does not take part again in time, its tools are taken back; the sessions end
// that it created, if it stays away and nobody else is in them.
func (h *Host) absentLocked(cl *client) {
	if len(h.sessions) == 0 || h.closed {
		return
	}
	if cl.absence != nil {
		cl.absence.Stop()
	}
	h.afterLocked(&cl.absence, h.opts.Grace, func() {
		procs := h.departLocked(cl)
		h.work.Go(func() { kill(procs) }) // without the mutex
	})
}

func (h *Host) departLocked(cl *client) (procs []shells.Process) {
	cl.absence = nil
	for _, s := range h.sessionsLocked() {
		if cl.conn != nil && cl.conn.subs[s.uri] != nil {
			continue
		}
		s.leaveLocked(cl, nil)
		if s.creator == cl && cl.conn == nil && len(s.members)+len(s.calls)+len(s.channel.Subscriptions())+len(s.chat.Subscriptions())+len(h.heldLocked(s)) == 0 {
			procs = append(procs, s.disposeLocked("the session's creator has gone")...)
		}
	}
	return procs
}
