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

// reconnectingAttach is an attachment that reconnects: when the daemon is killed or replaced, the terminal keeps running, and the
// attachment continues at the same byte as soon as the next daemon answers. One goroutine calls Next, which reconnects. Any goroutine may
// call the other methods. Write waits during a reconnect; Resize and Close do not.
//
//	attached ──(daemon gone)──▶ away ──(the next one answers)──▶ attached
//	    └──────(exit, close message)──┴──(no daemon)─────▶ over
type reconnectingAttach struct {
	client *localclient.Client
	id     string
	notice func(format string, args ...any)

	from localclient.AttachOptions // where the next attachment begins; owned by Next's goroutine

	mu      sync.Mutex
	att     *localclient.Attachment // nil while away
	changed change.Signal           // raised when att changes
	closed  bool
	cols    uint16 // of the last Resize, 0 before it; so is rows
	rows    uint16
}

// Set once, before anything runs. Tests of commands raise them, so that they do not depend on the speed of the machine.
var (
	// AwayTimeout is how long an attached command waits for the next daemon.
	AwayTimeout = 10 * time.Second
	// MissingTimeout is how long it waits for the terminal once a daemon answers, because the daemon may resume terminals late.
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

// Next returns the next message, or localclient.ErrDropped if the daemon is gone for good. After a reconnect, it returns a message that
// says with whom the terminal is shared now, even if that has not changed.
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
				l.from = localclient.AttachOptions{From: m.Raw, Script: l.from.Script, Lines: l.from.Lines}
			}
			return m, nil
		case ctx.Err() != nil, l.isClosed(), !att.SaysOffsets():
			return m, err
		}
		if err := l.comeBack(ctx); err != nil {
			return localclient.Message{}, err
		}
		if t, err := l.client.Find(ctx, l.id); err == nil { // asked after attaching, so that no change is missed
			return localclient.Message{Control: &localapi.Control{Type: localapi.ControlLent, Hosts: t.LentTo}}, nil
		}
	}
}

// comeBack waits for the next daemon and attaches to it where the last one stopped.
func (l *reconnectingAttach) comeBack(ctx context.Context) error {
	l.swap(nil)
	took, err := comeBack(ctx, l.id, func() error {
		att, err := l.client.Attach(ctx, l.id, l.from)
		if err == nil {
			l.swap(att)
		} else if l.isClosed() {
			err = errLeft
		}
		return err
	})
	if err == nil {
		l.notice("reconnected after %s; the terminal kept running\r", display.Round(took))
	}
	return err
}

// errLeft ends comeBack: nobody wants to go on.
var errLeft = errors.New("left meanwhile")

// comeBack calls open until it has opened a terminal at the next daemon, and returns how long that took. The error is ctx's, or says that
// the connection is dropped for good.
func comeBack(ctx context.Context, id string, open func() error) (took time.Duration, err error) {
	var answered time.Time
	for retry := NewRetry(AwayTimeout); ; {
		err := open()
		if err == nil {
			return retry.Elapsed(), nil
		}
		var remote *localapi.Error
		if errors.As(err, &remote) && remote.Code != localapi.CodeClosing && answered.IsZero() {
			answered = time.Now()
		}
		switch {
		case ctx.Err() != nil: // open may have failed because ctx ended; Wait returns its error
		case errors.Is(err, errLeft):
			return 0, localclient.ErrDropped
		case !answered.IsZero() && time.Since(answered) > MissingTimeout:
			return 0, fmt.Errorf("%w: the next daemon does not have %s: %w", localclient.ErrDropped, id, err)
		}
		if err := retry.Wait(ctx); errors.Is(err, ErrTimeout) {
			return 0, &GoneError{id}
		} else if err != nil {
			return 0, err
		}
	}
}

// GoneError says that no daemon has answered within AwayTimeout. It wraps localclient.ErrDropped.
type GoneError struct{ ID string }

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%v, and no daemon has started within %v; %s keeps running", localclient.ErrDropped, AwayTimeout, e.ID)
}

// Unwrap returns localclient.ErrDropped.
func (e *GoneError) Unwrap() error { return localclient.ErrDropped }

// swap replaces the attachment by att, which may be nil, closes the former one, and gives the terminal the last size. After Close, it
// closes att instead.
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
		_ = att.Resize(context.Background(), cols, rows) // if this fails, so does Next, which reconnects
	}
}

// Write sends typed input. It waits while the daemon is away. If the daemon ends during a Write, the terminal may get the input twice, or
// not at all.
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
		case <-changed: // Next has reconnected, or has begun to
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Resize sets the size that this attachment asks for. While the daemon is away, it only stores the size for the next attachment.
func (l *reconnectingAttach) Resize(ctx context.Context, cols, rows uint16) {
	l.mu.Lock()
	att := l.att
	l.cols, l.rows = cols, rows
	l.mu.Unlock()
	if att != nil {
		_ = att.Resize(ctx, cols, rows)
	}
}

// Close detaches. Next and Write then return an error.
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
