package client

import "tether/ahp"

// Kind is the subject of an Event.
type Kind int

// Kinds of events.
const (
	Up        Kind = iota + 1 // the link is up; Host names the host
	Down                      // the link is lost, or an attempt to connect failed; Err says why; unless Run returns, it tries again
	Terminals                 // the host's list of terminals is now Terminals
	Resync                    // State is now the state of Terminal, whatever earlier events reported
	Data                      // Terminal printed Data
	Action                    // Action changed Terminal: any action but output and input
	Gone                      // Terminal does not exist any more, or cannot be followed (Err says why); the observer has stopped following it
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"unknown", "up", "down", "terminals", "resync", "data", "action", "gone"}
	if k < 0 || int(k) >= len(names) {
		k = 0
	}
	return names[k]
}

// Event is something that happened at the host or to the link. Which fields are set
// depends on Kind.
type Event struct {
	Kind      Kind
	Terminal  string                // URI
	Data      []byte                // valid UTF-8, until the next call of Next
	Action    ahp.Action            // never TerminalData, TerminalOutput or TerminalInput
	State     *ahp.TerminalState    // the receiver's own
	Terminals []ahp.TerminalInfo    // not to be changed
	Host      *ahp.InitializeResult // not to be changed
	Err       error
}

// source holds the events that wait: those of the link, of the root state, or of one
// terminal. Each source has a bound of its own. All are guarded by the observer's mutex.
type source interface {
	// pop returns the next event; ok is false if there is none.
	pop() (e Event, ok bool)
	// enlisted points to the flag by which the observer remembers that the source is in
	// its queue of sources.
	enlisted() *bool
}

// maxLinkEvents bounds the waiting events of the link. If there are more, the waiting
// ones are dropped and only the newest stays.
const maxLinkEvents = 16

// linkEvents is the source of Up and Down.
type linkEvents struct {
	queued  bool
	waiting []Event
}

func (l *linkEvents) enlisted() *bool { return &l.queued }

func (l *linkEvents) push(e Event) {
	if len(l.waiting) == maxLinkEvents {
		l.waiting = l.waiting[:0]
	}
	l.waiting = append(l.waiting, e)
}

func (l *linkEvents) pop() (Event, bool) {
	if len(l.waiting) == 0 {
		return Event{}, false
	}
	e := l.waiting[0]
	l.waiting = l.waiting[1:]
	return e, true
}
