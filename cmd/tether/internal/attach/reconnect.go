package attach

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/change"
)

// reconnectingAttach is an attachment that reconnects: when the daemon is killed or replaced, the terminal keeps running, and it continues
// at the same byte as soon as the next daemon answers. One goroutine calls Next, which reconnects. Any goroutine may call the other
// methods; they wait during a reconnect.
//
//	attached ──(daemon gone)──▶ away ──(the next one answers)──▶ attached
//	    └──────(exit, close message)──┴──(no daemon)─────▶ over
type reconnectingAttach struct {
	client *localclient.Client
	id     string
	notice func(format string, args ...any)

	from localclient.AttachOptions // where to begin, or to go on; owned by Next's goroutine

	mu      sync.Mutex
	att     *localclient.Attachment // nil while away
	changed change.Signal           // att changes
	closed  bool
	cols    uint16 // the size that was asked for last, 0 if none was
	rows    uint16
}

// Set once, before anything runs. Tests of commands raise them, so that they do not depend on the speed of the machine.
var (
	// AwayTimeout is how long an attached command waits for the next daemon.
	AwayTimeout = 10 * time.Second
	// MissingTimeout is how long it waits for the terminal once a daemon answers, which may resume it late.
	MissingTimeout = 5 * time.Second
)

// attachReconnecting opens the terminal.
func attachReconnecting(ctx context.Context, client *localclient.Client, id string, o localclient.AttachOptions, notice func(string, ...any)) (*reconnectingAttach, error) {
	att, err := client.Attach(ctx, id, o)
	if err != nil {
		return nil, err
	}
	return &reconnectingAttach{client: client, id: id, notice: notice, from: o, att: att}, nil
}

// Next returns the next message, or localclient.ErrDropped when the daemon is gone for good. After a reconnect it reports with whom the terminal
// is shared now, even if that has not changed.
func (l *reconnectingAttach) Next(ctx context.Context) (localclient.Message, error) {
	for {
		l.mu.Lock()
		att := l.att
		l.mu.Unlock()
		if att == nil {
			return localclient.Message{}, localclient.ErrDropped
		}
		m, err := att.Next(ctx)
		goesOn := err == nil && m.Control != nil && m.Control.Type == localapi.ControlDropped && m.Control.Keep
		switch {
		case err == nil && !goesOn:
			if m.Raw > 0 {
				l.from = localclient.AttachOptions{From: m.Raw}
			}
			return m, nil
		case ctx.Err() != nil, l.isClosed(), !att.SaysOffsets():
			return m, err
		}
		if err := l.comeBack(ctx); err != nil {
			return localclient.Message{}, err
		}
		if t, err := l.client.Find(ctx, l.id); err == nil { // attached before, so that nothing comes in between
			return localclient.Message{Control: &localapi.Control{Type: localapi.ControlLent, Hosts: t.LentTo}}, nil
		}
	}
}

// comeBack waits for the next daemon and attaches to it where the last one stopped.
func (l *reconnectingAttach) comeBack(ctx context.Context) error {
	l.swap(nil)
	var answered time.Time
	for retry := NewRetry(AwayTimeout); ; {
		att, err := l.client.Attach(ctx, l.id, l.from)
		if err == nil {
			l.swap(att)
			l.notice("reconnected after %s; the terminal kept running\r", display.Round(retry.Elapsed()))
			return nil
		}
		var remote *localapi.Error
		if errors.As(err, &remote) && remote.Code != localapi.CodeClosing && answered.IsZero() {
			answered = time.Now()
		}
		switch {
		case ctx.Err() != nil: // which may be why it failed
		case l.isClosed():
			return localclient.ErrDropped
		case !answered.IsZero() && time.Since(answered) > MissingTimeout:
			return fmt.Errorf("%w: the next daemon does not have %s: %w", localclient.ErrDropped, l.id, err)
		}
		if err := retry.Wait(ctx); errors.Is(err, ErrTimeout) {
			return &GoneError{l.id}
		} else if err != nil {
			return err
		}
	}
}

// GoneError says that no daemon has come back within AwayTimeout. It is a localclient.ErrDropped.
type GoneError struct{ ID string }

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%v, and no daemon has started within %v; %s keeps running", localclient.ErrDropped, AwayTimeout, e.ID)
}

// Unwrap returns localclient.ErrDropped.
func (e *GoneError) Unwrap() error { return localclient.ErrDropped }

// swap puts another attachment in place, nil for none, and gives it the size.
func (l *reconnectingAttach) swap(att *localclient.Attachment) {
	l.mu.Lock()
	old, cols, rows := l.att, l.cols, l.rows
	if l.closed && att != nil {
		old, att = att, nil
	}
	l.att = att
	l.changed.Raise()
	l.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if att != nil && cols > 0 {
		_ = att.Resize(context.Background(), cols, rows) // if it fails, Next comes back again
	}
}

// Write sends typed input. It waits while the daemon is away. Input that was being sent at that moment may be lost with the daemon, or be
// typed twice if the daemon had just passed it on.
func (l *reconnectingAttach) Write(ctx context.Context, p []byte) error {
	for {
		l.mu.Lock()
		att, changed, closed := l.att, l.changed.Next(), l.closed
		l.mu.Unlock()
		if closed {
			return localclient.ErrDropped
		}
		if att != nil {
			if err := att.Write(ctx, p); err == nil || ctx.Err() != nil {
				return err
			}
		}
		select {
		case <-changed: // Next has noticed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Resize gives the terminal a size, also when the daemon is back.
func (l *reconnectingAttach) Resize(ctx context.Context, cols, rows uint16) {
	l.mu.Lock()
	att := l.att
	l.cols, l.rows = cols, rows
	l.mu.Unlock()
	if att != nil {
		_ = att.Resize(ctx, cols, rows)
	}
}

// Close leaves the terminal.
func (l *reconnectingAttach) Close() {
	l.mu.Lock()
	att := l.att
	l.closed, l.att = true, nil
	l.changed.Raise()
	l.mu.Unlock()
	if att != nil {
		att.Close()
	}
}

func (l *reconnectingAttach) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}
