package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/terminals"
)

// Only this file decides who may dispatch which action.

// ownerActions are the actions that the owner of a client-executed terminal may dispatch.
// The value says whether it may do so after the exit, too.
var ownerActions = map[string]bool{
	ahp.ActionTerminalOutput:                    false,
	ahp.ActionTerminalExited:                    false,
	ahp.ActionTerminalCommandDetectionAvailable: false,
	ahp.ActionTerminalCommandExecuted:           false,
	ahp.ActionTerminalCommandFinished:           false,
	ahp.ActionTerminalResized:                   true,
	ahp.ActionTerminalCleared:                   true,
	ahp.ActionTerminalTitleChanged:              true,
	ahp.ActionTerminalCwdChanged:                true,
}

// serverActions are the actions that clients may dispatch for a server-executed terminal.
// The value says whether only the holder of the claim may. AHP states a claim rule for
// terminal/claimed alone; this host also refuses input from clients that do not hold the
// claim.
var serverActions = map[string]bool{
	ahp.ActionTerminalInput:        true,
	ahp.ActionTerminalClaimed:      true,
	ahp.ActionTerminalResized:      false,
	ahp.ActionTerminalTitleChanged: false,
	ahp.ActionTerminalCleared:      false,
}

// forbidsLocked returns why the client of c may not dispatch an action of this kind for
// t, the result of terminalLocked, or "" if it may.
func (c *conn) forbidsLocked(t *terminals.Terminal, kind string) string {
	switch {
	case c.closing:
		return "this connection is being closed"
	case t == nil:
		return "no such terminal"
	case t.Remote():
		return c.ownerForbidsLocked(t, kind)
	case !c.may(rights.Shells):
		return fmt.Sprintf("a token for the role %s allows to observe only", c.remote.principal.Role)
	}
	holder, known := serverActions[kind]
	switch {
	case !known:
		return fmt.Sprintf("clients may not dispatch %.80q", kind)
	case holder && t.State.Claim.Kind == ahp.ClaimClient && !t.State.Claim.HeldBy(c.link.Client.ID()):
		return "the terminal is held by another client"
	case t.State.Lifecycle.Exited() && (kind == ahp.ActionTerminalInput || kind == ahp.ActionTerminalResized):
		return "the terminal has exited"
	}
	return ""
}

func (c *conn) ownerForbidsLocked(t *terminals.Terminal, kind string) string {
	afterExit, known := ownerActions[kind]
	switch {
	case !t.OwnedBy(&c.link):
		return "client-executed terminals are observation-only for everyone but their owner"
	case kind == ahp.ActionTerminalClaimed:
		return "a client-executed terminal stays with its owner"
	case !known:
		return fmt.Sprintf("the owner of a client-executed terminal may not dispatch %.80q", kind)
	case t.State.Lifecycle.Exited() && !afterExit:
		return "the terminal has exited"
	}
	return ""
}

// dispatch handles a dispatchAction notification. It drops a notification that cannot be
// decoded, without an answer.
func (c *conn) dispatch(params []byte) {
	d := &c.dispatched
	err := d.Decode(params)
	invalid, readable := errors.AsType[*ahp.ActionError](err)
	switch {
	case readable:
		c.refuseInvalid(d, invalid)
	case err != nil:
		c.h.log.Debug().Str("remote", c.remote.name).Msg("unreadable dispatchAction")
	case d.Kind == ahp.ActionTerminalOutput:
		c.output(d)
	case d.Channel == ahp.RootURI:
		c.dispatchRoot(d)
	default:
		c.act(d)
	}
}

// refuseInvalid refuses an action that lacks its text.
func (c *conn) refuseInvalid(d *ahp.Dispatch, err error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	reason := c.forbidsLocked(c.terminalLocked(d.Channel), d.Kind)
	if reason == "" {
		reason = err.Error()
	}
	d.Data = []byte(`""`) // so that the echo is a valid action
	c.refuseLocked(d, reason)
}

// dispatchRoot accepts root/configChanged, which VS Code sends when it has connected.
// Without a configuration it changes nothing, but its sender waits for the echo. Others
// get one that changes nothing of theirs either.
func (c *conn) dispatchRoot(d *ahp.Dispatch) {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.Kind != ahp.ActionRootConfigChanged {
		c.refuseLocked(d, fmt.Sprintf("clients may not dispatch %.80q on the root channel", d.Kind))
		return
	}
	if c.echoes.Allow() {
		h.terminals.Root.Add(c.answerLocked(d, "", ahp.AppendAction(nil, ahp.RootConfigChanged{Config: map[string]json.RawMessage{}})), nil)
	}
}

// act handles all other actions on a terminal.
func (c *conn) act(d *ahp.Dispatch) {
	h := c.h
	a, err := decodeAction(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions.Session(d.Channel); s != nil {
		if reason := s.Dispatch(c, d, a, err, c.origin(d)); reason != "" {
			c.refuseLocked(d, reason)
			s.Refused(c, d, a, reason)
		}
		return
	}
	t := c.terminalLocked(d.Channel)
	reason := c.forbidsLocked(t, d.Kind)
	if reason == "" && err == nil && !t.Remote() {
		a, reason = h.sessions.Judge(c, t.State.Claim, a)
	}
	switch {
	case reason != "":
	case err != nil:
		reason = err.Error()
	case t.Remote():
		t.Bind(&c.link)
		h.terminals.Apply(t, t.Timed(terminals.Printable(a)), c.origin(d))
	default:
		reason = c.actServerLocked(t, terminals.Printable(a), c.origin(d))
	}
	if reason != "" {
		c.refuseLocked(d, reason)
	}
}

// decodeAction decodes and checks the action. Actions of the root are not decoded:
// clients may not dispatch them on other channels, and their list of terminals could take
// far more memory when decoded than any other message.
func decodeAction(d *ahp.Dispatch) (ahp.Action, error) {
	if strings.HasPrefix(d.Kind, "root/") {
		return ahp.UnknownAction{Kind: d.Kind}, nil
	}
	a, err := ahp.DecodeAction(d.Action)
	if err == nil {
		err = ahp.ValidateAction(a)
	}
	return a, err
}

// origin identifies d in the envelope that answers it.
func (c *conn) origin(d *ahp.Dispatch) *ahp.Origin {
	if !d.HasClientSeq {
		return nil
	}
	return &ahp.Origin{ClientID: c.link.Client.ID(), ClientSeq: d.ClientSeq}
}

// reasonForOthers is the reason in a refusal of somebody else's action: the true one may
// repeat what its sender has written.
const reasonForOthers = "this client may not do this, or not now"

// answerLocked returns the envelope that answers d. The sender gets the reason, if d is
// refused, and the action as it was sent, as far as the host repeats that. Others get
// only an action that contains nothing of the sender's.
func (c *conn) answerLocked(d *ahp.Dispatch, reason string, others []byte) (e channel.Entry) {
	e.Seq = c.h.envelopes.Next()
	e.Own = &channel.Answer{To: c.link.Client.Party(), Msg: ahp.AppendEnvelope(nil, d.Channel, e.Seq, c.origin(d), reason, elided(d))}
	if reason != "" {
		reason = reasonForOthers
	}
	e.Msg = ahp.AppendEnvelope(nil, d.Channel, e.Seq, c.origin(d), reason, others)
	return e
}

// refuseLocked answers d with an envelope that carries the reason. All subscribers get
// one, as AHP requires, and the sender gets it even if it has not subscribed.
func (c *conn) refuseLocked(d *ahp.Dispatch, reason string) {
	if ahp.CheckURI(d.Channel) != nil || !c.echoes.Allow() {
		c.unanswered++
		return
	}
	e := c.answerLocked(d, reason, typeAlone(d))
	switch at := c.visibleLocked(d.Channel); {
	case at.term != nil:
		e.At = at.term.Out.End()
		at.term.Add(e, nil)
	case at.ch != nil:
		if at.session != nil {
			e.Only = c.link.Client.Party()
		}
		at.ch.Add(e, nil)
	}
	if c.subs[d.Channel] == nil {
		c.Tell(channel.Piece{Seq: e.Seq, Msg: e.Own.Msg})
	}
}

// channelLocked returns the topic with that URI, if there is one. It does not check who
// may see it.
func (h *Host) channelLocked(uri string) topic {
	if uri == ahp.RootURI {
		return topic{ch: h.terminals.Root}
	}
	if t := h.terminals.ByURI[uri]; t != nil {
		return topic{ch: t.Channel, term: t}
	}
	if s := h.sessions.Session(uri); s != nil {
		return topic{ch: s.Channel(uri), session: s}
	}
	return topic{}
}

// visibleLocked returns the topic with that URI, if there is one that this connection may
// see.
func (c *conn) visibleLocked(uri string) topic {
	at := c.h.channelLocked(uri)
	if at.term != nil && !c.link.Sees(at.term) || at.session != nil && !at.session.Sees(c, uri) {
		return topic{}
	}
	return at
}

// A rate limit, per connection, of refusals and other broadcasts that change nothing:
// each one costs every subscriber of the channel.
const (
	echoBurst = 64 // envelopes
	echoRate  = 16 // envelopes per second
)
