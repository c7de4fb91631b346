package attach

import (
	"context"
	"fmt"
	"time"
)

// keys sends what the person types, until they detach or their terminal is gone.
func (s *Session) keys(ctx context.Context) {
	typed, ended := make(chan []byte), make(chan error, 1)
	go s.read(ctx, typed, ended)
	var e escapes
	for {
		var lapsed <-chan time.Time
		if d := e.patience(); d > 0 {
			lapsed = time.After(d)
		}
		select {
		case in := <-typed:
			if !s.take(ctx, &e, in) {
				return
			}
		case <-ended: // only the POSIX session's leader gets SIGHUP, and it may wait for this process
			close(s.hungUp)
			return
		case <-lapsed:
			if send := e.lapse(nil); len(send) > 0 && s.att.Write(ctx, send) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// take sends typed keys, and does what the person requests with others. It reports
// whether the session goes on.
func (s *Session) take(ctx context.Context, e *escapes, in []byte) bool {
	if s.opts.Window {
		return s.att.Write(ctx, in) == nil
	}
	e.coded = s.coded.Load()
	for len(in) > 0 {
		send, action, rest := e.feed(nil, in)
		if len(send) > 0 && s.att.Write(ctx, send) != nil {
			return false
		}
		switch action {
		case escapeDetach:
			close(s.left)
			return false
		case escapeHelp:
			fmt.Fprint(s.opts.Err, "\r\n"+escapeHelpText)
		}
		in = rest
	}
	return true
}
