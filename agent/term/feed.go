package term

import (
	"context"
	"errors"
	"os"
	"time"

	"tether/platform/pty"
)

// ErrNoFeed: the child's standard input is its terminal, see Spec.Feed.
var ErrNoFeed = pty.ErrNoFeed

// ErrFed: another program writes the child's standard input.
var ErrFed = errors.New("another program writes this terminal's standard input")

// fed is a PTY whose child may have a pipe as its standard input.
type fed interface {
	Feed(ctx context.Context, off int64, p []byte, last bool) (next int64, err error)
}

// Feeder is the writer of a child's standard input. It is for one goroutine, except
// Close.
type Feeder struct {
	h   Handle
	fed fed
}

// Feeder returns the writer of the child's standard input, and the offset of the first
// byte that the child still lacks: more than 0 if a writer at an earlier daemon has
// begun. There is one writer at a time; the caller must Close it. Errors: ErrNoFeed,
// ErrFed, ErrExited, ctx's, and os.ErrClosed once the input has ended.
func (h Handle) Feeder(ctx context.Context) (*Feeder, int64, error) {
	if err := h.allow(OpType); err != nil {
		return nil, 0, err
	}
	f, ok := h.t.pty.(fed)
	if !ok {
		return nil, 0, ErrNoFeed
	}
	if !h.t.feeding.CompareAndSwap(false, true) {
		return nil, 0, ErrFed
	}
	w := &Feeder{h, f}
	next, err := w.Write(ctx, 0, nil)
	if err != nil {
		h.t.feeding.Store(false)
		return nil, 0, err
	}
	return w, next, nil
}

// Write gives the child p, which begins at offset off of its standard input. It blocks
// while the child does not read, and returns the offset of the next byte that the child
// lacks, which may be less than the end of p. The error is os.ErrClosed if the child
// reads no more.
func (w *Feeder) Write(ctx context.Context, off int64, p []byte) (next int64, err error) {
	return w.put(ctx, off, p, false)
}

// End ends the child's standard input after the bytes that were accepted. It does not
// wait until the child has read them.
func (w *Feeder) End(ctx context.Context) error {
	_, err := w.put(ctx, 0, nil, true)
	return err
}

func (w *Feeder) put(ctx context.Context, off int64, p []byte, last bool) (next int64, err error) {
	if err := w.h.allow(OpType); err != nil {
		return 0, err
	}
	t := w.h.t
	select {
	case <-t.life.done:
		return 0, ErrExited
	default:
	}
	t.mu.Lock()
	t.activity.fed = time.Now()
	t.mu.Unlock()
	next, err = w.fed.Feed(ctx, off, p, last)
	if err != nil && !errors.Is(err, os.ErrClosed) && isClosed(t.life.done) {
		err = ErrExited
	}
	return next, err
}

// Close gives up writing. Without End before, the input stays open for the next writer,
// for pty.FeedWait at most if there is a next daemon.
func (w *Feeder) Close() { w.h.t.feeding.Store(false) }
