package host

import (
	"bytes"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/screen"
	"tether/vocab"
)

// input is the owner's report of how the program in the foreground uses its keyboard, and
// of a declared terminal's readiness. Guarded by the host's mutex.
type input struct {
	vocab.State                    // Input is "" until the owner reports one
	said, readySaid int64          // when Input and Ready began, by the owner's clock
	checkout        vocab.Checkout // of the terminal's directory; the zero value for none
	moved           change.Signal  // raised when anything in input changes
}

// inputSaid handles the report of a terminal's owner. It ignores reports from anybody
// else, and invalid ones.
func (c *conn) inputSaid(params []byte) {
	var p ahp.StateParams
	if err := ahp.DecodeParams(params, &p); err != nil || !c.may(rights.Lend) {
		return
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if t := c.h.terminals[p.Channel]; t != nil && t.ownedBy(c) && t.bound() == c && !t.state.Lifecycle.Exited() {
		c.h.setInputLocked(t, p)
	}
}

func (h *Host) setInputLocked(t *terminal, p ahp.StateParams) {
	in := &t.input
	before, was := t.awaitsLocked(), in.Ready
	another := ahp.Awaits(p.Input) != ahp.AwaitsNothing && in.said != p.InputSince // other nodes report it as another question
	input, ready := vocab.InputState(p.Input), vocab.ReadyState(p.Ready)
	placed := h.setCheckoutLocked(t, p.Checkout)
	if placed {
		t.touch(inRows)
	}
	if in.Input == input && in.said == p.InputSince && was == ready && in.readySaid == p.ReadySince {
		return
	}
	if in.Input != input || in.said != p.InputSince {
		in.Input, in.said, in.InputSince = input, p.InputSince, plausible(p.Since(), t.created)
	}
	if in.Ready != ready || in.readySaid != p.ReadySince {
		in.readySaid = p.ReadySince
		in.Readiness = vocab.Readiness{Ready: ready, ReadySince: plausible(p.BecameReady(), t.created), ReadyWhy: screen.Clean(p.ReadyWhy)}
	}
	t.input.moved.Raise()
	if t.awaitsLocked() != before || in.Ready != was || another { // otherwise lists would change whenever something is printed
		t.touch(inCatalogue)
	}
}

// setCheckoutLocked sets the checkout of a terminal's directory as its owner reports it.
// It reports whether that is another one.
func (h *Host) setCheckoutLocked(t *terminal, c vocab.Checkout) bool {
	c.Show(screen.Clean)
	was := t.input.checkout
	t.input.checkout = c
	return was != c
}

// endInputLocked clears the state of input of an exited terminal, and sets its readiness
// after the exit.
func (h *Host) endInputLocked(t *terminal) {
	in := &t.input
	in.Keyboard, in.said = vocab.Keyboard{}, 0
	in.Readiness = in.Ended()
	t.input.moved.Raise()
}

// awaitsLocked reports whether the terminal waits for typed input. While the machine is
// away that is unknown.
func (t *terminal) awaitsLocked() ahp.Awaiting {
	if t.isAway() {
		return ahp.AwaitsNothing
	}
	return ahp.Awaits(string(t.input.Input))
}

// readyLocked returns the terminal's readiness. While the machine is away, it is known
// only for an exited terminal.
func (t *terminal) readyLocked() string {
	if t.isAway() && !t.state.Lifecycle.Exited() {
		return ""
	}
	return string(t.input.Ready)
}

// State implements agenttools.StatefulTerminal. While the machine is away it returns the
// last known state, so that a short loss of the connection does not turn one question
// into two.
func (l lookedAt) State() (vocab.State, <-chan struct{}) {
	l.h.mu.Lock()
	if _, ok := (catalogue{l.h, l.p}).fromLocked(l.t); !ok || l.t.gone() {
		l.h.mu.Unlock()
		return vocab.State{}, nil
	}
	in := &l.t.input
	s, moved := in.State, in.moved.Next()
	l.h.mu.Unlock()
	if s.Input == vocab.InputAwaiting {
		l.h.arrive(l.t)
		s.Prompt = l.prompt()
	}
	return s, moved
}

const (
	promptTail = 8 << 10 // bytes of text from which the line of the cursor is made
	maxPrompt  = 200     // bytes
)

// prompt returns the text before the cursor on its line, as p sees it. It comes from the
// recorded text, in which the owner has masked secrets.
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
