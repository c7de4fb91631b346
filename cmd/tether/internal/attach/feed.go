package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/change"
	"tether/internal/retry"
)

const (
	// maxHeld bounds the standard input that was read and that the command does not have
	// yet, in bytes.
	maxHeld = 8 * localapi.FeedChunk
	// feedAgain is the pause before another attempt to reach the daemon.
	feedAgain = 50 * time.Millisecond
)

// feed is standard input on its way to the command. One goroutine fills it, and another
// one sends it. It holds what the command is not known to have, so that nothing is lost
// when the daemon is replaced.
type feed struct {
	in    io.ReadCloser
	piece []byte // on its way; owned by the goroutine that sends

	mu      sync.Mutex
	changed change.Signal // raised when a field below changes
	base    int64         // offset of held
	held    []byte
	ended   bool  // nothing follows held
	err     error // why reading has failed
	closed  bool  // the command reads no more
}

// feed gives the command the standard input of this process, until it ends or the command
// reads no more.
func (s *Session) feed(ctx context.Context) {
	f := &feed{in: s.opts.In}
	go f.fill() // ends with the process, because a read may not be cancelled
	for {
		err := s.sendTo(ctx, f)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !retry.Wait(ctx, feedAgain) {
			return
		}
	}
}

// feedFailed ends the session if the command cannot get its input because of err, and
// returns when the session is over: the command must not see an end of its input before
// it is killed.
func (s *Session) feedFailed(ctx context.Context, err error) {
	refused, ok := errors.AsType[*localapi.Error](err)
	switch {
	case errors.Is(err, errInput):
	case !ok, refused.Code == localapi.CodeClosing, refused.Code == localapi.CodeNoTerminal: // the next daemon may not have the terminal yet
		return
	case refused.Code == localapi.CodeExited:
		return
	}
	s.fail(err)
	<-ctx.Done()
}

// errInput says that standard input could not be read.
var errInput = errors.New("read standard input")

// fill reads until the input ends or the command reads no more.
func (f *feed) fill() {
	buf := make([]byte, localapi.FeedChunk)
	for {
		n, err := f.in.Read(buf)
		f.mu.Lock()
		f.held = append(f.held, buf[:n]...)
		if err != nil {
			f.ended = true
			if !errors.Is(err, io.EOF) {
				f.err = fmt.Errorf("%w: %w", errInput, err)
			}
		}
		f.changed.Raise()
		for len(f.held) > maxHeld-len(buf) && !f.closed {
			changed := f.changed.Next()
			f.mu.Unlock()
			<-changed
			f.mu.Lock()
		}
		closed := f.closed
		f.mu.Unlock()
		if err != nil || closed {
			return
		}
	}
}

// sendTo sends the input over one connection. It returns nil when the command has all of
// it, or reads no more.
func (s *Session) sendTo(ctx context.Context, f *feed) error {
	to, err := s.client.Feed(ctx, s.opts.ID)
	if err != nil {
		s.feedFailed(ctx, err)
		return err
	}
	session := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	taken := make(chan int64) // offsets up to which the command has the input
	done := make(chan struct{})
	defer func() { <-done }()
	defer to.Close() // before that
	go func() {
		defer close(done)
		for {
			next, closed, err := to.Next(ctx)
			if closed {
				f.close()
				err = os.ErrClosed
			}
			if err != nil {
				cancel(err)
				return
			}
			select {
			case taken <- next:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case next := <-taken:
			err = f.send(ctx, to, next)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			s.feedFailed(session, err)
			return err
		}
	}
}

// send drops the input before next, waits for more, and sends one piece or the end.
func (f *feed) send(ctx context.Context, to *localclient.Feeder, next int64) error {
	p, err := f.after(ctx, next)
	if err != nil {
		return err
	}
	return to.Write(ctx, next, p)
}

// after drops the input before next, waits for more, and returns the next piece, which is
// valid until the next call. It is empty at the end of the input.
func (f *feed) after(ctx context.Context, next int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next < f.base || next > f.base+int64(len(f.held)) {
		return nil, fmt.Errorf("%w: the command's standard input continues at byte %d, and bytes %d to %d are here", errInput, next, f.base, f.base+int64(len(f.held)))
	}
	f.held = append(f.held[:0], f.held[next-f.base:]...)
	f.base = next
	f.changed.Raise()
	for len(f.held) == 0 && !f.ended {
		changed := f.changed.Next()
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(f.held) == 0 {
		return nil, f.err
	}
	f.piece = append(f.piece[:0], f.held[:min(len(f.held), localapi.FeedChunk)]...)
	return f.piece, nil
}

// close records that the command reads no more. The program that writes into this
// process's standard input learns of it, as it would in a pipe.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	f.changed.Raise()
	f.mu.Unlock()
	f.in.Close()
}
