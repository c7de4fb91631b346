package sessions

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
)

// Session is a session with its one chat. Agents' actions in it are tool calls: of tools
// that clients have published, and of the host's own. The book's lock guards it.
//
//	ready → ended: disposed of, or its creator has gone and nobody else is in it
type Session struct {
	book    *Book
	uri     string
	channel *channel.Channel // the channels never change
	chat    *channel.Channel
	creator Client // nil: the host made it
	person  string // id of the person who owns it; empty: the administrator
	holder  Client // stands for the session as the creator of shells
	caller  *Caller

	state     ahp.SessionState
	talk      ahp.ChatState
	created   time.Time
	modified  time.Time
	members   map[string]Client    // with tools here, by clientId
	calls     map[string]*toolCall // under way, by id
	starting  int                  // shells of calls that are being started
	agent     rights.Named         // whose it is, in Agents.sessions
	unhook    func() bool          // keeps the end of its agent's token from ending it; nil: that never did, as the agent is at another node
	turnCalls int                  // ever begun, for ids
	turnBytes int                  // of the calls of the active turn
	kept      []int                // bytes of the turns that are kept
	began     time.Time            // the active turn
	ended     bool
}

// add makes a session that belongs to a person. Its URI is not in use.
func (b *Book) add(uri string, creator Client, person string, state ahp.SessionState) (*Session, error) {
	switch {
	case b.o.Max == 0 || b.closed:
		return nil, errors.New("host: this host has no sessions")
	case len(b.byURI) >= 2*b.o.Max: // each has two URIs
		return nil, errSessions
	}
	state.Title = cmp.Or(state.Title, defaultTitle)
	now := time.Now()
	chat := ahp.ChatScheme + rand.Text()
	b.o.Order.Next() // so that no snapshot of an earlier session with this URI passes for one of this session
	s := &Session{book: b, uri: uri, channel: b.o.Order.NewChannel(uri), chat: b.o.Order.NewChannel(chat), creator: creator, person: person,
		holder:  b.o.Shells.Creator(uri, rights.Principal{Role: rights.RoleAdmin, Owner: person}),
		created: now, modified: now, members: map[string]Client{}, calls: map[string]*toolCall{}}
	s.caller = &Caller{s}
	summary := ahp.ChatSummary{Resource: chat, Title: state.Title, Status: ahp.SessionIdle, ModifiedAt: ahp.FormatTime(now)}
	state.Provider, state.Status, state.Lifecycle, state.DefaultChat = Provider, ahp.SessionIdle, ahp.LifecycleReady, chat
	state.Chats = []ahp.ChatSummary{summary}
	s.state, s.talk = state, ahp.ChatState{ChatSummary: summary}
	b.byURI[uri], b.byURI[chat] = s, s
	b.changed(s)
	return s, nil
}

// Channel returns one of the session's two channels, by its URI.
func (s *Session) Channel(uri string) *channel.Channel {
	if s.isChat(uri) {
		return s.chat
	}
	return s.channel
}

func (s *Session) isChat(uri string) bool { return uri == s.chat.URI() }

// Unsubscribed is called when a client has ended its subscription to a channel of the
// session: without the session's own channel it is no member.
func (s *Session) Unsubscribed(cl Client, uri string) {
	if !s.isChat(uri) {
		s.leave(cl, nil)
	}
}

// idle reports that nobody uses the session.
func (s *Session) idle() bool {
	return len(s.members)+len(s.calls)+len(s.channel.Subscriptions())+len(s.chat.Subscriptions())+len(s.held()) == 0
}

// dispose ends the session: its calls fail, and the shells that it holds are disposed of.
// It returns these, to be killed without the lock.
func (s *Session) dispose(why string) (killed []Shell) {
	if s.ended {
		return nil
	}
	for _, call := range s.calls {
		s.finish(call, Failed(why), nil)
	}
	killed = s.held()
	for _, t := range killed {
		t.Dispose()
	}
	s.ended = true
	if s.unhook != nil {
		s.unhook()
	}
	s.book.forget(s)
	s.chat.End()
	s.channel.End()
	s.book.changed(s)
	s.book.agents.ToolsChanged()
	return killed
}

// held returns the shells that the session holds.
func (s *Session) held() []Shell { return s.book.o.Shells.Held(s.uri) }

// Open reports whether c may see everything in the session: also the chat, and messages
// between the session and others.
func (s *Session) Open(c Conn) bool {
	p := c.Principal()
	if s.book.o.Audiences() && !c.Owns(s.person) {
		return false
	}
	return p.May(rights.Sessions) || s.creator != nil && s.creator.Principal().Same(*p)
}

// sees reports whether c may know of the session. A machine sees, besides its own, those
// in which it may publish tools; Snapshot decides which parts of them.
func (s *Session) sees(c Conn) bool {
	p := c.Principal()
	return s.Open(c) || p.May(rights.Tools) && (s.creator == nil || s.creator.Principal().May(rights.Sessions)) && s.offered(p)
}

// Sees reports whether c may subscribe to one of the session's channels.
func (s *Session) Sees(c Conn, uri string) bool { return s.Open(c) || !s.isChat(uri) && s.sees(c) }

// offered reports whether a machine may publish its tools in the session: while audiences
// are in force, only where both belong to one person.
func (s *Session) offered(machine *rights.Principal) bool {
	return !s.book.o.Audiences() || machine.Owner == s.person
}

// Snapshot returns the state of one of the session's channels for c: of a chat the newest
// turns, with at most about limit bytes of those that have ended.
func (s *Session) Snapshot(uri string, c Conn, limit int) json.Marshaler {
	if s.isChat(uri) {
		talk, from := s.talk, len(s.kept)
		for from > 0 && s.kept[from-1] <= limit {
			from--
			limit -= s.kept[from]
		}
		talk.Turns = talk.Turns[from:]
		return talk
	}
	state := s.state
	if s.Open(c) {
		return state
	}
	state.ActiveClients, state.InputNeeded = nil, nil
	for _, a := range s.state.ActiveClients {
		if s.members[a.ClientID] == c.Client() {
			state.ActiveClients = append(state.ActiveClients, a)
		}
	}
	for _, r := range s.state.InputNeeded {
		if r.ClientID == c.Client().ID() {
			state.InputNeeded = append(state.InputNeeded, r)
		}
	}
	return state
}

// summary is the session in the list.
func (s *Session) summary() ahp.SessionSummary {
	return ahp.SessionSummary{Resource: s.uri, Provider: s.state.Provider, Title: s.state.Title, Status: s.talk.Status,
		CreatedAt: ahp.FormatTime(s.created), ModifiedAt: ahp.FormatTime(s.modified), WorkingDirectories: s.state.WorkingDirectories}
}

// apply changes the session and tells its subscribers; with only, that client and those
// that may see everything.
func (s *Session) apply(a ahp.Action, origin *ahp.Origin, only Client) {
	s.state = ahp.ReduceSession(s.state, a)
	s.log(s.channel, a, origin, only)
}

// say changes the chat and tells its subscribers.
func (s *Session) say(a ahp.Action, origin *ahp.Origin) {
	s.modified = time.Now()
	s.talk = ahp.ReduceChat(s.talk, a, s.modified)
	s.turnBytes += s.log(s.chat, a, origin, nil)
}

func (s *Session) log(ch *channel.Channel, a ahp.Action, origin *ahp.Origin, only Client) (size int) {
	seq := s.book.o.Order.Next()
	e := channel.Entry{Piece: channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, ch.URI(), seq, origin, "", ahp.AppendAction(nil, a))}}
	if only != nil {
		e.Only = only.Party()
	}
	ch.Add(e, nil)
	return len(e.Msg)
}

// openTurn returns the id of the turn under way, and begins one if there is none: calls
// that overlap share a turn.
func (s *Session) openTurn(agent string) string {
	if t := s.talk.ActiveTurn; t != nil {
		return t.ID
	}
	s.turnBytes, s.began = 0, time.Now()
	id := rand.Text()
	s.say(ahp.ChatTurnStarted{TurnID: id, StartedAt: ahp.FormatTime(s.began),
		Message: ahp.Message{Text: "Tool calls of " + agent, Origin: ahp.MessageOrigin{Kind: "agent"}}}, nil)
	s.chatChanged()
	return id
}

// closeTurn ends the turn when its last call has ended.
func (s *Session) closeTurn() {
	t := s.talk.ActiveTurn
	if t == nil || len(s.calls) > 0 {
		return
	}
	s.say(ahp.ChatTurnComplete{TurnID: t.ID, Duration: float64(time.Since(s.began).Milliseconds())}, nil)
	s.turnOver()
}

// turnOver announces that the chat rests, and drops the oldest turns beyond the bounds.
// Subscribers may keep those for longer.
func (s *Session) turnOver() {
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
	s.chatChanged()
}

// chatChanged announces the chat's status, in the session and in the list.
func (s *Session) chatChanged() {
	status, modified := s.talk.Status, s.talk.ModifiedAt
	s.apply(ahp.SessionChatUpdated{Chat: s.chat.URI(),
		Changes: ahp.PartialChatSummary{Status: &status, ModifiedAt: &modified}}, nil, nil)
	s.book.changed(s)
}
