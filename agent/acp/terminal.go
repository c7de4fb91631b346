package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tether/agent/ring"
	"tether/internal/change"
)

const (
	// lostAfter is how long a terminal that cannot be followed may still return before waiting requests are told that it is lost.
	lostAfter  = 20 * time.Second
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// viewBytes bounds how far an editor that shows terminals may lag behind, and tombView the output that it can still be shown later if
	// nothing had asked for it.
	viewBytes = 1 << 20
	tombView  = 64 << 10
)

// terminal is one of the agent's. It lives until the proxy has forgotten it, longer than the agent knows it: its output is still shown.
//
//	running ──(exit)──▶ ended
//	   └────(release)──▶ released, killed, ended
type terminal struct {
	// Set before anybody else knows it.
	id, session, cwd string
	ended            chan struct{} // closed with exit
	given            chan struct{} // closed when it was released but could not be ended
	unfollow         context.CancelFunc
	number           int // counts an agent's terminals

	mu       sync.Mutex
	out      *output
	masked   int       // masked places in the output so far
	view     *ring.Log // unchanged output; nil when no editor can show it
	exit     *Exit
	streamed bool // view is being, or was, sent to the editor
	changed  change.Signal
}

func newTerminal(id string, p *createParams, cwd string, ansi, viewed bool) *terminal {
	t := &terminal{
		id: id, session: p.SessionID, cwd: cwd, ended: make(chan struct{}), given: make(chan struct{}),
		out: newOutput(p.OutputByteLimit, ansi),
	}
	if viewed {
		t.view = ring.New(viewBytes)
	}
	return t
}

// update changes the terminal under its lock and notifies everything that shows it.
func (t *terminal) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	t.changed.Raise()
}

func (t *terminal) hear(e Event) {
	t.update(func() {
		switch {
		case e.Exit != nil:
			t.endLocked(*e.Exit)
		case e.Lost > 0:
			t.noteLocked(fmt.Sprintf("[tether: %d bytes were lost here]", e.Lost))
		default:
			t.masked += e.Masked
			t.out.write(e.Data)
			if t.view != nil {
				t.view.Append(e.Data)
			}
		}
	})
}

func (t *terminal) noteLocked(text string) {
	t.out.note(text)
	if t.view != nil {
		t.view.Append([]byte("\r\n" + text + "\r\n"))
	}
}

// endLocked records the end, once.
func (t *terminal) endLocked(e Exit) {
	if t.exit != nil {
		return
	}
	if e.Lost != "" {
		t.noteLocked("[tether: " + e.Lost + "]")
	}
	t.exit = &e
	close(t.ended)
}

// lose ends a terminal whose further state cannot be known.
func (t *terminal) lose(why string) {
	t.update(func() { t.endLocked(Exit{Lost: why}) })
}

// follow reads the terminal's output until its end or ctx's. The daemon may crash and return in between.
func (t *terminal) follow(ctx context.Context, from Terminals) {
	var at int64
	var stopped bool // in order, and it must not be restarted
	deadline, pause := time.Now().Add(lostAfter), firstRetry
	for {
		next, up, err := t.followOnce(ctx, from, at)
		if t.hasEnded() || ctx.Err() != nil {
			return
		}
		if next > at || up >= lastRetry { // a terminal that prints nothing for a while was followed, too
			at, stopped = next, false
			deadline, pause = time.Now().Add(lostAfter), firstRetry
		}
		stopped = stopped || errors.Is(err, ErrStopped)
		var failure *Failure
		switch {
		case errors.As(err, &failure) && failure.Kind == Gone:
			t.lose("the daemon ended, and this command with it")
			return
		case time.Now().After(deadline):
			t.lose(fmt.Sprintf("the daemon does not answer; the state of this command is unknown: %v", err))
			return
		case !stopped:
			_ = from.Revive(ctx) // again and again, as the old one may seem to be there while it dies; the deadline ends this
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastRetry)
	}
}

// followOnce returns how far it got, and how long there was something to follow.
func (t *terminal) followOnce(ctx context.Context, from Terminals, at int64) (next int64, up time.Duration, err error) {
	s, err := from.Follow(ctx, t.id, at)
	if err != nil {
		return at, 0, err
	}
	defer s.Close()
	began := time.Now()
	for {
		e, err := s.Next()
		if err != nil {
			return at, time.Since(began), err
		}
		t.hear(e)
		at = max(at, e.Next)
		if e.Exit != nil {
			return at, time.Since(began), nil
		}
	}
}

func (t *terminal) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// status returns the exit, nil while it runs.
func (t *terminal) status() *exitStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return statusOf(t.exit)
}

// exitStatus is TerminalExitStatus and WaitForTerminalExitResponse of the schema. Both null means that nothing is known.
type exitStatus struct {
	ExitCode *uint32 `json:"exitCode"`
	Signal   *string `json:"signal"`
}

func statusOf(e *Exit) *exitStatus {
	switch {
	case e == nil:
		return nil
	case e.Lost != "":
		return &exitStatus{}
	case e.Signal != "":
		return &exitStatus{Signal: &e.Signal}
	}
	exitCode := uint32(e.Code) // Windows counts to 1<<32-1
	return &exitStatus{ExitCode: &exitCode}
}
