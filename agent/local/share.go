package local

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
)

// shareLasts is how long a link works by default.
const shareLasts = time.Hour

func (s *Server) share(w http.ResponseWriter, r *http.Request, req localapi.ShareRequest) error {
	if req.ForMs < 0 || req.ForMs > ahp.MaxShareTime.Milliseconds() {
		return localapi.BadRequest("the time must be more than 0 and at most %dh (%d days)", ahp.MaxShareTime/time.Hour, ahp.MaxShareTime/(24*time.Hour))
	}
	if s.opts.NoShares {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "the configuration refuses links for guests", Hint: "set shares = true in the section [lend]"}
	}
	h, err := s.find(r)
	if err != nil {
		return err
	}
	host, err := s.hostFor(req.Host)
	if err != nil {
		return err
	}
	if err := s.opts.Hosts.TakesShares(host); err != nil {
		return err
	}
	link := ahp.NewShareLink()
	lasts := cmp.Or(time.Duration(req.ForMs)*time.Millisecond, shareLasts)
	share := term.Share{ID: link.ID, SecretHash: link.SecretHash(), Until: time.Now().Add(lasts), Once: req.Once}
	if err := h.LendTo(host, term.LoanChange{Share: &share}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), toldWithin)
	defer cancel()
	link.URL, err = s.opts.Hosts.ShareTold(ctx, host, h, share.ID)
	if err != nil {
		_ = h.Unshare(host, share.ID) // otherwise a link that was never shown to anybody would admit guests
		return err
	}
	link.URL = cmp.Or(link.URL, s.guestPage(host))
	loan, _ := h.Loan(host)
	return reply(w, localapi.NewShare{Share: shareFrom(h.Info(), &loan, &share), Link: link.Text(), Loopback: onLoopback(link.URL)})
}

// guestPage returns the address of a host's page for guests, for a host that does not report it.
func (s *Server) guestPage(host string) string {
	hosts := s.opts.Daemon.Status().Hosts
	i := slices.IndexFunc(hosts, func(h localapi.HostStatus) bool { return h.Name == host })
	if i < 0 {
		return ""
	}
	u, err := url.Parse(hosts[i].URL)
	if err != nil {
		return ""
	}
	scheme := "https"
	if u.Scheme == "ws" || u.Scheme == "http" {
		scheme = "http"
	}
	return scheme + "://" + u.Host + ahp.SharePath + "#"
}

// onLoopback reports whether an address is on loopback, and so leads to different machines from different places.
func onLoopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func shareFrom(i term.Info, l *term.Loan, s *term.Share) localapi.Share {
	return localapi.Share{ID: s.ID, Terminal: string(i.ID), Name: i.Name, Host: l.Host, Until: s.Until, Once: s.Once, GuestsOnly: l.Audience.GuestsOnly}
}

func (s *Server) shares(w http.ResponseWriter, r *http.Request) error {
	out := localapi.Shares{SchemaVersion: localapi.SchemaVersion, Shares: []localapi.Share{}}
	s.eachShare(r, func(h term.Handle, l *term.Loan, share *term.Share) {
		out.Shares = append(out.Shares, shareFrom(h.Info(), l, share))
	})
	return reply(w, out)
}

func (s *Server) eachShare(r *http.Request, do func(h term.Handle, l *term.Loan, share *term.Share)) {
	for _, h := range s.access(r).List() {
		for _, l := range h.Info().Loans {
			for i := range l.Shares {
				if !l.Shares[i].Ended {
					do(h, &l, &l.Shares[i])
				}
			}
		}
	}
}

func (s *Server) unshare(w http.ResponseWriter, r *http.Request) error {
	err := error(&localapi.Error{Code: localapi.CodeBadRequest, Message: "there is no such link", Hint: "GET /v1/shares lists them"})
	s.eachShare(r, func(h term.Handle, l *term.Loan, share *term.Share) {
		if share.ID == r.PathValue("id") {
			err = h.Unshare(l.Host, share.ID)
		}
	})
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}
