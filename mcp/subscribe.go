package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
)

const (
	// updateEvery is the shortest time between two notifications about one terminal: the first comes at once, a flood is not one each.
	updateEvery = 250 * time.Millisecond
	// maxWatched bounds the terminals that are subscribed to at a time.
	maxWatched = 256
)

// subscriptions are the terminals that sessions want to hear about. The notifications themselves go through the SDK, which knows the
// sessions of each URI; here is one watcher per URI.
type subscriptions struct {
	mu       sync.Mutex
	watched  map[string]*watch
	sessions map[*sdk.ServerSession]bool // whose end is waited for
	closed   bool
	wg       sync.WaitGroup
}

// watch is one terminal. Guarded by subscriptions.mu.
type watch struct {
	sessions map[*sdk.ServerSession]bool
	cancel   context.CancelFunc
}

// subscribe is called before the SDK notes the session.
func (s *Server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if req.Extra != nil && req.Extra.Header.Get(elsewhereHeader) != "" {
		return fmt.Errorf("this session is of another node, which alone can tell of changes: begin a new session here to subscribe")
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

// forget drops a session's subscriptions when it ends. A session over HTTP is ended here when it has been silent for FollowIdle: few
// clients say that they are gone, and absent ones would be counted among the observers.
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

// endSilent ends the session when it has been silent for FollowIdle, unless it ends before.
func (s *Server) endSilent(session *sdk.ServerSession, ended <-chan struct{}) {
	for {
		left, ok := s.uses.left(session.ID(), s.opts.FollowIdle)
		if !ok {
			return // not over HTTP: its end is seen
		}
		if left <= 0 {
			session.Close() // quick: nothing is under way
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

// watch notifies the sessions of new output, and of the exit. Output that arrives meanwhile, or before the next notification is due, is one
// notification.
func (s *Server) watch(ctx context.Context, uri string, rd agenttools.Reader) {
	defer rd.Close()
	buf := make([]byte, 32<<10)
	for {
		ev, err := rd.Next(ctx, buf)
		if err != nil {
			return
		}
		ended := ev.Exited
		for !ended {
			more, ok, err := rd.TryNext(buf)
			if err != nil || !ok {
				break
			}
			ended = more.Exited
		}
		_ = s.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		if ended {
			return
		}
		select {
		case <-time.After(updateEvery):
		case <-ctx.Done():
			return
		}
	}
}

// close waits for the watchers, whose context has ended.
func (q *subscriptions) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wg.Wait()
}
