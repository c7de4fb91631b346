package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/retry"
)

const (
	// updateEvery is the shortest time between two notifications about one terminal. The
	// first notification is sent at once.
	updateEvery = 250 * time.Millisecond
	// maxWatched bounds the terminals that have subscribers.
	maxWatched = 256
)

// subscriptions holds the terminals that sessions have subscribed to, with one watcher
// for each URI. The SDK knows the sessions of each URI and sends them the notifications.
type subscriptions struct {
	mu       sync.Mutex
	watched  map[string]*watch           // by URI
	sessions map[*sdk.ServerSession]bool // sessions that have a goroutine in forget
	closed   bool
	wg       sync.WaitGroup
}

// watch is one terminal with subscribers. It is guarded by subscriptions.mu.
type watch struct {
	sessions map[*sdk.ServerSession]bool
	cancel   context.CancelFunc
}

// subscribe handles resources/subscribe. The SDK calls it before it records the session
// as a subscriber.
func (s *Server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if req.Extra != nil && req.Extra.Header.Get(elsewhereHeader) != "" {
		return fmt.Errorf("this session belongs to another node, and only that node can send its notifications: begin a new session here to subscribe")
	}
	uri := req.Params.URI
	id, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return sdk.ResourceNotFoundError(uri)
	}
	t, err := s.tools.Terminals().Open(id)
	if err != nil {
		return sdk.ResourceNotFoundError(uri)
	}
	q := &s.subs
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("the server is shutting down")
	}
	if q.watched == nil {
		q.watched, q.sessions = map[string]*watch{}, map[*sdk.ServerSession]bool{}
	}
	w := q.watched[uri]
	if w == nil {
		if len(q.watched) >= maxWatched {
			return fmt.Errorf("%d terminals are subscribed, the maximum", maxWatched)
		}
		ctx, cancel := context.WithCancel(s.ctx)
		w = &watch{sessions: map[*sdk.ServerSession]bool{}, cancel: cancel}
		rd, err := t.Read(t.Info().End)
		if err != nil {
			cancel()
			return err
		}
		q.watched[uri] = w
		q.wg.Go(func() { s.watch(ctx, uri, rd) })
	}
	w.sessions[req.Session] = true
	if !q.sessions[req.Session] {
		q.sessions[req.Session] = true
		q.wg.Go(func() { s.forget(req.Session) })
	}
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	s.subs.leaveLocked(req.Params.URI, req.Session)
	return nil
}

// leaveLocked removes a subscription, and ends the watcher if it was the last one of the
// URI.
func (q *subscriptions) leaveLocked(uri string, session *sdk.ServerSession) {
	w := q.watched[uri]
	if w == nil {
		return
	}
	if delete(w.sessions, session); len(w.sessions) == 0 {
		w.cancel()
		delete(q.watched, uri)
	}
}

// forget waits for the end of a session and removes its subscriptions. It also ends a
// session over HTTP that had no request for FollowIdle: few clients end their sessions,
// and an absent client would count as an observer.
func (s *Server) forget(session *sdk.ServerSession) {
	ended := make(chan struct{})
	s.subs.wg.Go(func() { s.endSilent(session, ended) })
	_ = session.Wait()
	close(ended)
	s.subs.mu.Lock()
	defer s.subs.mu.Unlock()
	delete(s.subs.sessions, session)
	for uri := range s.subs.watched {
		s.subs.leaveLocked(uri, session)
	}
}

// endSilent ends a session over HTTP when it had no request for FollowIdle. It returns
// early when ended is closed.
func (s *Server) endSilent(session *sdk.ServerSession, ended <-chan struct{}) {
	for {
		left, ok := s.uses.left(session.ID(), s.opts.FollowIdle)
		if !ok {
			return // the session is not over HTTP: it ends with its stream
		}
		if left <= 0 {
			session.Close() // does not block: the session has no request
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return
		}
	}
}

// watch notifies the sessions of new output and of the exit. All output that arrives
// until the next notification is due causes one notification.
func (s *Server) watch(ctx context.Context, uri string, rd agenttools.Reader) {
	defer rd.Close()
	var buf [512]byte
	for {
		ev, err := rd.Next(ctx, buf[:])
		if err != nil {
			return
		}
		ended := ev.Exited
		for more := range agenttools.Available(rd) {
			ended = ended || more.Exited
		}
		_ = s.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		if ended {
			return
		}
		if !retry.Wait(ctx, updateEvery) {
			return
		}
	}
}

// close refuses further subscriptions and waits for the goroutines. The server's context
// and its sessions must have ended before.
func (q *subscriptions) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wg.Wait()
}
