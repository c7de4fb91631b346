package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tether/agent/ring"
	"tether/internal/change"
)

const (
	// viewBytes bounds the output that is kept for an editor that shows terminals, in
	// bytes: the editor may lag behind by that much. tombView is the bound for a released
	// terminal that no tool call has shown yet.
	viewBytes = 1 << 20
	tombView  = 64 << 10
)

// terminal is one terminal of the agent. The proxy keeps it for some time after the agent
// has released it, because the editor still shows its output.
//
//	running ──(exit)──▶ ended
//	   └────(release)──▶ released, killed, ended
type terminal struct {
	// Set before table.add lists the terminal.
	id, session, cwd string
	ended            chan struct{} // closed when exit is set
	given            chan struct{} // closed when the terminal was released but could not be killed
	unfollow         context.CancelFunc
	number           int // the first terminal of the agent has 1

	mu       sync.Mutex
	out      *output
	masked   int       // masked places in the output so far
	view     *ring.Log // output with its escape sequences; nil if no editor can show it
	exit     *Exit     // nil while the command runs
	streamed bool      // the editor was sent view, or a part of it
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

// update changes the terminal under its lock and wakes the goroutines that show it.
func (t *terminal) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	t.changed.Raise()
}

// hear applies an event of the terminal's stream.
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

// noteLocked adds a line of our own to the output.
func (t *terminal) noteLocked(text string) {
	t.out.note(text)
	if t.view != nil {
		t.view.Append([]byte("\r\n" + text + "\r\n"))
	}
}

// endLocked records how the command ended. Only the first call has an effect.
func (t *terminal) endLocked(e Exit) {
	if t.exit != nil {
		return
	}
	if e.Code < 0 && e.Signal == "" && e.Lost == "" {
		e.Lost = "how this command ended is unknown"
	}
	if e.Lost != "" {
		t.noteLocked("[tether: " + e.Lost + "]")
	}
	t.exit = &e
	close(t.ended)
}

// terminalGone is why a terminal is lost that the daemon does not have. A daemon that
// ends keeps its terminals, so somebody has removed it.
const terminalGone = "the daemon no longer has this terminal; how the command ended is unknown"

// lose ends the terminal because its further state cannot be known. why says so in its
// output.
func (t *terminal) lose(why string) {
	t.update(func() { t.endLocked(Exit{Lost: why}) })
}

// follow reads the terminal's output until the command or ctx ends.
func (t *terminal) follow(ctx context.Context, from Terminals) {
	err := t.followed(ctx, from)
	var failure *Failure
	switch {
	case t.hasEnded() || ctx.Err() != nil:
	case errors.As(err, &failure) && failure.Kind == Gone:
		t.lose(terminalGone)
	default:
		t.lose(fmt.Sprintf("the daemon does not answer; the state of this command is unknown: %v", err))
	}
}

func (t *terminal) followed(ctx context.Context, from Terminals) error {
	s, err := from.Follow(ctx, t.id)
	if err != nil {
		return err
	}
	defer s.Close()
	for !t.hasEnded() {
		e, err := s.Next()
		if err != nil {
			return err
		}
		t.hear(e)
	}
	return nil
}

func (t *terminal) hasEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// status returns the exit status, or nil while the command runs.
func (t *terminal) status() *exitStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return statusOf(t.exit)
}

// exitStatus is TerminalExitStatus and WaitForTerminalExitResponse of the schema. Both
// members are null if the end is not known.
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
	exitCode := uint32(e.Code) // exit codes of Windows go up to 1<<32-1
	return &exitStatus{ExitCode: &exitCode}
}
