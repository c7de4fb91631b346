package adoptions

import (
	"context"
	"regexp"
	"slices"

	"tether/agent/adopt"
	"tether/agent/config"
)

// rule adopts panes by itself.
type rule struct {
	program string
	match   *regexp.Regexp
}

// rulesOf returns the rules of the configuration, which has checked them.
func rulesOf(all []config.Adopt) (out []rule) {
	for _, r := range all {
		match, err := regexp.Compile(r.Match)
		if err == nil && r.Tmux {
			out = append(out, rule{"tmux", match})
		}
	}
	return out
}

// poll adopts the panes that a rule is about. One that the person has unadopted is left
// alone.
func (k *Keeper) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if k.take(ctx) != nil {
		return
	}
	defer k.give()
	panes, errs := k.opts.List(ctx)
	alive := map[string]bool{}
	for _, p := range panes {
		alive[p.Target.String()+" "+identity(p)] = true
		if r, ok := k.due(p); ok {
			_, _ = k.adopt(ctx, p, r) // at the next look again
		}
	}
	if len(errs) > 0 {
		return // a pane that is not listed may live
	}
	k.change(func() {
		k.entries = slices.DeleteFunc(k.entries, func(e *entry) bool { return e.Declined && !alive[e.Pane+" "+e.Identity] })
	})
	k.save()
}

// due returns the request of the first rule that a pane fits which is not kept yet.
func (k *Keeper) due(p adopt.Pane) (Request, bool) {
	at := p.Target.String()
	k.mu.Lock()
	known := slices.ContainsFunc(k.entries, func(e *entry) bool { return e.Pane == at && e.Identity == identity(p) })
	k.mu.Unlock()
	if known || p.Why != "" {
		return Request{}, false
	}
	for _, r := range k.rules {
		if r.program == p.Target.Program && r.match.MatchString(p.Command) {
			return Request{Pane: at, Rule: r.match.String()}, true
		}
	}
	return Request{}, false
}
