package holder

import (
	"context"
	"encoding/binary"
	"fmt"

	"tether/platform/pty"
)

// A child that was started with a feed reads a pipe, not its terminal. The holder has the
// pipe's other end and counts the bytes that it has accepted, so that no byte is lost or
// comes twice when the daemon is replaced: the next daemon continues at that count.

// fed is a child with a feed.
type fed interface {
	Feed(ctx context.Context, off int64, p []byte, last bool) (next int64, err error)
	Unfed()
}

// maxFeeds bounds the pieces of one connection that wait for their turn. A daemon sends
// one at a time, and the end.
const maxFeeds = 4

// feedLast is the flag of kindFeed that says that nothing follows.
const feedLast = 1

// unfed says that no daemon writes the child's standard input until one does.
func (h *holder) unfed() {
	if c, ok := h.child.(fed); ok {
		c.Unfed()
	}
}

// feed passes a piece of standard input to the child, on a goroutine of its own because
// the child may not read. The reply, which has the offset of the next byte to accept,
// comes when the piece is in the pipe.
func (s *session) feed(request uint32, f *fields) error {
	off, flags := f.offset(), f.u8()
	p := append([]byte(nil), f.rest(maxInput)...)
	if f.bad {
		return errFrame
	}
	c, ok := s.h.child.(fed)
	if !ok {
		s.reply(request, pty.ErrNoFeed)
		return nil
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.feeds >= maxFeeds {
		return errBusy
	}
	s.feeds++
	s.h.tasks.Go(func() {
		next, err := c.Feed(s.feeding, off, p, flags&feedLast != 0)
		r := reply{request: request}
		if r.status, r.text = statusOf(err); err == nil {
			r.text = string(binary.BigEndian.AppendUint64(nil, uint64(next)))
		}
		s.h.mu.Lock()
		s.feeds--
		s.controlLocked(r.frame())
		s.h.mu.Unlock()
	})
	return nil
}

// Feed does what pty.PTY.Feed does, for the child of the holder. It accepts at most 32
// KiB at a time; next says how much. If ctx ends before the holder answers, p may be
// accepted all the same. The error is pty.ErrNoFeed also for a holder of an older
// program.
func (c *Client) Feed(ctx context.Context, off int64, p []byte, last bool) (next int64, err error) {
	if c.features&featureFeed == 0 {
		return 0, pty.ErrNoFeed
	}
	flags := byte(0)
	if last && len(p) <= maxInput {
		flags = feedLast
	}
	_, answer, err := c.begin(kindFeed, func(frame []byte) []byte {
		return append(append(binary.BigEndian.AppendUint64(frame, uint64(off)), flags), p[:min(len(p), maxInput)]...)
	})
	if err != nil {
		return 0, fmt.Errorf("write standard input: %w", err)
	}
	select {
	case r := <-answer:
		if err := c.outcome(r); err != nil {
			return 0, err
		}
		f := fields{b: []byte(r.text)}
		next = f.offset()
		return next, f.err()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
