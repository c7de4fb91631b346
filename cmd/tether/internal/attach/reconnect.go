package attach

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/change"
)

// reconnectingAttach is an attachment that reconnects: when the daemon is killed or
// replaced, the terminal keeps running, and the attachment continues at the same byte as
// soon as the next daemon answers. One goroutine calls Next, which reconnects. Any
// goroutine may call the other methods. Write waits during a reconnect; Resize and Close
// do not.
//
//	attached ──(daemon gone)──▶ away ──(the next one answers)──▶ attached
//	    └──────(exit, close message)──┴──(no daemon)─────▶ over
type reconnectingAttach struct {
	client *localclient.Client
	id     string
	notice func(string, ...any)
	stays  bool // it waits for the next daemon for ever, and only says so if that takes long; set once

	back localclient.Comeback      // used by Next's goroutine, as is from
	from localclient.AttachOptions // where the next attachment begins

	mu      sync.Mutex
	att     *localclient.Attachment // nil while away
	changed change.Signal           // raised when att changes
	closed  bool
	cols    uint16 // of the last Resize, 0 before it; so is rows
	rows    uint16
}

// attachReconnecting opens the terminal.
func attachReconnecting(ctx context.Context, client *localclient.Client, id string, o localclient.AttachOptions, notice func(string, ...any)) (*reconnectingAttach, error) {
	att, err := client.Attach(ctx, id, o)
	if err != nil {
		return nil, err
	}
	l := &reconnectingAttach{client: client, id: id, notice: notice, from: o, att: att}
	l.back = localclient.Comeback{ID: id, Told: func(took time.Duration) {
		if !l.stays || took > localclient.AwayTimeout {
			notice("reconnected after %s; the terminal kept running\r", display.Round(took))
		}
	}}
	return l, nil
}

// Next returns the next message, or localclient.ErrDropped if the daemon is gone for
// good. After a reconnect, it returns a message that says with whom the terminal is
// shared now, even if that has not changed.
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
	err := l.reattach(ctx)
	if gone, ok := errors.AsType[*localclient.GoneError](err); ok && l.stays {
		l.notice("the daemon is gone; %s keeps running and waits here for the next one. Start it: tether daemon --background\r", gone.ID)
		l.back.Timeout = math.MaxInt64
		return l.reattach(ctx)
	}
	return err
}

// reattach is comeBack, but gives up when no daemon comes in time.
func (l *reconnectingAttach) reattach(ctx context.Context) error {
	return l.back.Do(ctx, localclient.ErrDropped, func() error {
		att, err := l.client.Attach(ctx, l.id, l.from)
		if err == nil {
			l.swap(att)
		} else if l.isClosed() {
			err = localclient.ErrDropped
		}
		return err
	})
}

// swap replaces the attachment by att, which may be nil, closes the former one, and gives
// the terminal the last size. After Close, it closes att instead.
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

// Write sends typed input. It waits while the daemon is away. If the daemon ends during a
// Write, the terminal may get the input twice, or not at all.
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

// Resize sets the size that this attachment asks for. While the daemon is away, it only
// stores the size for the next attachment.
func (l *reconnectingAttach) Resize(ctx context.Context, cols, rows uint16) {
	l.mu.Lock()
	att := l.att
	l.cols, l.rows = cols, rows
	l.mu.Unlock()
	if att != nil {
		_ = att.Resize(ctx, cols, rows)
	}
}

// HangUp tells the terminal's program that its window is gone, unless the daemon is away.
func (l *reconnectingAttach) HangUp(ctx context.Context) {
	l.mu.Lock()
	att := l.att
	l.mu.Unlock()
	if att != nil {
		_ = att.HangUp(ctx) // nothing helps where that fails: the terminal stays in tether ls
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
