package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
	"tether/jsonrpc"
	"tether/vocab"
)

// session is one connection to the host.
//
// Goroutines: run announces and withdraws as the pool changes; heartbeat and probe
// ping; one publisher per lent terminal; two answer the host's questions, and
// servePorts its requests for lent ports, once there are any. The connection's read
// goroutine calls onEnvelope, onNotification and onRequest, which never block.
type session struct {
	link *Link
	log  zerolog.Logger
	conn *client.Conn
	made time.Time               // when dialling began
	fail context.CancelCauseFunc // ends run with this error; set by run

	marker  ahp.ClientTerminals // set by run before any publisher starts
	trial   trial               // of a host without the marker; set like marker
	left    time.Time           // when the former connection ended, zero if unknown; set like marker
	began   time.Time           // set by run
	live    atomic.Bool         // envelopes are new; before, they are a replay
	lastSeq atomic.Int64        // serverSeq of the last envelope
	heard   atomic.Int64        // when something last arrived, in nanoseconds since made

	asked   chan *question // the host's questions; those that find no room are refused
	streams chan net.Conn  // 1 slot: one that the host has begun, for announce to serve

	mu    sync.Mutex
	ended []*lending    // by the host, and not settled yet
	wake  chan struct{} // 1 slot: ended has grown, or a publisher has ended

	// Owned by run.
	publishers map[term.ID]*publication
	wg         sync.WaitGroup
}

// publication is a running publisher.
type publication struct {
	le     *lending
	cancel context.CancelFunc
	done   chan struct{}
	lost   bool // it ended because the terminal was withdrawn; set before done is closed
	gone   bool // withdrawn; owned by run
}

// over reports whether the publisher has ended.
func (p *publication) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// run serves the connection until it or ctx ends.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.fail, s.began = cancel, time.Now()
	if err := s.greet(); err != nil {
		return err
	}
	defer s.leave()
	s.publishers = map[term.ID]*publication{}
	defer s.wg.Wait()
	defer cancel(nil)
	s.wg.Go(func() { cancel(s.heartbeat(ctx)) })
	s.wg.Go(func() { cancel(s.probe(ctx)) })
	if s.link.opts.Runs != nil && s.marker.Runs {
		for range askedAtOnce {
			s.wg.Go(func() { s.answerRuns(ctx) })
		}
	}
	if tools := s.link.opts.Tools; tools != nil {
		s.wg.Go(func() { tools.Serve(ctx, s.conn) })
	}
	s.wg.Go(func() {
		select {
		case <-s.conn.Done():
			cancel(fmt.Errorf("connection lost: %w", s.conn.Err()))
		case <-ctx.Done():
		}
	})
	s.announce(ctx)
	return context.Cause(ctx)
}

// greet decides whether the host can show our terminals.
func (s *session) greet() error {
	r := s.conn.Result()
	marker, ok := ahp.FindClientTerminals(r)
	if !ok && !s.link.opts.AssumeClientTerminals {
		return fmt.Errorf("%w (%s)", ErrUnsupported, serverName(r))
	}
	if marker.Forbids() {
		return errForbidden
	}
	s.marker = marker
	if !ok {
		s.trial = newTrial()
	}
	s.lastSeq.Store(max(s.lastSeq.Load(), r.ServerSeq))
	s.link.mu.Lock()
	st := &s.link.status
	st.Version, st.Server, st.Resume = r.ProtocolVersion, serverName(r), marker.Resume
	st.ClockSkew, _ = s.conn.ClockSkew()
	st.LentMeans = vocab.LentToEverybody
	if marker.KeepsAudiences() {
		st.LentMeans, st.Owner = vocab.LentToAudience, fit(marker.Audiences.Owner, maxWho)
	}
	st.Shares, st.Park = marker.Shares, s.keeps()
	s.left, s.link.session = s.link.left, s
	clear(s.link.kept)
	s.link.mu.Unlock()
	s.live.Store(true)
	s.link.setState(StateOnline, nil, time.Time{})
	s.log.Info().Str("version", r.ProtocolVersion).Str("server", serverName(r)).Bool("resume", marker.Resume).Msg("link up")
	return nil
}

func serverName(r ahp.InitializeResult) string {
	if r.ServerInfo == nil || r.ServerInfo.Name == "" {
		return "a host without a name"
	}
	return fit(r.ServerInfo.Name+" "+r.ServerInfo.Version, 100)
}

// leave stores the state with which the next connection continues this one.
func (s *session) leave() {
	for _, le := range s.link.unwatched() {
		s.link.opts.Watched(le.h.ID(), nil)
	}
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	s.link.session = nil
	s.link.roseLocked()
	s.link.resume = &resumption{initial: s.conn.Result(), lastSeq: s.lastSeq.Load()}
	s.link.left = time.Now()
	s.keptLocked(s.link.left)
	for _, le := range s.link.lendings {
		le.sent, le.observers, le.there = max(le.acked, 0), nil, false
		le.watchers, le.sentVersion, le.shares = nil, 0, nil
		le.before = le.before || le.created
		if !s.marker.Resume {
			le.created = false // without resume, the host drops the terminal with the connection
		}
		if s.marker.Resume && le.exited {
			le.finished = false // the next connection checks whether the host still has it
		}
	}
}

// announce keeps one publisher per lent terminal until ctx ends.
func (s *session) announce(ctx context.Context) {
	changes := make(chan struct{}, 1)
	s.wg.Go(func() { s.watch(ctx, changes) })
	part, once := s.link.part, sync.OnceFunc(func() { s.wg.Go(func() { s.reclaim(ctx) }) })
	for {
		s.settle()
		s.match(ctx)
		once()
		select {
		case <-part:
			part = nil
		case stream := <-s.streams:
			s.takeStream(ctx, stream)
		case <-changes:
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// watch signals changes of the pool.
func (s *session) watch(ctx context.Context, changes chan<- struct{}) {
	var version uint64
	for {
		var err error
		if version, err = s.link.opts.Terminals.Changed(ctx, version); err != nil {
			return
		}
		change.Wake(changes)
	}
}

// match starts and stops publishers to match the lent terminals. It waits neither for the
// host nor for the network, so that nothing of a withdrawn terminal is sent any more.
func (s *session) match(ctx context.Context) {
	list := s.link.lent()
	keep := make(map[term.ID]bool, len(list))
	for _, h := range list {
		p := s.publishers[h.ID()]
		keep[h.ID()] = p == nil || p.le.h == h // otherwise the connection to its holder was lost and made again: p's reader has ended
	}
	s.silence(keep)
	for _, uri := range s.link.retire(keep) {
		s.wg.Go(func() { s.withdraw(ctx, uri) })
	}
	for _, h := range list {
		if p := s.publishers[h.ID()]; p != nil {
			s.noteAudience(ctx, p)
			continue
		}
		s.publish(ctx, s.link.lend(h))
	}
}

// silence stops the publishers of terminals that are not in keep, and drops their queued
// messages. A publisher in the middle of a write cannot be stopped at once: it and its
// lending stay until the write has ended, which wakes announce.
func (s *session) silence(keep map[term.ID]bool) {
	var ended []term.ID
	channels := map[string]bool{}
	for id, p := range s.publishers {
		if p.gone = p.gone || !keep[id] || p.over() && p.lost; !p.gone {
			continue
		}
		p.cancel()
		if p.over() {
			ended = append(ended, id)
		} else {
			keep[id] = true
		}
		s.link.update(p.le, func(le *lending) { channels[le.uri] = true })
	}
	if len(channels) == 0 {
		return
	}
	s.conn.Peer().Drop(func(msg []byte) bool { return channels[ahp.DispatchedTo(msg)] })
	for _, id := range ended {
		delete(s.publishers, id)
		delete(keep, id)
	}
}

// publish starts the publisher of one terminal.
func (s *session) publish(ctx context.Context, le *lending) {
	ctx, cancel := context.WithCancel(ctx)
	p := &publication{le: le, cancel: cancel, done: make(chan struct{})}
	s.publishers[le.h.ID()] = p
	s.wg.Go(func() {
		p.lost = s.keepPublishing(ctx, le)
		cancel()
		close(p.done)
		s.rouse()
	})
}

// rouse makes announce look again. It does not block.
func (s *session) rouse() {
	change.Wake(s.wake)
}

// keepPublishing runs publishers and retries after failures, at growing intervals: the
// host may be busy for a moment, while the connection lasts for weeks. It reports whether
// it ended because the terminal was withdrawn. The terminal may be lent again before
// match looks; match must then start a new publisher.
func (s *session) keepPublishing(ctx context.Context, le *lending) (withdrawn bool) {
	var retry backoff
	for {
		err := newPublisher(s, le).run(ctx)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, errWrongTarget), errors.Is(err, jsonrpc.ErrClosed):
			return false // nothing is left to send, or the session ends too
		case errors.Is(err, term.ErrNotFound), errors.Is(err, io.ErrClosedPipe):
			return true
		}
		s.link.update(le, func(le *lending) {
			le.problem = shownError{err}.Error()
			s.link.roseLocked()
		})
		s.log.Warn().Err(shownError{err}).Str("terminal", string(le.h.ID())).Msg("terminal not published")
		select {
		case <-time.After(retry.next(patient)):
		case <-le.again:
		case <-ctx.Done():
			return false
		}
	}
}

// callTimeout bounds a request: VS Code answers createTerminal only after the first
// output or 10 s.
const callTimeout = 30 * time.Second

// withdraw removes a terminal from the host. If the host does not answer, the next match
// tries again, on this connection or another.
func (s *session) withdraw(ctx context.Context, uri string) {
	ctx, cancel := s.lasting(ctx)
	defer cancel()
	err := s.conn.DisposeTerminal(ctx, uri)
	_, refused := errors.AsType[*jsonrpc.Error](err)
	s.link.disposed(uri, err == nil || refused)
}
