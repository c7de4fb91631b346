package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// probeWithin is how long the host has to answer when the machine has woken up or its network has changed, which is noticed within 3 s:
	// together less than the 5 s after which the link is to be back. A host without resume, where a new connection loses something, has a
	// whole heartbeat.
	probeWithin = 1500 * time.Millisecond
	// deaf is how many times as long a host may leave a ping unanswered while other things come from it: they may be all that a slow line
	// carries, or all that still comes through.
	deaf = 4
)

// beat is the time between pings: the link's, or a shorter one that the host asks for.
func (s *session) beat() time.Duration {
	asked := time.Duration(s.marker.HeartbeatMs) * time.Millisecond
	if asked <= 0 {
		return s.link.opts.Heartbeat
	}
	return min(s.link.opts.Heartbeat, asked)
}

// heartbeat returns when the host does not answer any more: at most two heartbeats after its last message.
func (s *session) heartbeat(ctx context.Context) error {
	tick := time.NewTicker(s.beat())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.ping(ctx, s.beat()); err != nil {
			return err
		}
	}
}

// probe returns when the host does not answer after a move.
func (s *session) probe(ctx context.Context) error {
	within := probeWithin
	if !s.marker.Resume {
		within = s.link.opts.Heartbeat
	}
	moved, _ := s.link.moves.wait()
	for {
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
		moved, _ = s.link.moves.wait() // one that comes during the ping counts
		if err := s.ping(ctx, within); err != nil {
			return err
		}
	}
}

// ping asks the host for a sign of life and fails if none came within that time; then the connection is closed, so that nothing waits for
// it.
func (s *session) ping(ctx context.Context, within time.Duration) error {
	for began := time.Now(); ; {
		asked := time.Now()
		call, cancel := context.WithTimeout(ctx, within)
		err := s.conn.Ping(call)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded) && s.heardSince(asked) && time.Since(began) < deaf*within:
			continue
		}
		_ = s.conn.Peer().Close() // now: a farewell would not be answered either
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the host did not answer within %v", within)
		}
		return fmt.Errorf("the host does not answer: %w", err)
	}
}

// hearing notes that something came. It runs on the connection's read goroutine.
func (s *session) hearing() { s.heard.Store(int64(time.Since(s.made))) }

// heardSince reports whether something came after t.
func (s *session) heardSince(t time.Time) bool {
	return s.made.Add(time.Duration(s.heard.Load())).After(t)
}
