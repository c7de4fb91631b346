package doctor

import (
	"context"
	"slices"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
)

// checkNotify has the daemon ask the receivers of notifications whether they are there.
// Rules without a receiver are among the daemon's own warnings.
func checkNotify(ctx context.Context, m *machine) []Check {
	if m.down != nil {
		return nil
	}
	n, err := m.told(ctx)
	if err != nil {
		return nil // an agent asks, or the daemon is of an earlier version
	}
	var all []Check
	for _, r := range n.Receivers {
		c := Check{Name: "receiver " + display.Printable(r.Name, 64), Result: OK, Reason: "answers", Doc: "docs/CONFIG.md"}
		if r.Problem != "" {
			c.Result, c.Reason, c.Fix = Warn, r.Problem, "tether notify test "+r.Name+"; for another URL: tether notify add "+r.Name
		}
		all = append(all, c)
	}
	if slices.ContainsFunc(n.Rules, func(r localapi.NotifyRule) bool { return r.To == config.NotifyDesktop }) {
		c := Check{Name: "receiver " + config.NotifyDesktop, Result: OK, Reason: "there is a desktop that shows notifications", Doc: "docs/CONFIG.md"}
		if !m.desktop() {
			c.Result, c.Reason, c.Fix = Warn, "there is no desktop here that shows notifications", "send to a URL instead: tether notify add NAME"
		}
		all = append(all, c)
	}
	return all
}
