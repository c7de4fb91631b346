package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/shells"
)

// provider is the agent's provider in sessions here: agents come through the host's
// doors.
const provider = "tether"

const (
	maxClientSessions = 16        // sessions that one client has created
	maxActiveClients  = 64        // clients with tools in one session
	maxCalls          = 16        // tool calls of one session at a time
	maxTurns          = 64        // turns that are kept
	maxTurnBytes      = 1 << 20   // bytes of tool calls: more begin no call in the same turn, and older turns give way
	maxToolResult     = 256 << 10 // bytes of a result
	maxPublished      = 64 << 10  // bytes of a client's publication, or of another dispatch on a session
)

var (
	// ErrNoSession is returned for a session that is not there, or not any more.
	ErrNoSession = errors.New("host: no such session")
	errSessions  = errors.New("host: too many sessions")
	errNotText   = errors.New("not valid UTF-8")
)

// Session is a session at the host with its one chat. Agents' actions in it are tool
// calls: of tools that clients have published (CallTool), and of the host's own, which
// may use terminals (Begin). Its methods may be called from any goroutine.
//
//	ready → ended: disposed of, or its creator has gone and nobody else is in it
type Session struct {
	h       *Host
	uri     string
	chat    *channel.Channel // the channels never change
	channel *channel.Channel
	creator *client // nil: the host made it
	person  string  // id of the person who owns it; empty: the administrator
	holder  *client // stands for the session as the creator of terminals

	// Guarded by the host's mutex.
	state     ahp.SessionState
	talk      ahp.ChatState
	created   time.Time
	modified  time.Time
	members   map[string]*client   // with tools here, by clientId
	calls     map[string]*toolCall // under way, by id
	starting  int                  // terminals of calls that are on their way
	agent     NodeAgent            // whose it is, in agentSessions
	unhook    func() bool          // the end of its agent's token does not end it any more; nil if that never did: the agent is at another node
	turnCalls int                  // ever begun, for ids
	turnBytes int                  // of the calls of the active turn
	kept      []int                // bytes of the turns that are kept
	began     time.Time            // the active turn
	ended     bool
}

// URI names the session's channel.
func (s *Session) URI() string { return s.uri }

// Session returns the session with that URI, or ErrNoSession.
func (h *Host) Session(uri string) (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[uri]; s != nil && s.uri == uri {
		return s, nil
	}
	return nil, ErrNoSession
}

// NewSession makes a session of the host's own, in which all machines may publish their
// tools. It fails without Options.Sessions, and when there are too many.
func (h *Host) NewSession(title string) (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addSessionLocked(ahp.SessionScheme+rand.Text(), nil, "", ahp.SessionState{Title: cleanTitle(title)})
}

// addSessionLocked makes a session that belongs to a person. Its URI is not in use.
func (h *Host) addSessionLocked(uri string, creator *client, person string, state ahp.SessionState) (*Session, error) {
	switch {
	case !h.opts.Sessions || h.closed:
		return nil, errors.New("host: this host has no sessions")
	case len(h.sessions) >= 2*h.opts.MaxSessions: // each is there by two URIs
		return nil, errSessions
	}
	state.Title = cmp.Or(state.Title, defaultSessionTitle)
	now := time.Now()
	chat := ahp.ChatScheme + rand.Text()
	h.envelopes.Next() // so that no snapshot of an earlier session with this URI passes for one of this
	s := &Session{h: h, uri: uri, channel: h.envelopes.NewChannel(uri), chat: h.envelopes.NewChannel(chat), creator: creator, person: person,
		holder:  &client{id: uri, principal: rights.Principal{Role: rights.RoleAdmin, Owner: person}},
		created: now, modified: now, members: make(map[string]*client), calls: make(map[string]*toolCall)}
	summary := ahp.ChatSummary{Resource: chat, Title: state.Title, Status: ahp.SessionIdle, ModifiedAt: ahp.FormatTime(now)}
	state.Provider, state.Status, state.Lifecycle, state.DefaultChat = provider, ahp.SessionIdle, ahp.LifecycleReady, chat
	state.Chats = []ahp.ChatSummary{summary}
	s.state, s.talk = state, ahp.ChatState{ChatSummary: summary}
	h.sessions[uri], h.sessions[chat] = s, s
	h.sessionChangedLocked(s)
	return s, nil
}

// at is one of the session's channels.
func (s *Session) at(uri string) *channel.Channel {
	if uri == s.chat.URI() {
		return s.chat
	}
	return s.channel
}

// Dispose ends the session: its calls fail, the terminals that it holds are disposed of.
// It may be called again.
func (s *Session) Dispose() {
	s.h.mu.Lock()
	procs := s.disposeLocked("the session was disposed of")
	s.h.mu.Unlock()
	kill(procs)
}

// disposeLocked returns the processes that are to be killed without the lock.
func (s *Session) disposeLocked(why string) (procs []shells.Process) {
	if s.ended {
		return nil
	}
	for _, call := range s.calls {
		s.finishLocked(call, failed(why), nil)
	}
	for _, t := range s.h.heldLocked(s) {
		if t.proc() != nil {
			procs = append(procs, t.proc())
		}
		s.h.disposeLocked(t, nil)
	}
	s.ended = true
	if s.unhook != nil {
		s.unhook()
	}
	delete(s.h.sessions, s.uri)
	delete(s.h.sessions, s.chat.URI())
	maps.DeleteFunc(s.h.agentSessions, func(_ string, of *Session) bool { return of == s })
	s.chat.End()
	s.channel.End()
	s.h.sessionChangedLocked(s)
	s.h.toolsChangedLocked()
	return procs
}

// heldLocked are the terminals that a session holds.
func (h *Host) heldLocked(s *Session) (held []*terminal) {
	for _, t := range h.order {
		if s.holds(t) {
			held = append(held, t)
		}
	}
	return held
}

func kill(procs []shells.Process) {
	for _, p := range procs {
		p.Kill()
	}
}

// summaryLocked is the session in the list.
func (s *Session) summaryLocked() ahp.SessionSummary {
	return ahp.SessionSummary{Resource: s.uri, Provider: s.state.Provider, Title: s.state.Title, Status: s.talk.Status,
		CreatedAt: ahp.FormatTime(s.created), ModifiedAt: ahp.FormatTime(s.modified), WorkingDirectories: s.state.WorkingDirectories}
}

// applyLocked changes the session and tells its subscribers; with only, that client and
// those that may see everything.
func (s *Session) applyLocked(a ahp.Action, origin *ahp.Origin, only *client) {
	s.state = ahp.ReduceSession(s.state, a)
	s.h.logLocked(s.channel, a, origin, only)
}

// sayLocked changes the chat and tells its subscribers.
func (s *Session) sayLocked(a ahp.Action, origin *ahp.Origin) {
	s.modified = time.Now()
	s.talk = ahp.ReduceChat(s.talk, a, s.modified)
	s.turnBytes += s.h.logLocked(s.chat, a, origin, nil)
}

func (h *Host) logLocked(ch *channel.Channel, a ahp.Action, origin *ahp.Origin, only *client) (size int) {
	e := channel.Entry{Piece: h.pieceLocked(ch.URI(), a, origin)}
	if only != nil {
		e.Only = only.party
	}
	ch.Add(e, nil)
	return len(e.Msg)
}

// openTurnLocked sees to it that there is a turn: calls that overlap share one.
func (s *Session) openTurnLocked(agent string) string {
	if t := s.talk.ActiveTurn; t != nil {
		return t.ID
	}
	s.turnBytes, s.began = 0, time.Now()
	id := rand.Text()
	s.sayLocked(ahp.ChatTurnStarted{TurnID: id, StartedAt: ahp.FormatTime(s.began),
		Message: ahp.Message{Text: "Tool calls of " + agent, Origin: ahp.MessageOrigin{Kind: "agent"}}}, nil)
	s.chatChangedLocked()
	return id
}

// closeTurnLocked ends the turn when its last call has ended, and lets old turns go.
func (s *Session) closeTurnLocked() {
	t := s.talk.ActiveTurn
	if t == nil || len(s.calls) > 0 {
		return
	}
	s.sayLocked(ahp.ChatTurnComplete{TurnID: t.ID, Duration: float64(time.Since(s.began).Milliseconds())}, nil)
	s.turnOverLocked()
}

// turnOverLocked announces that the chat rests and bounds its kept turns, which
// subscribers may keep for longer.
func (s *Session) turnOverLocked() {
	s.kept = append(s.kept, s.turnBytes)
	sum := 0
	for _, n := range s.kept {
		sum += n
	}
	drop := 0
	for len(s.kept)-drop > 1 && (len(s.kept)-drop > maxTurns || sum > maxTurnBytes) {
		sum -= s.kept[drop]
		drop++
	}
	if drop > 0 {
		s.kept = append([]int(nil), s.kept[drop:]...)
		s.talk.Turns = append([]ahp.Turn(nil), s.talk.Turns[drop:]...)
	}
	s.chatChangedLocked()
}

// chatChangedLocked tells in the session, and in the list, how the chat is.
func (s *Session) chatChangedLocked() {
	status, modified := s.talk.Status, s.talk.ModifiedAt
	s.applyLocked(ahp.SessionChatUpdated{Chat: s.chat.URI(),
		Changes: ahp.PartialChatSummary{Status: &status, ModifiedAt: &modified}}, nil, nil)
	s.h.sessionChangedLocked(s)
}

// agentSessionLocked is the session of an agent, or nil: a session of a former agent of
// the name, of another owner, may be about to end.
func (h *Host) agentSessionLocked(p rights.Principal) *Session {
	if s := h.agentSessions[p.Name]; s != nil && s.person == p.Owner {
		return s
	}
	return nil
}

// agentSession gives an agent that uses the MCP door a session of its own, so that
// machines can tell agents apart. It ends with the last token of the agent's name, or
// when it is disposed of: that ends the agent's calls and terminals, not the agent, who
// gets another one with the next message. Other requests must not call this, such as the
// one by which an agent disconnects. If there are too many sessions, the agent has none.
func (h *Host) agentSession(p rights.Principal) {
	if !h.opts.Sessions || !p.May(rights.Sessions) {
		return
	}
	live := h.Lasting(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.agentSessions[p.Name]
	if s == nil && live.Err() == nil {
		s = h.addAgentSessionLocked(p)
	}
	if s == nil || s.unhook != nil || s.person != p.Owner {
		return
	}
	s.agent = NodeAgent{p.Name, p.Role, p.Owner}
	s.unhook = context.AfterFunc(live, s.Dispose)
	h.elsewhere.moved.Raise()
}

// addAgentSessionLocked makes the session of an agent, nil if there are too many. Until
// the agent is at this node, its token does not end it.
func (h *Host) addAgentSessionLocked(p rights.Principal) *Session {
	title := "agent " + p.Name
	if p.Name == "" {
		title = "agent"
	}
	s, err := h.addSessionLocked(ahp.SessionScheme+rand.Text(), nil, p.Owner, ahp.SessionState{Title: title})
	if err != nil {
		return nil
	}
	s.agent = NodeAgent{p.Name, p.Role, p.Owner}
	h.agentSessions[p.Name] = s
	return s
}
