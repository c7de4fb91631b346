package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/agent/devserver"
	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
	"tether/vocab"
)

// maxLoan bounds how long a lending with an end may last.
const maxLoan = 366 * 24 * time.Hour

func (s *Server) lend(w http.ResponseWriter, r *http.Request, req localapi.LendRequest) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	host, err := s.hostFor(req.Host)
	if err != nil {
		return err
	}
	if req.ForMs < 0 || req.ForMs > maxLoan.Milliseconds() {
		return localapi.BadRequest("the time must be more than 0 and at most %dh (%d days)", maxLoan/time.Hour, maxLoan/(24*time.Hour))
	}
	if req.FromNow && len(req.To) == 0 {
		return localapi.BadRequest("from_now needs names in to")
	}
	ports, err := portsFrom(req.Ports)
	if err != nil {
		return err
	}
	if req.Write && len(ports) == 0 {
		return localapi.BadRequest("write needs ports")
	}
	if len(ports) > 0 {
		if err := s.checkPorts(r, h, host, ports); err != nil {
			return err
		}
	}
	change := loanChange(req, ports, h.Info().LentToHost(host))
	if len(req.To) > 0 {
		if err := s.checkNames(r.Context(), host, req.To, false); err != nil {
			return err
		}
	}
	before := h.Info().LentToHost(host)
	if err := h.LendTo(host, change); err != nil {
		return err
	}
	if err := s.taken(r.Context(), host, h); err != nil {
		if !before {
			err = errors.Join(err, unlend(h, host))
		}
		return err
	}
	if len(req.To)+len(ports) > 0 {
		s.awaitAudience(r.Context(), host, h)
	}
	if len(ports) == 0 {
		return reply(w, s.terminal(h, s.views(r)))
	}
	if found, err := devserver.Of(h).Listening(); err == nil && slices.Contains(ports, loans.AutoPort) {
		h.FoundPorts(found) // as the daemon does again and again
	}
	t := s.terminal(h, s.views(r))
	listens, _ := listening(h) // on error, nobody is told
	t.Listening = listens[h.ID()]
	return reply(w, t)
}

// loanChange returns the change that a request asks for. Ports have the loan's audience
// and a time of their own: if the terminal is lent already, they change neither.
func loanChange(req localapi.LendRequest, ports []int, lent bool) loans.Change {
	c := loans.Change{Audience: loans.AudienceChange{Grant: req.To, FromNow: req.FromNow, GuestsOnly: new(false)}}
	var until time.Time
	if req.ForMs > 0 {
		until = time.Now().Add(time.Duration(req.ForMs) * time.Millisecond)
	}
	for _, port := range ports {
		c.Ports = append(c.Ports, vocab.LentPort{Port: port, Write: req.Write, Until: until})
	}
	switch add := lent && len(ports) > 0; {
	case add && len(req.To) == 0:
		c.Audience.GuestsOnly = nil
	case !add && (req.ForMs > 0 || len(req.To) == 0): // names without a time do not change the end
		c.Until = &until
	}
	return c
}

// triedWithin bounds how long an answer waits for a host that does not say whether it
// takes terminals: VS Code's host answers after 10 s at the latest.
const triedWithin = 15 * time.Second

// taken returns why the host does not take a terminal that is lent to it.
func (s *Server) taken(ctx context.Context, host string, h term.Handle) error {
	ctx, cancel := context.WithTimeout(ctx, triedWithin)
	defer cancel()
	return s.opts.Hosts.TakesTerminal(ctx, host, h)
}

// hostFor returns the paired host that name means; "" means the default one.
func (s *Server) hostFor(name string) (string, error) {
	hosts := s.opts.Daemon.Status().Hosts
	i := slices.IndexFunc(hosts, func(h localapi.HostStatus) bool { return h.Name == name || name == "" && h.Default })
	switch {
	case i >= 0:
		return hosts[i].Name, nil
	case name == "" && len(hosts) > 0:
		return "", &localapi.Error{Code: localapi.CodeNotPaired, Message: "no default host", Hint: "use --host NAME; tether status lists the hosts"}
	case name == "":
		return "", &localapi.Error{Code: localapi.CodeNotPaired, Message: "no host is paired", Hint: "pair with one: tether pair URL"}
	}
	return "", &localapi.Error{Code: localapi.CodeNotPaired, Message: fmt.Sprintf("no host %.40q is paired", name), Hint: "tether status lists the hosts"}
}

func (s *Server) unlend(w http.ResponseWriter, r *http.Request, req localapi.UnlendRequest) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	if req.Host != "" && !h.Info().LentToHost(req.Host) {
		if _, err := s.hostFor(req.Host); err != nil {
			return err
		}
	}
	switch {
	case len(req.Ports) > 0:
		return s.unlendPorts(w, r, h, req)
	case len(req.From) > 0:
		return s.unlendFrom(w, r, h, req)
	}
	kept := s.keptAt(r, h, req.Host)
	if err := unlend(h, req.Host); err != nil {
		return err
	}
	t := s.terminal(h, s.views(r))
	t.Kept = kept
	return reply(w, t)
}

// keptAt returns the hosts that may keep the terminal's text after the end of its
// lending: of host, or of all if that is "". It returns none for agents.
func (s *Server) keptAt(r *http.Request, h term.Handle, host string) (all []localapi.KeptAt) {
	if ActorFrom(r.Context()) != term.User {
		return nil
	}
	for _, one := range s.opts.Daemon.Status().Hosts {
		for _, l := range one.Lent {
			if l.ID == string(h.ID()) && (host == "" || host == one.Name) && !l.KeptUntil.IsZero() {
				all = append(all, localapi.KeptAt{Host: one.Name, Until: l.KeptUntil})
			}
		}
	}
	return all
}

// unlendAll ends the lending of every terminal and answers with the terminals that were
// lent.
func (s *Server) unlendAll(w http.ResponseWriter, r *http.Request, req localapi.UnlendRequest) error {
	if len(req.From)+len(req.Ports) > 0 {
		return localapi.BadRequest("from and ports need a terminal")
	}
	if req.Host != "" {
		if _, err := s.hostFor(req.Host); err != nil {
			return err
		}
	}
	all := localapi.TerminalList{SchemaVersion: localapi.SchemaVersion, Terminals: []localapi.Terminal{}}
	for _, h := range s.access(r).List() {
		i := h.Info()
		if len(i.LentTo) == 0 || req.Host != "" && !i.LentToHost(req.Host) {
			continue
		}
		kept := s.keptAt(r, h, req.Host)
		if err := unlend(h, req.Host); err != nil {
			return err
		}
		t := s.terminal(h, nil)
		t.Kept = kept
		all.Terminals = append(all.Terminals, t)
	}
	return reply(w, all)
}

func unlend(h term.Handle, host string) error {
	for _, name := range h.Info().LentTo {
		if host == "" || host == name {
			if err := h.Unlend(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostViews are what the hosts say about lent terminals, by terminal and host.
type hostViews map[[2]string]localapi.Loan

// views returns what the hosts say about lent terminals; nil for agents.
func (s *Server) views(r *http.Request) hostViews {
	if ActorFrom(r.Context()) != term.User {
		return nil
	}
	all := hostViews{}
	for _, h := range s.opts.Daemon.Status().Hosts {
		for _, l := range h.Lent {
			all[[2]string{l.ID, h.Name}] = localapi.Loan{State: loanState(h.State, l), Observers: l.Observers, Watchers: l.Watchers}
		}
	}
	return all
}

// loanState returns the state of a loan, given the state of the link to its host.
func loanState(link string, l vocab.Lent) string {
	switch {
	case l.There:
		return localapi.LoanThere
	case link == "refused", link == "unsupported", l.Problem != "":
		return localapi.LoanRefused
	case link == "online":
		return localapi.LoanPending
	}
	return localapi.LoanOffline
}

// terminal is terminalFrom with the hosts' views.
func (s *Server) terminal(h term.Handle, seen hostViews) localapi.Terminal {
	i := h.Info()
	t := terminalFrom(i)
	in, _ := h.Input()
	t.Keyboard = in
	for n := range t.Loans {
		v := seen[[2]string{t.ID, t.Loans[n].Host}]
		t.Loans[n].State, t.Loans[n].Observers, t.Loans[n].Watchers = v.State, v.Observers, v.Watchers
		if seen != nil { // agents are not told names
			t.Loans[n].Audience = audienceFrom(&i.Loans[n].Audience)
		}
	}
	return t
}

func loansFrom(list []loans.Loan) []localapi.Loan {
	all := make([]localapi.Loan, 0, len(list))
	for _, l := range list {
		one := localapi.Loan{Host: l.Host, Since: l.Since, Ports: l.Ports}
		if !l.Until.IsZero() {
			one.Until = &l.Until
		}
		all = append(all, one)
	}
	return all
}

func audienceFrom(a *loans.Audience) *localapi.Audience {
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

// checkNames refuses names that cannot be in an audience, and those that the host
// refuses. A host that is offline is not asked.
func (s *Server) checkNames(ctx context.Context, host string, names []string, denied bool) error {
	if len(names) > loans.MaxNames {
		return localapi.BadRequest("%d names are too many; at most %d", len(names), loans.MaxNames)
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

// awaitAudience returns when the host knows the audience, has not answered for
// toldWithin, or is offline.
func (s *Server) awaitAudience(ctx context.Context, host string, h term.Handle) {
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	s.opts.Hosts.AudienceTold(ctx, host, h)
}

// unlendFrom removes people, groups and agents from the audience, at one host or at all
// hosts to which the terminal is lent.
func (s *Server) unlendFrom(w http.ResponseWriter, r *http.Request, h term.Handle, req localapi.UnlendRequest) error {
	var change loans.AudienceChange
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
			if !slices.ContainsFunc(loan.Audience.Grants, func(g loans.Grant) bool { return g.To == name }) {
				return localapi.BadRequest("the terminal is not shared with %s at %s", name, loan.Host)
			}
		}
		if err := h.ChangeAudience(loan.Host, change); err != nil && !errors.Is(err, loans.ErrNotLent) {
			return err
		}
		s.awaitAudience(r.Context(), loan.Host, h)
	}
	if !some {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "the terminal is not shared", Hint: "tether ls lists shared terminals"}
	}
	return reply(w, s.terminal(h, s.views(r)))
}
