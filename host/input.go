package host

import (
	"bytes"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/screen"
)

// input is the owner's report of how the program in the foreground uses its keyboard, and of a declared terminal's readiness. Guarded by
// the host's mutex.
type input struct {
	state string // one of ahp's states; "" until the owner reports one
	said  int64  // when state began, by the owner's clock
	since time.Time
	moved change.Signal // raised when anything in input changes

	ready      string // one of ahp's states; "": there is no condition
	readySaid  int64
	readySince time.Time
	readyWhy   string
}

// inputSaid handles the report of a terminal's owner. It ignores reports from anybody else, and invalid ones.
func (c *conn) inputSaid(params []byte) {
	var p ahp.StateParams
	if err := ahp.DecodeParams(params, &p); err != nil || !c.may(rightLend) {
		return
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if t := c.h.terminals[p.Channel]; t != nil && t.ownedBy(c) && t.bound == c && !t.state.Lifecycle.Exited() {
		c.h.setInputLocked(t, p)
	}
}

func (h *Host) setInputLocked(t *terminal, p ahp.StateParams) {
	in := &t.input
	before, was := t.awaitsLocked(), in.ready
	another := ahp.Awaits(p.Input) != ahp.AwaitsNothing && in.said != p.InputSince // other nodes report it as another question
	if in.state == p.Input && in.said == p.InputSince && was == p.Ready && in.readySaid == p.ReadySince {
		return
	}
	if in.state != p.Input || in.said != p.InputSince {
		in.state, in.said, in.since = p.Input, p.InputSince, plausible(p.Since(), t.created)
	}
	if in.ready != p.Ready || in.readySaid != p.ReadySince {
		in.ready, in.readySaid, in.readySince, in.readyWhy = p.Ready, p.ReadySince, plausible(p.BecameReady(), t.created), screen.Clean(p.ReadyWhy)
	}
	t.input.moved.Raise()
	if t.awaitsLocked() != before || in.ready != was || another { // otherwise lists would change whenever something is printed
		h.rowChangedLocked(t)
		h.listChangedLocked(t)
	}
}

// endInputLocked clears the state of input of an exited terminal, and sets its readiness after the exit.
func (h *Host) endInputLocked(t *terminal) {
	in := &t.input
	in.state, in.said = "", 0
	switch in.ready {
	case ahp.ReadyStarting:
		in.ready, in.readySince, in.readyWhy = ahp.ReadyFailed, time.Now(), "its program ended before it was ready"
	case ahp.ReadyYes:
		in.ready, in.readySince, in.readyWhy = ahp.ReadyStopped, time.Now(), "its program has ended"
	}
	t.input.moved.Raise()
}

// awaitsLocked reports whether the terminal waits for typed input. While the machine is away that is unknown.
func (t *terminal) awaitsLocked() ahp.Awaiting {
	if t.isAwayLocked() {
		return ahp.AwaitsNothing
	}
	return ahp.Awaits(t.input.state)
}

// readyLocked returns the terminal's readiness. While the machine is away, it is known only for an exited terminal.
func (t *terminal) readyLocked() string {
	if t.isAwayLocked() && !t.state.Lifecycle.Exited() {
		return ""
	}
	return t.input.ready
}

// awaitsAgainLocked is called when the owner of t has connected or disconnected. It updates the catalogue if that shows something which the
// owner has reported.
func (h *Host) awaitsAgainLocked(t *terminal) {
	if ahp.Awaits(t.input.state) != ahp.AwaitsNothing || t.input.ready != "" {
		h.listChangedLocked(t)
	}
}

// State implements agenttools.StatefulTerminal. While the machine is away it returns the last known state, so that a short loss of the
// connection does not turn one question into two.
func (l lookedAt) State() (agenttools.State, <-chan struct{}) {
	l.h.mu.Lock()
	if _, ok := (catalogue{l.h, l.p}).fromLocked(l.t); !ok || l.t.gone() {
		l.h.mu.Unlock()
		return agenttools.State{}, nil
	}
	in := &l.t.input
	s := agenttools.State{Input: agenttools.InputState(in.state), InputSince: in.since,
		Ready: agenttools.ReadyState(in.ready), ReadySince: in.readySince, ReadyWhy: in.readyWhy}
	moved := in.moved.Next()
	l.h.mu.Unlock()
	if s.Input == agenttools.InputAwaiting {
		l.h.arrive(l.t)
		s.Prompt = l.prompt()
	}
	return s, moved
}

const (
	promptTail = 8 << 10 // bytes of text from which the line of the cursor is made
	maxPrompt  = 200     // bytes
)

// prompt returns the text before the cursor on its line, as p sees it. It comes from the recorded text, in which the owner has masked
// secrets.
func (l lookedAt) prompt() string {
	l.h.mu.Lock()
	i := l.t.infoLocked(l.from)
	l.h.mu.Unlock()
	from := max(i.Start, i.End-promptTail)
	r := l.newReader(from)
	defer r.Close()
	var tail []byte
	buf := make([]byte, promptTail)
	for len(tail) <= promptTail {
		ev, ok, err := r.TryNext(buf)
		if !ok || err != nil {
			break
		}
		tail = append(tail, ev.Data...)
	}
	if at := bytes.IndexByte(tail, '\n'); from > 0 && at >= 0 {
		tail = tail[at+1:]
	}
	return clip.Text(screen.BeforeCursor(tail, i.Cols, i.Rows), maxPrompt)
}
