package client

import (
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// root is the followed root state. At most one event of it waits, since each list
// replaces the one before.
type root struct {
	channel
	state   ahp.RootState
	queued  bool
	changed bool
}

func (r *root) install(raw []byte) error {
	var s ahp.RootState
	if err := jsonspan.Unmarshal(raw, &s); err != nil {
		return err
	}
	r.state = s
	r.list()
	return nil
}

func (r *root) apply(v *ahp.EnvelopeView) error {
	a, err := ahp.DecodeAction(v.Action)
	if err != nil {
		return err
	}
	r.state = ahp.ReduceRoot(r.state, a)
	if _, ok := a.(ahp.RootTerminalsChanged); ok {
		r.list()
	}
	return nil
}

// list tells the consumer of a new list, and notes which followed terminals are not in it
// any more.
func (r *root) list() {
	r.changed = true
	r.o.enlist(r)
	now := map[string]bool{}
	for _, t := range r.state.Terminals {
		now[t.Resource] = true
	}
	for uri, t := range r.o.terminals {
		switch {
		case now[uri]:
			t.listed, t.unlisted = true, time.Time{}
		case t.listed:
			t.listed, t.unlisted = false, time.Now()
			r.o.wake()
		}
	}
}

func (r *root) enlisted() *bool { return &r.queued }

func (r *root) pop() (Event, bool) {
	if !r.changed {
		return Event{}, false
	}
	r.changed = false
	return Event{Kind: Terminals, Terminals: r.state.Terminals}, true
}
