package policy

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tether/agent/audit"
	"tether/agent/term"
)

// maxRecent is how many events an engine without a file keeps.
const maxRecent = 1000

// Audit writes an event to the log. Events that could not be written are counted;
// Degraded reports them and so does, as soon as possible, the log. If one principal is
// refused very often, or an agent sends very many signals, only the first events in a
// minute are written, and then the number of the others: an agent must not be able to
// push the rest of the log out.
func (e *Engine) Audit(ev Event) {
	if f := e.floodOf(ev); f != nil {
		more, drop := f.count(counted(ev.Actor), time.Now())
		if drop {
			return
		}
		if more > 0 {
			ev.Detail = join(ev.Detail, fmt.Sprintf("%d more %s before this one were not written", more, f.what))
		}
	}
	r := ev.record()
	if e.log != nil {
		_ = e.log.Append(r) // counted there
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recent = append(e.recent, r)
	e.recent = e.recent[max(0, len(e.recent)-maxRecent):]
}

// floodOf returns the counter for such events; nil for events that nobody can cause at
// will.
func (e *Engine) floodOf(ev Event) *flood {
	switch {
	case ev.Type == EventRefusal || ev.Decision.Effect == Deny:
		return &e.refusals
	case ev.Type == EventInput:
		return &e.inputs
	case ev.Type == EventSignal && ev.Actor.Role == term.RoleAgent:
		return &e.signals
	}
	return nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Recent returns the newest events of an engine without a file, oldest first: at most
// 1000.
func (e *Engine) Recent() []Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.recent)
}

// AuditHead returns the end of the audit log's chain, zero without a file.
func (e *Engine) AuditHead() audit.Head {
	if e.log == nil {
		return audit.Head{}
	}
	return e.log.Head()
}

// Degraded returns a description of the audit log's fault for status, "" if there is
// none.
func (e *Engine) Degraded() string {
	if e.log == nil {
		return ""
	}
	lost, err := e.log.Trouble()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("the audit log cannot be written; %d events are lost: %v", lost, err)
}

// maxRefusals is how many events of one flood (refusals, signals, or inputs) are written
// per principal and minute.
const maxRefusals = 60

// flood counts refusals, signals or inputs of each principal. It is safe for concurrent
// use.
type flood struct {
	what string
	mu   sync.Mutex
	seen map[term.Actor]*burst
}

func newFlood(what string) flood { return flood{what: what, seen: map[term.Actor]*burst{}} }

// burst counts the events of one principal in one minute.
type burst struct {
	since   time.Time
	written int
	dropped int
}

// count counts an event. drop says that the event must not be written; more is the number
// of earlier events that were not written.
func (f *flood) count(a term.Actor, now time.Time) (more int, drop bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.seen, func(other term.Actor, b *burst) bool {
		return now.Sub(b.since) >= window && (other != a && b.dropped == 0)
	})
	b := f.seen[a]
	if b == nil {
		b = &burst{since: now}
		f.seen[a] = b
	}
	if now.Sub(b.since) >= window {
		more = b.dropped
		*b = burst{since: now}
	}
	if b.written >= maxRefusals {
		b.dropped++
		return 0, true
	}
	b.written++
	return more, false
}
