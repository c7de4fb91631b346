package declared

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tether/agent/config"
	"tether/vocab"
)

// leastLook is how long a condition is checked at least, even if its time is already
// over, as it may be after a restart of the daemon.
const leastLook = 2 * time.Second

// beginReady sets the state of t, which has just begun to run. A terminal that an earlier
// daemon has found ready stays ready.
func (e *entry) beginReady(t Terminal) {
	switch r := e.startedSpec(t).Ready; {
	case r.IsZero():
	case e.wasReady(t.ID()):
		e.setReady(t, vocab.ReadyYes, r.String())
	default:
		e.setReady(t, vocab.ReadyStarting, "it is ready when "+r.String())
	}
}

// becomeReady waits until t is ready and records that. It returns then, or when ctx ends.
// When the time for the condition is over, it records that and goes on waiting.
func (e *entry) becomeReady(ctx context.Context, t Terminal) {
	spec := e.startedSpec(t)
	r := spec.Ready
	if r.IsZero() || e.wasReady(t.ID()) {
		return
	}
	within, cancel := context.WithTimeout(ctx, max(time.Until(t.Started().Add(r.Within())), leastLook))
	defer cancel()
	err := t.Await(within, spec, false)
	if within.Err() != nil && ctx.Err() == nil && err != nil {
		e.setReady(t, vocab.ReadyFailed, fmt.Sprintf("not ready within %s: %v", config.Duration(r.Within()), err))
		err = t.Await(ctx, spec, true)
	}
	switch {
	case ctx.Err() != nil: // the terminal or the daemon ends
	case err == nil:
		e.set.keep(e.name(), func(k *kept) { k.Ready = k.ID == t.ID() })
		e.setReady(t, vocab.ReadyYes, r.String())
	default:
		e.setReady(t, vocab.ReadyFailed, err.Error())
	}
}

// wasReady reports whether this daemon or an earlier one has found that terminal ready.
func (e *entry) wasReady(id string) bool {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	k := e.set.store.Terminals[e.spec.Name]
	return k.Ready && k.ID == id
}

// startedSpec returns the declaration of the running terminal, as far as it is known, at
// its port.
func (e *entry) startedSpec(t Terminal) (d config.Declared) {
	e.change(func() {
		if d = e.spec; e.startedAs != nil {
			d = *e.startedAs
		}
	})
	return d.At(t.Port())
}

func (e *entry) setReady(t Terminal, s vocab.ReadyState, why string) {
	e.change(func() {
		e.ready = vocab.Readiness{Ready: s, ReadySince: time.Now(), ReadyWhy: why}
		e.set.moved.Raise()
	})
	t.SetReady(s, why)
}

// endReady sets the state after the terminal's end.
func (e *entry) endReady() {
	e.change(func() { e.ready = e.ready.Ended() })
}

// awaitNeeds waits until every terminal that this one needs is ready, or ctx ends. If it
// has to wait, it records that and calls blocked once.
func (e *entry) awaitNeeds(ctx context.Context, blocked func()) {
	for {
		e.set.mu.Lock()
		missing, moved, was := e.missingLocked(), e.set.moved.Next(), e.state == Blocked
		known := was && e.waits == missing
		e.waits = missing
		e.set.mu.Unlock()
		switch {
		case missing == "" && was:
			e.enter(Starting)
			return
		case missing == "":
			return
		case !known:
			e.enter(Blocked)
			blocked()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// missingLocked returns a text that names a needed terminal that is not ready, or "" if
// all are ready.
func (e *entry) missingLocked() string {
	for _, name := range e.spec.Needs {
		i := slices.IndexFunc(e.set.entries, func(o *entry) bool { return o.spec.Name == name })
		if i < 0 {
			return name + " is not declared any more"
		}
		switch o := e.set.entries[i]; {
		case o.state == Running && (o.spec.Ready.IsZero() || o.ready.Ready == vocab.ReadyYes):
		case o.state == Running && o.ready.Ready == vocab.ReadyFailed:
			return name + " is " + o.ready.ReadyWhy
		case o.state == Running:
			return name + " is starting"
		default:
			return name + " is " + string(o.state)
		}
	}
	return ""
}

// withNeeds adds the terminals that the named ones need, directly or indirectly.
func (s *Set) withNeeds(names []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(names)
	for i := 0; i < len(all); i++ {
		for _, e := range s.entries {
			if e.spec.Name != all[i] {
				continue
			}
			for _, name := range e.spec.Needs {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return all
}
