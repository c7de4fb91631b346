package notify

import (
	"maps"
	"os"
	"slices"

	"tether/platform/secret"
)

// kept is the content of the file for the next daemon.
type kept struct {
	Version  int                  `json:"version"`
	Rules    map[string]keptRule  `json:"rules"`
	Messages map[string][]message `json:"messages"` // by receiver
}

const keptVersion = 1

// remember ends the rules and writes the unsent news to the file for the next daemon.
func (n *Notifier) remember(rules []*rule) {
	k := kept{keptVersion, map[string]keptRule{}, map[string][]message{}}
	for _, r := range rules {
		if state := r.end(); len(state.Lines)+len(state.Sent) > 0 {
			k.Rules[r.Name] = state
		}
	}
	n.mu.Lock()
	senders := slices.Collect(maps.Values(n.senders))
	n.mu.Unlock()
	for _, s := range senders {
		if left := s.left(); len(left) > 0 {
			k.Messages[s.name] = left
		}
	}
	if len(k.Rules)+len(k.Messages) > 0 {
		if err := secret.WriteJSON(n.opts.Keep, k); err != nil {
			n.opts.Report("notify", "what was not sent cannot be kept for the next daemon")
		}
	}
}

// recall reads what the last daemon did not send, and removes the file: after a crash,
// nothing is sent again. A file that is damaged or of another release is only removed.
func (n *Notifier) recall(rules []*rule) {
	var k kept
	err := secret.ReadJSON(n.opts.Keep, keptVersion, &k)
	_ = os.Remove(n.opts.Keep) // mostly there is none
	if err != nil {
		return
	}
	for _, r := range rules {
		if state := k.Rules[r.Name]; len(state.Lines) <= maxLines {
			r.resume(state)
		}
	}
	for name, all := range k.Messages {
		for _, m := range all[max(0, len(all)-maxQueue):] {
			n.to(name).put(m)
		}
	}
}
