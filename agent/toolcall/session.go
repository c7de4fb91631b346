package toolcall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// Bounds of the followed sessions.
const (
	maxSessions = 256     // of one host; if it has more when the connection begins, the newest are followed
	maxHeld     = 1 << 20 // bytes of actions that wait for a snapshot; a session with more is left
	pageSize    = 100     // sessions that are asked for at once

	callTimeout = 30 * time.Second // of a request; hosts may take long for a snapshot
	retryAfter  = 30 * time.Second // for a session that could not be followed
	findAfter   = 10 * time.Minute // for a host whose sessions could not be listed
	partTimeout = 2 * time.Second  // Options.Parting by default
)

// session is a session of the host. It is guarded by the desk's mutex.
//
//	listed ──▶ joining ──(snapshot)──▶ joined
//	   ▲──(refused, for a while)──┘
type session struct {
	uri      string
	joining  bool
	joined   bool
	due      time.Time // when joining may be tried again
	applied  int64     // serverSeq of the snapshot
	held     []held    // while joining
	heldSize int
}

// held is an action that came before the snapshot.
type held struct {
	seq    int64
	action ahp.Action
}

// attend follows the sessions and offers the tools until the desk is switched off, after
// which nothing is offered any more, or ctx or the connection ends.
func (d *Desk) attend(ctx context.Context, conn *client.Conn) {
	d.open()
	defer d.shut()
	telling, stop := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() { defer close(told); d.teller(telling, conn) }()
	defer func() { stop(); <-told }()

	found := false
	for d.isOn() {
		wait := findAfter
		if !found {
			err := d.find(ctx, conn)
			found = err == nil
			d.trouble(ctx, err)
		}
		if found {
			wait = d.join(ctx, conn)
		}
		timer := time.NewTimer(wait)
		select {
		case <-d.wake:
		case <-timer.C:
		case <-conn.Done():
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || conn.Err() != nil {
			return
		}
	}
	d.withdraw(ctx, conn)
}

// open prepares for a new connection: nothing is known about the host's sessions yet.
func (d *Desk) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastConn++
	d.serving, d.idle = d.lastConn, make(chan struct{})
	d.sessions, d.outbox, d.status.Problem = map[string]*session{}, nil, ""
	for _, c := range d.order {
		c.queued = false
	}
}

func (d *Desk) shut() {
	d.mu.Lock()
	close(d.idle)
	d.followed = nil
	for uri, s := range d.sessions {
		if s.joined && d.on {
			d.followed = append(d.followed, uri)
		}
	}
	d.serving, d.idle, d.sessions, d.telling = 0, nil, map[string]*session{}, false
	d.mu.Unlock()
	d.report()
}

// trouble notes why sessions cannot be followed.
func (d *Desk) trouble(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, jsonrpc.ErrClosed) {
		return
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
		err = errors.New("the host has no sessions")
	}
	d.mu.Lock()
	d.status.Problem = err.Error()
	d.mu.Unlock()
	d.log.Warn().Err(err).Msg("tools are not offered")
}

// find asks for the host's sessions, and to be told of new ones.
func (d *Desk) find(ctx context.Context, conn *client.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := conn.Subscribe(ctx, ahp.RootURI); err != nil {
		return fmt.Errorf("follow the root channel: %w", err)
	}
	var all []ahp.SessionSummary
	for p := (ahp.ListSessionsParams{Limit: pageSize}); ; {
		r, err := conn.ListSessions(ctx, p)
		if err != nil {
			return fmt.Errorf("list the sessions: %w", err)
		}
		all = append(all, r.Items...)
		if p.Cursor = r.NextCursor; p.Cursor == "" || len(r.Items) == 0 || len(all) >= 10*pageSize {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b ahp.SessionSummary) int { return strings.Compare(b.ModifiedAt, a.ModifiedAt) })
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range all {
		d.addLocked(s)
	}
	return nil
}

// addLocked begins to follow a session, unless it was archived.
func (d *Desk) addLocked(s ahp.SessionSummary) {
	if d.sessions[s.Resource] != nil || s.Status&ahp.SessionIsArchived != 0 || ahp.CheckURI(s.Resource) != nil || len(d.sessions) >= maxSessions {
		return
	}
	d.sessions[s.Resource] = &session{uri: s.Resource}
}

// Notification takes a notification of the host's. It is called on the connection's read
// goroutine.
func (d *Desk) Notification(method string, params []byte) {
	if method != ahp.MethodSessionAdded && method != ahp.MethodSessionRemoved {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving == 0 || !d.on {
		return
	}
	var added ahp.SessionAddedParams
	var removed ahp.SessionRemovedParams
	switch {
	case method == ahp.MethodSessionAdded && jsonspan.Unmarshal(params, &added) == nil:
		d.addLocked(added.Summary)
	case method == ahp.MethodSessionRemoved && jsonspan.Unmarshal(params, &removed) == nil:
		d.dropLocked(removed.Session)
	}
	change.Wake(d.wake)
}

// dropLocked forgets a session; nobody waits for the answers to its calls.
func (d *Desk) dropLocked(uri string) {
	delete(d.sessions, uri)
	for _, c := range d.order {
		if c.session == uri {
			d.voidLocked(c)
		}
	}
}

// join follows the sessions that are not followed yet, and returns the time until it must
// be called again.
func (d *Desk) join(ctx context.Context, conn *client.Conn) (wait time.Duration) {
	wait = time.Hour
	d.mu.Lock()
	var todo []*session
	for _, s := range d.sessions {
		switch left := time.Until(s.due); {
		case s.joined:
		case left <= 0:
			todo = append(todo, s)
			s.joining = true
		default:
			wait = min(wait, left)
		}
	}
	d.mu.Unlock()
	for _, s := range todo {
		if !d.isOn() || ctx.Err() != nil {
			return 0
		}
		if err := d.joinOne(ctx, conn, s); err != nil {
			d.log.Debug().Err(err).Str("session", Tag(s.uri)).Msg("session not followed")
			d.left(s, err)
			wait = min(wait, retryAfter)
		}
	}
	return wait
}

// joinOne subscribes to a session and offers it the tools.
func (d *Desk) joinOne(ctx context.Context, conn *client.Conn, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := conn.Subscribe(ctx, s.uri)
	if err != nil {
		return err
	}
	var state struct {
		InputNeeded []ahp.InputRequest `json:"inputNeeded"`
	}
	seq := int64(0)
	if r.Snapshot != nil {
		seq = r.Snapshot.FromSeq
		if err := jsonspan.Unmarshal(r.Snapshot.State, &state); err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
	}
	offer := ahp.SessionActiveClientSet{ActiveClient: ahp.ActiveClient{ClientID: d.opts.ClientID, DisplayName: d.opts.Machine, Tools: d.opts.Tools}}
	if _, err := conn.Dispatch(ctx, s.uri, offer); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions[s.uri] == s && s.heldSize <= maxHeld {
		d.installLocked(s, seq, state.InputNeeded)
		return nil
	}
	return errors.New("the session ended, or too much arrived before its snapshot")
}

// left makes a session that could not be followed wait for its next attempt, unless the
// session is gone.
func (d *Desk) left(s *session, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.joining, s.joined, s.held, s.heldSize = false, false, nil, 0
	s.due = time.Now().Add(retryAfter)
	if e, ok := errors.AsType[*jsonrpc.Error](why); ok && ahp.IsGone(int64(e.Code)) && d.sessions[s.uri] == s {
		d.dropLocked(s.uri)
	}
}

// installLocked takes a session's pending requests, and the actions since.
func (d *Desk) installLocked(s *session, seq int64, needed []ahp.InputRequest) {
	s.joining, s.joined, s.applied = false, true, seq
	asked := map[string]bool{}
	for _, r := range needed {
		asked[r.ID] = true
	}
	for _, c := range d.order {
		if c.session == s.uri && !asked[c.id] {
			d.voidLocked(c) // answered, or given up
		}
	}
	for _, r := range needed {
		d.askedLocked(s, r)
	}
	waiting := s.held
	s.held, s.heldSize = nil, 0
	for _, h := range waiting {
		d.applyLocked(s, h.seq, h.action)
	}
}

// Envelope takes an envelope of the host's. It is called on the connection's read
// goroutine.
func (d *Desk) Envelope(v ahp.EnvelopeView) {
	if v.Kind != ahp.ActionSessionInputNeededSet && v.Kind != ahp.ActionSessionInputNeededRemoved && v.Kind != ahp.ActionSessionActiveClientSet {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[v.Channel]
	switch {
	case s == nil || d.serving == 0 || !d.on || !s.joining && !s.joined:
	case v.Kind == ahp.ActionSessionActiveClientSet:
		if v.Rejected && v.HasOrigin && v.Origin.ClientID == d.opts.ClientID {
			d.status.Problem = "the host refused the tools: " + fit(v.RejectionReason)
		}
	case v.Rejected:
	default:
		a, err := ahp.DecodeAction(v.Action)
		if err != nil {
			d.status.Ignored++
			return
		}
		if s.joining {
			if s.heldSize += len(v.Action); s.heldSize <= maxHeld {
				s.held = append(s.held, held{v.ServerSeq, a})
			}
			return
		}
		d.applyLocked(s, v.ServerSeq, a)
	}
}

// applyLocked applies an action of a joined session.
func (d *Desk) applyLocked(s *session, seq int64, a ahp.Action) {
	if seq <= s.applied {
		return
	}
	switch a := a.(type) {
	case ahp.SessionInputNeededSet:
		d.askedLocked(s, a.Request)
	case ahp.SessionInputNeededRemoved:
		for _, c := range d.order {
			if c.session == s.uri && c.id == a.ID {
				d.voidLocked(c)
			}
		}
	}
}

// withdraw ends the offer: running calls are told to end, and answered.
func (d *Desk) withdraw(ctx context.Context, conn *client.Conn) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Parting)
	defer cancel()
	d.quiet(ctx)
	d.mu.Lock()
	var joined []string
	for uri, s := range d.sessions {
		if s.joined {
			joined = append(joined, uri)
		}
	}
	d.mu.Unlock()
	for _, uri := range joined {
		if _, err := conn.Dispatch(ctx, uri, ahp.SessionActiveClientRemoved{ClientID: d.opts.ClientID}); err != nil {
			return
		}
		_ = conn.Unsubscribe(ctx, uri) // fails only with the connection
	}
	_ = conn.Unsubscribe(ctx, ahp.RootURI)
	_ = conn.Peer().Flush(ctx)
}

// quiet waits until no call runs and all is told, or ctx ends.
func (d *Desk) quiet(ctx context.Context) {
	for {
		d.mu.Lock()
		busy := d.running > 0 || len(d.outbox) > 0 || d.telling
		d.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-d.wake: // the end of a call, or of telling
		case <-ctx.Done():
			return
		}
	}
}

// fit makes text from the host short and safe enough to be shown.
func fit(s string) string {
	const most = 200 // bytes
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	return clip.Text(s, most)
}
