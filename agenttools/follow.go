package agenttools

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"
)

// Follower examines the output of a terminal that [Follow] reads.
type Follower interface {
	// See examines an event, and reports whether more is wanted.
	See(Event) (more bool)
	// Stands returns when Stand is to be called if nothing comes until then; the zero
	// time if that is not wanted. Follow asks when all output that is there has been
	// examined.
	Stands() time.Time
	// Stand examines what has not changed until then, such as a line without an end. It
	// reports whether more is wanted.
	Stand() (more bool)
}

// Follow reads until the follower wants no more; then it returns nil. It holds no buffer
// while it waits. Errors: those of Reader.Next.
func Follow(ctx context.Context, rd Reader, f Follower) error {
	var small [512]byte
	for more := true; more; {
		for ev, err := range Available(rd) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if !f.See(ev) {
				return nil
			}
		}
		until, cancel := ctx, func() {}
		at := f.Stands()
		if !at.IsZero() {
			until, cancel = context.WithDeadline(ctx, at)
		}
		ev, err := rd.Next(until, small[:])
		stands := err != nil && until.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case stands:
			more = f.Stand()
		case err != nil:
			return err
		default:
			more = f.See(ev)
		}
	}
	return nil
}

// chunk is how many bytes of output are examined at a time.
const chunk = 32 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Available returns the events that a reader has now. It ends with an error of the reader
// other than io.EOF.
func Available(rd Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		buf := chunks.Get().(*[chunk]byte)
		defer chunks.Put(buf)
		for {
			ev, ok, err := rd.TryNext(buf[:])
			if errors.Is(err, io.EOF) || err == nil && !ok || !yield(ev, err) || err != nil {
				return
			}
		}
	}
}
