package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
)

func audienceFrom(a *term.Audience) *localapi.Audience {
	out := &localapi.Audience{To: []string{}, FromNow: []string{}, NotTo: append([]string{}, a.Denied...), GuestsOnly: a.GuestsOnly}
	for _, g := range a.Grants {
		out.To = append(out.To, g.To)
		if g.From > 0 {
			out.FromNow = append(out.FromNow, g.To)
		}
	}
	return out
}

// toldWithin bounds how long an answer waits for the host to know the audience.
const toldWithin = 5 * time.Second

// checkNames refuses names that cannot be in an audience, and those that the host refuses. A host that is offline is not asked.
func (s *Server) checkNames(ctx context.Context, host string, names []string, denied bool) error {
	if len(names) > term.MaxNames {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("%d names are too many; at most %d", len(names), term.MaxNames)}
	}
	for _, name := range names {
		if err := ahp.CheckAudienceName(name, denied && !strings.HasPrefix(name, ahp.GroupPrefix) && name != ahp.ToEveryone); err != nil {
			return &localapi.Error{Code: localapi.CodeBadRequest, Message: err.Error()}
		}
	}
	if denied {
		names = nil
	}
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	return s.opts.Hosts.CheckAudience(ctx, host, names)
}

// awaitAudience returns when the host knows the audience, has not answered for a while, or is offline.
func (s *Server) awaitAudience(ctx context.Context, host string, h term.Handle) {
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	s.opts.Hosts.AudienceTold(ctx, host, h)
}

// unlendFrom has people, groups and agents watch no more, at one host or at all that the terminal is lent to.
func (s *Server) unlendFrom(w http.ResponseWriter, r *http.Request, h term.Handle, req localapi.UnlendRequest) error {
	var change term.AudienceChange
	for _, name := range req.From {
		if name == ahp.ToEveryone || strings.HasPrefix(name, ahp.GroupPrefix) {
			change.Drop = append(change.Drop, name)
		} else {
			change.Deny = append(change.Deny, name)
		}
	}
	some := false
	for _, loan := range h.Info().Loans {
		if req.Host != "" && loan.Host != req.Host {
			continue
		}
		some = true
		if err := s.checkNames(r.Context(), loan.Host, req.From, true); err != nil {
			return err
		}
		for _, name := range change.Drop {
			if !slices.ContainsFunc(loan.Audience.Grants, func(g term.Grant) bool { return g.To == name }) {
				return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("the terminal is not shared with %s at %s", name, loan.Host)}
			}
		}
		if err := h.ChangeAudience(loan.Host, change); err != nil && !errors.Is(err, term.ErrNotLent) {
			return err
		}
		s.awaitAudience(r.Context(), loan.Host, h)
	}
	if !some {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "the terminal is not shared", Hint: "tether ls lists shared terminals"}
	}
	return reply(w, s.terminal(h, s.views(r)))
}
