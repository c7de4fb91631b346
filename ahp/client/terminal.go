package client

import (
	"encoding/json"
	"strings"
	"time"

	"tether/ahp"
	"tether/internal/change"
	"tether/internal/clip"
	"tether/internal/jsonspan"
)

// terminal is a followed terminal: its reduced state, and the events that wait for the
// consumer. If the events exceed their bound for too long, one Resync replaces them; its
// state is made when the consumer pulls it. A terminal is guarded by the observer's
// mutex.
type terminal struct {
	channel

	known    bool              // there is a state
	state    ahp.TerminalState // without Content
	history  history
	listed   bool      // it is in the host's list
	unlisted time.Time // when it left the list, or the time of its last envelope after that; zero = it is listed, or never was

	queued  bool
	resync  bool // a Resync waits; it replaces all other events but Gone
	waiting []waiting
	size    int // cost of waiting, in bytes
	gone    bool
	reason  error // of gone
}

// waiting is one event: either an action or output.
type waiting struct {
	action ahp.Action
	data   []byte
	cost   int // bytes
}

// eventCost is the cost of a waiting event besides its text, in bytes.
const eventCost = 256

func (t *terminal) install(raw []byte) error {
	var s ahp.TerminalState
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	t.history.load(s.Content)
	s.Content = nil
	s.Title, s.Cwd = clip.Text(s.Title, ahp.MaxTitle), clip.Text(s.Cwd, ahp.MaxCwd)
	t.state, t.known = s, true
	t.needResync()
	return nil
}

func (t *terminal) needResync() {
	t.resync, t.waiting, t.size = true, nil, 0
	t.o.enlist(t)
}

func (t *terminal) apply(v *ahp.EnvelopeView) error {
	if !t.unlisted.IsZero() {
		t.unlisted = time.Now()
	}
	switch v.Kind {
	case ahp.ActionTerminalData, ahp.ActionTerminalOutput:
		return t.output(v.Data, v.Screen)
	case ahp.ActionTerminalInput:
		return nil // some hosts send keystrokes to every subscriber; their echo arrives as data
	}
	a, err := ahp.DecodeAction(v.Action)
	if err == nil {
		err = ahp.ValidateAction(a)
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(v.Kind, "terminal/") {
		return nil
	}
	switch a := a.(type) {
	case ahp.TerminalCleared:
		t.history.clear()
	case ahp.TerminalCommandExecuted:
		t.history.start(a)
	case ahp.TerminalCommandFinished:
		t.history.finish(a)
	case ahp.UnknownAction:
		return nil
	case ahp.TerminalExited:
		t.o.wake() // an unlisted terminal that has exited is overdue
	}
	at := t.state.Meta.Screen
	t.state = ahp.ReduceTerminal(t.state, a)
	t.state.Content = nil
	if a, ok := a.(ahp.TerminalResized); ok {
		t.state.Meta.Screen = at.Resized(t.history.length(), a.Cols, a.Rows) // the text is in the history
	}
	t.push(waiting{action: a, cost: eventCost + len(v.Action)})
	return nil
}

// output decodes the text once, into the observer's scratch buffer. After a gap, the
// message has the screen after the text; the consumer then gets a Resync.
func (t *terminal) output(quoted, screen []byte) error {
	text, err := jsonspan.AppendUnquote(t.o.scratch[:0], quoted)
	if err != nil {
		return err
	}
	t.o.scratch = text
	if len(text) > 0 {
		t.history.write(text)
	}
	if at := ahp.DecodeScreen(screen); at != nil {
		t.state.Meta.Screen, t.history.trimmed = at.At(t.history.length()), false
		t.needResync()
	}
	if t.resync || len(text) == 0 {
		return nil
	}
	if n := len(t.waiting); n > 0 && t.waiting[n-1].data != nil {
		last := &t.waiting[n-1]
		last.data = append(last.data, text...)
		last.cost += len(text)
		t.grow(len(text))
		return nil
	}
	t.push(waiting{data: append(t.o.takeSpare(), text...), cost: eventCost + len(text)})
	return nil
}

func (t *terminal) push(w waiting) {
	if t.resync {
		return
	}
	t.waiting = append(t.waiting, w)
	t.o.enlist(t)
	t.grow(w.cost)
}

func (t *terminal) grow(cost int) {
	t.size += cost
	if t.overfull() {
		t.o.full = t // Observer.envelope waits after the state is complete
	}
}

func (t *terminal) overfull() bool { return t.size > t.o.opts.QueueLimit }

func (t *terminal) enlisted() *bool { return &t.queued }

func (t *terminal) pop() (Event, bool) {
	e := Event{Terminal: t.uri}
	switch {
	case t.resync:
		t.resync = false
		state := t.snapshot()
		e.Kind, e.State = Resync, &state
	case len(t.waiting) > 0:
		w := t.waiting[0]
		t.waiting[0] = waiting{}
		t.waiting = t.waiting[1:]
		t.size -= w.cost
		change.Wake(t.o.room)
		e.Kind, e.Action = Action, w.action
		if w.data != nil {
			e.Kind, e.Data = Data, w.data
			t.o.lent = w.data
		}
	case t.gone:
		t.gone = false
		e.Kind, e.Err = Gone, t.reason
	default:
		return Event{}, false
	}
	return e, true
}

func (t *terminal) snapshot() ahp.TerminalState {
	s := t.state
	s.Content = t.history.content()
	if t.history.trimmed { // the screen does not belong to the start of the remaining text
		s.Meta.Screen = nil
		if s.Cols > 0 && s.Rows > 0 {
			s.Meta.Screen = &ahp.Screen{Cols: s.Cols, Rows: s.Rows, Truncated: true}
		}
	}
	return s
}

// overdue reports whether a terminal that the host does not list any more counts as gone:
// it has exited, or has been quiet for a while. It may still have output to come, because
// the list may overtake the terminal's last messages.
func (t *terminal) overdue(now time.Time) bool {
	return !t.unlisted.IsZero() && (t.state.Lifecycle.Exited() || now.Sub(t.unlisted) >= unlistedQuiet)
}
