package notify

import (
	"context"
	"encoding/json"
	"time"

	"tether/agent/config"
	"tether/events"
	"tether/internal/retry"
	"tether/vocab"
)

// condition is a request for events, for all rules that have it.
type condition struct {
	request events.Request
	wanted  func(map[string]any) bool // nil: all events are
	rules   []*rule
}

// conditions returns the different conditions of rules. NotifyAway is not among them: it
// is about no terminal.
func conditions(rules []*rule) []*condition {
	var all []*condition
	known := map[string]*condition{}
	for _, r := range rules {
		for _, on := range r.On {
			name, args, wanted := requestFor(on, r)
			if name == "" {
				continue
			}
			text, _ := json.Marshal(args) // strings and numbers always can be
			key := name + " " + string(text)
			c := known[key]
			if c == nil {
				c = &condition{request: events.Request{Name: name, Arguments: text}, wanted: wanted}
				known[key], all = c, append(all, c)
			}
			c.rules = append(c.rules, r)
		}
	}
	return all
}

func requestFor(on string, r *rule) (name string, args map[string]any, wanted func(map[string]any) bool) {
	switch on {
	case config.NotifyFailedExit:
		return events.Exited, map[string]any{"failedOnly": true}, func(data map[string]any) bool {
			return data["reason"] != vocab.ExitKilled && data["reason"] != vocab.ExitIdle // somebody wanted that
		}
	case config.NotifyFailedCommand:
		return events.CommandFinished, map[string]any{"failedOnly": true}, nil
	case config.NotifyLongCommand:
		return events.CommandFinished, map[string]any{"minDurationMs": time.Duration(r.LongerThan).Milliseconds()}, nil
	case config.NotifyNewProblem:
		return events.Problems, nil, func(data map[string]any) bool { n, _ := data["new"].(int); return n > 0 }
	case config.NotifyVerdict:
		return events.VerdictChanged, nil, nil
	case config.NotifyAwaitingInput:
		return events.AwaitingInput, nil, nil
	case config.NotifyReady:
		return events.Ready, nil, nil
	case config.NotifyPattern:
		return events.Line, map[string]any{"pattern": r.Pattern}, nil
	}
	return "", nil, nil
}

// watcher receives the events of a condition. It implements events.Out.
type watcher struct {
	*condition
	n *Notifier
}

// Active implements events.Out.
func (watcher) Active(string, bool) error { return nil }

// Heartbeat implements events.Out.
func (watcher) Heartbeat(string) error { return nil }

// Event implements events.Out.
func (w watcher) Event(ev events.Event) error {
	if ev.At.Before(w.n.began) || w.wanted != nil && !w.wanted(ev.Data) {
		return nil // of a terminal that was found late after a start, or not asked for
	}
	id, _ := ev.Data["terminalId"].(string)
	about, ok := w.n.opts.Find(id)
	if !ok || about.Attached || time.Since(about.Typed) < typedRecently {
		return nil
	}
	text := events.Text(&ev)
	for _, r := range w.rules {
		if about.Private && r.To != config.NotifyDesktop && !r.Names(about.Name) {
			continue
		}
		if r.Covers(about.Owner, about.Name, about.Dirs, w.n.opts.Home) {
			r.add(text)
		}
	}
	return nil
}

// typedRecently is how long after a key the person counts as being at a terminal.
const typedRecently = time.Minute

// awayAfter is how long a host must not have been reached. It is looked for four times in
// that time.
const awayAfter = time.Minute

// Host is the state of the link to a paired host.
type Host struct {
	Name   string
	Online bool
	Why    string // why it is not online; "" if that is not known
}

// away is the state of a host that was reached once. told says that the person knows.
type away struct {
	since time.Time // zero: it is there
	told  bool
}

// hosts tells of hosts that go away. A host that was not reached since the start is no
// news.
func (n *Notifier) hosts(ctx context.Context, rules []*rule) {
	for was := map[string]away{}; ; {
		now, next := time.Now(), map[string]away{}
		for _, h := range n.opts.Hosts() {
			state, seen := was[h.Name]
			switch {
			case h.Online:
				state = away{}
			case !seen:
				continue
			case state.since.IsZero():
				state.since = now
			case !state.told && now.Sub(state.since) >= n.awayAfter:
				state.told = true
				for _, r := range rules {
					r.add(awayText(h))
				}
			}
			next[h.Name] = state
		}
		was = next
		if !retry.Wait(ctx, n.awayAfter/4) {
			return
		}
	}
}

func awayText(h Host) string {
	if h.Why == "" {
		return h.Name + ": the host is away"
	}
	return h.Name + ": the host is away: " + h.Why
}
