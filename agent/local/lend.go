package local

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
)

// maxLoan bounds how long a lending with an end may last.
const maxLoan = 366 * 24 * time.Hour

func (s *Server) lend(w http.ResponseWriter, r *http.Request) error {
	var req localapi.LendRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	h, err := s.find(r)
	if err != nil {
		return err
	}
	host, err := s.hostFor(req.Host)
	if err != nil {
		return err
	}
	if req.ForMs < 0 || req.ForMs > maxLoan.Milliseconds() {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("a time of %d ms must be 1 ms to %d days", req.ForMs, maxLoan/(24*time.Hour))}
	}
	if req.FromNow && len(req.To) == 0 {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "from_now needs names in to"}
	}
	no := false
	change := term.LoanChange{Audience: term.AudienceChange{Grant: req.To, FromNow: req.FromNow, GuestsOnly: &no}}
	if req.ForMs > 0 || len(req.To) == 0 { // with names alone, the end stays
		var until time.Time
		if req.ForMs > 0 {
			until = time.Now().Add(time.Duration(req.ForMs) * time.Millisecond)
		}
		change.Until = &until
	}
	if len(req.To) > 0 {
		if err := s.checkNames(r.Context(), host, req.To, false); err != nil {
			return err
		}
	}
	if err := h.LendTo(host, change); err != nil {
		return err
	}
	if len(req.To) > 0 {
		s.awaitAudience(r.Context(), host, h)
	}
	return reply(w, s.terminal(h, s.views(r)))
}

// hostFor is the paired host that name means.
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

func (s *Server) unlend(w http.ResponseWriter, r *http.Request) error {
	var req localapi.UnlendRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	h, err := s.find(r)
	if err != nil {
		return err
	}
	if req.Host != "" && !h.Info().LentToHost(req.Host) {
		if _, err := s.hostFor(req.Host); err != nil {
			return err
		}
	}
	if len(req.From) > 0 {
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

// keptAt are the hosts among those named that may keep the terminal after the end of its lending, for the person alone. "" names all.
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

// unlendAll ends the lending of every terminal and answers with those that were lent.
func (s *Server) unlendAll(w http.ResponseWriter, r *http.Request) error {
	var req localapi.UnlendRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if len(req.From) > 0 {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "from needs a terminal"}
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

// hostViews are the hosts' views of lent terminals, by terminal and host.
type hostViews map[[2]string]view

type view struct {
	state     string
	observers *int
	watchers  *localapi.Watchers
}

// views are the hosts' views of lent terminals, for the person alone.
func (s *Server) views(r *http.Request) hostViews {
	if ActorFrom(r.Context()) != term.User {
		return nil
	}
	all := hostViews{}
	for _, h := range s.opts.Daemon.Status().Hosts {
		for _, l := range h.Lent {
			all[[2]string{l.ID, h.Name}] = view{loanState(h.State, l), l.Observers, l.Watchers}
		}
	}
	return all
}

// loanState is the state of a loan, given the state of the link to its host.
func loanState(link string, l localapi.Lent) string {
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
	t.Input, t.InputSince = string(in.State), in.Since
	for n := range t.Loans {
		v := seen[[2]string{t.ID, t.Loans[n].Host}]
		t.Loans[n].State, t.Loans[n].Observers, t.Loans[n].Watchers = v.state, v.observers, v.watchers
		if seen != nil { // an agent is told no names
			t.Loans[n].Audience = audienceFrom(&i.Loans[n].Audience)
		}
	}
	return t
}

func loansFrom(loans []term.Loan) []localapi.Loan {
	all := make([]localapi.Loan, 0, len(loans))
	for _, l := range loans {
		one := localapi.Loan{Host: l.Host, Since: l.Since}
		if !l.Until.IsZero() {
			one.Until = &l.Until
		}
		all = append(all, one)
	}
	return all
}
