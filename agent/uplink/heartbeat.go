package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/internal/retry"
)

const (
	// probeWithin is how long the host has to answer after the machine woke up or changed
	// its network. Such a move is noticed within 3 s, so that the link is back within 5
	// s. A host without resume has a whole heartbeat, because a new connection there
	// loses something.
	probeWithin = 1500 * time.Millisecond
	// deaf is the factor by which a host may be late with the answer to a ping while
	// other messages arrive from it: they may take all of a slow line, or be the last
	// that still arrive on a dead one.
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

// heartbeat pings the host and returns an error when it does not answer any more: at most
// two heartbeats after its last message.
func (s *session) heartbeat(ctx context.Context) error {
	for retry.Wait(ctx, s.beat()) {
		if err := s.ping(ctx, s.beat()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// probe pings the host after each move, and returns an error when it does not answer.
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
		moved, _ = s.link.moves.wait() // before the ping, so that a move during it counts
		if err := s.ping(ctx, within); err != nil {
			return err
		}
	}
}

// ping sends a ping and fails if nothing arrived from the host within that time. It then
// closes the connection, so that nothing waits for it.
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
		_ = s.conn.Peer().Close() // without a close message: the host would not answer that either
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the host did not answer within %v", within)
		}
		return fmt.Errorf("the host does not answer: %w", err)
	}
}

// hearing records that something arrived. It runs on the connection's read goroutine.
func (s *session) hearing() { s.heard.Store(int64(time.Since(s.made))) }

// heardSince reports whether something arrived after t.
func (s *session) heardSince(t time.Time) bool {
	return s.made.Add(time.Duration(s.heard.Load())).After(t)
}
