package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/agent/term"
	"tether/ahp"
	"tether/internal/change"
	"tether/jsonrpc"
)

// A host without the marker may not know executionTarget, and then starts a shell of its
// own for each announced terminal. So one terminal is tried first: the others wait until
// its snapshot shows that it is ours. If the host has started a shell, that is disposed
// of before the connection ends.

const (
	// A host's shell is disposed of shellRest after its first output, or shellStart after
	// its creation without output. VS Code's host loses track of a shell that is disposed
	// of while it starts, and the shell runs on. This was seen within 30 ms of its
	// creation, and on a busy machine also at its first output.
	shellStart = 2 * time.Second
	shellRest  = 250 * time.Millisecond
	// parting is how long a connection to such a host stays open, after its end is
	// decided, to dispose of the host's shells.
	parting = 3 * time.Second
)

// trial lets one publisher at a time announce its terminal until a snapshot has shown
// that the host understands. The zero value asks for no trial.
type trial struct {
	turn       chan struct{} // 1 slot: its holder announces; nil if there is no trial
	understood chan struct{} // closed when the host has shown a terminal as ours
	printed    chan struct{} // 1 slot: a shell of the host's has printed something
}

func newTrial() trial {
	return trial{make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)}
}

// wait blocks until the caller may announce a terminal, or ctx ends. The caller must call
// done with the result.
func (t *trial) wait(ctx context.Context) (done func(understood bool), err error) {
	if t.turn == nil {
		return func(bool) {}, nil
	}
	select {
	case <-t.understood:
		return func(bool) {}, nil
	default:
	}
	select {
	case <-t.understood:
		return func(bool) {}, nil
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(understood bool) {
		if understood {
			select {
			case <-t.understood: // another publisher succeeded at the same time
			default:
				close(t.understood)
			}
		}
		<-t.turn
	}, nil
}

// TakesTerminal reports why the host does not take the terminal, which is lent to it:
// ErrUnsupported, an *ahp.VersionError, or why a host without the marker has refused it.
// At a host without the marker it waits until the terminal was tried, or ctx ends; all
// others are not waited for.
func (l *Link) TakesTerminal(ctx context.Context, h term.Handle) error {
	for {
		l.mu.Lock()
		s, st, next := l.session, l.status, l.announced.Next()
		le := l.lendings[h.ID()]
		there, problem := le != nil && le.there, ""
		if le != nil {
			problem = le.problem
		}
		l.mu.Unlock()
		unmarked := s != nil && s.trial.turn != nil
		switch {
		case st.State != StateOnline && stateFor(st.Err) == StateUnsupported:
			return st.Err
		case unmarked && problem != "":
			return fmt.Errorf("%w: %s", ErrUnsupported, problem)
		case there, s != nil && !unmarked, s == nil && st.State != StateOnline:
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil
		}
	}
}

// heard records that a terminal of ours at the host printed something that we did not
// send. It does not block.
func (t *trial) heard() {
	change.Wake(t.printed) // noted already, or there is no trial
}

// lasting returns a context for requests that should reach a host without the marker even
// if the connection is about to end. It ends parting after ctx.
func (s *session) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.trial.turn == nil {
		return context.WithTimeout(ctx, callTimeout)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(parting):
			cancel()
		case <-last.Done():
		}
	})
	return last, func() { stop(); cancel() }
}

// remove disposes of a shell that the host has started for the terminal. If that fails, a
// later match or connection tries again. state is the host's display of it, nil if it was
// not started just now.
func (p *publisher) remove(ctx context.Context, state *ahp.TerminalState) error {
	ctx, cancel := p.s.lasting(ctx)
	defer cancel()
	if state != nil && len(state.Content) == 0 {
		select {
		case <-p.s.trial.printed:
		case <-time.After(shellStart):
		case <-p.s.conn.Done():
		}
	}
	if state != nil {
		select {
		case <-time.After(shellRest):
		case <-p.s.conn.Done():
		}
	}
	err := p.s.conn.DisposeTerminal(ctx, p.le.uri)
	if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused { // refused: there is nothing to dispose of
		p.replace()
		return fmt.Errorf("dispose of a terminal that the host runs itself: %w", err)
	}
	p.rename()
	return nil
}
