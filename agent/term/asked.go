package term

import (
	"time"

	"tether/agent/answers"
	"tether/agent/output"
)

// asked is a Terminal as its answers see it: an [answers.Terminal].
type asked struct{ t *Terminal }

// Sit counts a person as attached, as Attach does, with a terminal that answers what the
// program asks, see [answers.Answering.Sit].
func (h Handle) Sit() (*answers.Seat, error) {
	if err := h.allow(OpType); err != nil {
		return nil, err
	}
	return h.t.answering.Sit(), nil
}

// ReadsKeys looks into the program in the foreground. A program that passes keys on to an
// unknown reader elsewhere reads them only on the alternate screen.
func (a asked) ReadsKeys() (front int, ok bool) {
	a.t.mu.Lock()
	e := a.t.evidenceLocked()
	a.t.mu.Unlock()
	a.t.lookInto(&e)
	return e.look.Front, e.looked && !e.look.Lines && !e.look.Echo && (e.alt || !e.isRelay())
}

// Shows returns what the output says.
func (a asked) Shows() (alt bool, quiet time.Duration) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.t.findModesLocked()
	return a.t.attention.alt, time.Since(a.t.activity.printed)
}

// Screen opens a reader.
func (a asked) Screen() (*output.ScreenAt, error) {
	return Handle{t: a.t, actor: User}.OldestScreen()
}

// Attach counts a person.
func (a asked) Attach(by int) { a.t.attach(by) }

// Over returns channels that are closed once.
func (a asked) Over() (ended, left <-chan struct{}) { return a.t.life.done, a.t.life.leaving }

// Reply types an answer.
func (a asked) Reply(text string) {
	t := a.t
	t.mu.Lock()
	q := &t.input
	if q.closed || len(q.waiting)+len(text) > maxInput {
		t.mu.Unlock()
		return
	}
	q.waiting = append(q.waiting, text...)
	types := !q.typing
	q.typing = true
	t.mu.Unlock()
	if types {
		t.typeNow()
	}
}
