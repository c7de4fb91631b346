package terminals

import (
	"bytes"

	"tether/ahp"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/screen"
	"tether/vocab"
)

// input is the owner's report of how the program in the foreground uses its keyboard, and
// of a declared terminal's readiness.
type input struct {
	vocab.State                    // Input is "" until the owner reports one
	said, readySaid int64          // when Input and Ready began, by the owner's clock
	checkout        vocab.Checkout // of the terminal's directory; the zero value for none
	moved           change.Signal  // raised when anything in input changes
}

// SetInput records the owner's report of how its terminal takes input.
func (b *Book) SetInput(t *Terminal, p ahp.StateParams) {
	in := &t.input
	before, was := t.Awaits(), in.Ready
	another := ahp.Awaits(p.Input) != ahp.AwaitsNothing && in.said != p.InputSince // other nodes report it as another question
	input, ready := vocab.InputState(p.Input), vocab.ReadyState(p.Ready)
	placed := b.setCheckout(t, p.Checkout)
	if placed {
		t.touch(inRows)
	}
	if in.Input == input && in.said == p.InputSince && was == ready && in.readySaid == p.ReadySince {
		return
	}
	if in.Input != input || in.said != p.InputSince {
		in.Input, in.said, in.InputSince = input, p.InputSince, plausible(p.Since(), t.Created)
	}
	if in.Ready != ready || in.readySaid != p.ReadySince {
		in.readySaid = p.ReadySince
		in.Readiness = vocab.Readiness{Ready: ready, ReadySince: plausible(p.BecameReady(), t.Created), ReadyWhy: screen.Clean(p.ReadyWhy)}
	}
	t.input.moved.Raise()
	if t.Awaits() != before || in.Ready != was || another { // otherwise lists would change whenever something is printed
		t.touch(inCatalogue)
	}
}

// setCheckout sets the checkout of a terminal's directory as its owner reports it.
// It reports whether that is another one.
func (b *Book) setCheckout(t *Terminal, c vocab.Checkout) bool {
	c.Show(screen.Clean)
	was := t.input.checkout
	t.input.checkout = c
	return was != c
}

// endInput clears the state of input of an exited terminal, and sets its readiness
// after the exit.
func (b *Book) endInput(t *Terminal) {
	in := &t.input
	in.Keyboard, in.said = vocab.Keyboard{}, 0
	in.Readiness = in.Ended()
	t.input.moved.Raise()
}

// Awaits reports whether the terminal waits for typed input. While the machine is
// away that is unknown.
func (t *Terminal) Awaits() ahp.Awaiting {
	if t.IsAway() {
		return ahp.AwaitsNothing
	}
	return ahp.Awaits(string(t.input.Input))
}

// Ready returns the terminal's readiness. While the machine is away, it is known
// only for an exited terminal.
func (t *Terminal) Ready() string {
	if t.IsAway() && !t.State.Lifecycle.Exited() {
		return ""
	}
	return string(t.input.Ready)
}

// State implements agenttools.StatefulTerminal. While the machine is away it returns the
// last known state, so that a short loss of the connection does not turn one question
// into two.
func (l Seen) State() (vocab.State, <-chan struct{}) {
	l.book.mu.Lock()
	if _, ok := (View{l.book, l.p}).from(l.t); !ok || l.t.gone() {
		l.book.mu.Unlock()
		return vocab.State{}, nil
	}
	in := &l.t.input
	s, moved := in.State, in.moved.Next()
	l.book.mu.Unlock()
	if s.Input == vocab.InputAwaiting {
		l.book.arrive(l.t)
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
func (l Seen) prompt() string {
	l.book.mu.Lock()
	i := l.t.info(l.from)
	l.book.mu.Unlock()
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
