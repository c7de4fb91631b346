package local

import (
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/vocab"
)

// changesWithin bounds how long a list looks for changes in all its checkouts.
const changesWithin = 4 * time.Second

// checkoutsOf returns the git work trees of terminals' directories, as the handles show
// them: there is none for a directory that is masked. It takes some milliseconds, longer
// with changes. What is not known by then is left out, see checkout.Finder.
func (s *Server) checkoutsOf(changes bool, all ...term.Handle) map[term.ID]*vocab.Checkout {
	var dirs []string
	for _, h := range all {
		dirs = append(dirs, h.Info().Cwd)
	}
	known, found := s.opts.Checkouts.Known(dirs...), map[term.ID]*vocab.Checkout{}
	answers, until := map[string]vocab.Changes{}, time.Now().Add(changesWithin)
	for i, h := range all {
		c, ok := known[dirs[i]]
		if !ok {
			continue
		}
		if changes {
			if answers[c.Worktree] == "" {
				answers[c.Worktree] = vocab.ChangesUnknown
				if c.Worktree != "" && time.Now().Before(until) {
					answers[c.Worktree] = s.opts.Checkouts.Changes(dirs[i])
				}
			}
			c.Changes = answers[c.Worktree]
		}
		c.Show(h.Redact)
		found[h.ID()] = &c
	}
	return found
}

// checkoutsInUse returns the checkouts of running terminals, each with its terminals.
func (s *Server) checkoutsInUse(list []term.Handle) []localapi.CheckoutInUse {
	list = slices.DeleteFunc(slices.Clone(list), func(h term.Handle) bool { return h.Info().Exit != nil })
	all := []localapi.CheckoutInUse{}
	found := s.checkoutsOf(false, list...)
	for _, h := range list {
		c := found[h.ID()]
		if c == nil {
			continue
		}
		at := slices.IndexFunc(all, func(one localapi.CheckoutInUse) bool { return one.Checkout == *c })
		if at < 0 {
			at = len(all)
			all = append(all, localapi.CheckoutInUse{Checkout: *c})
		}
		all[at].Terminals = append(all[at].Terminals, string(h.ID()))
	}
	return all
}
