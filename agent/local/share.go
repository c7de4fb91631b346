package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/loopback"
	"tether/vocab"
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
	if req.Port != 0 && (req.Port < loans.LeastPort || req.Port > math.MaxUint16) {
		return localapi.BadRequest("port is %d, and must be %d to %d", req.Port, loans.LeastPort, math.MaxUint16)
	}
	if req.Port != 0 && req.Here != nil {
		return localapi.BadRequest("a private host has no names for ports: share the port at a paired host")
	}
	h, err := s.find(r)
	if err != nil {
		return err
	}
	if req.Here != nil {
		return s.shareHere(w, r, h, req)
	}
	host, err := s.hostFor(req.Host)
	if e, ok := errors.AsType[*localapi.Error](err); ok {
		e.Hint += "; or share it without a host: tether share ID --here"
	}
	if err != nil {
		return err
	}
	made, err := s.newShare(r.Context(), h, host, req)
	return answer(w, made, err)
}

// shareHere shares a terminal at a host of the client's own. It answers with the link,
// and returns when the link has ended, the client is gone or the daemon ends; nothing is
// lent to that host afterwards.
func (s *Server) shareHere(w http.ResponseWriter, r *http.Request, h term.Handle, req localapi.ShareRequest) error {
	if req.Host != "" {
		return localapi.BadRequest("here and host cannot be combined")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	host, end, err := s.opts.Hosts.LinkPrivate(ctx, *req.Here, h.ID())
	if err != nil {
		return err
	}
	end = sync.OnceFunc(end)
	defer end()
	made, err := s.newShare(ctx, h, host, req)
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	out := json.NewEncoder(&deadlined{w: w, control: control, timeout: s.opts.WriteTimeout})
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := out.Encode(made); err != nil {
		return nil // the client is gone
	}
	ended := s.awaitUnshare(ctx, s.access(r), h, host, made.ID)
	end() // before the client hears of the end
	if ended || s.draining.Err() != nil {
		_ = out.Encode(localapi.ShareEnd{Ended: ended}) // fails if the client is gone
	}
	_ = control.SetWriteDeadline(time.Time{})
	return nil
}

// awaitUnshare waits until the share has ended, or ctx has: then it returns false.
func (s *Server) awaitUnshare(ctx context.Context, access term.Access, h term.Handle, host, id string) bool {
	for version := uint64(0); ; {
		var err error
		if version, err = access.Changed(ctx, version); err != nil {
			return false
		}
		loan, lent := h.Loan(host)
		if !lent || !slices.ContainsFunc(loan.Shares, func(s loans.Share) bool { return s.ID == id && !s.Ended }) {
			return true
		}
	}
}

// newShare makes a share of the terminal at the host, and returns its link.
func (s *Server) newShare(ctx context.Context, h term.Handle, host string, req localapi.ShareRequest) (made localapi.NewShare, err error) {
	if err := s.opts.Hosts.TakesShares(host); err != nil {
		return made, err
	}
	link := ahp.NewShareLink()
	lasts := cmp.Or(time.Duration(req.ForMs)*time.Millisecond, shareLasts)
	share := loans.Share{ID: link.ID, Port: req.Port, SecretHash: link.SecretHash(), Until: time.Now().Add(lasts), Once: req.Once}
	if req.Here != nil && req.Here.Agents {
		if err := h.LendTo(host, loans.Change{}); err != nil {
			return made, err
		}
	}
	change := loans.Change{Share: &share}
	if share.Port != 0 {
		change.Ports = portForGuests(h, host, &share)
	}
	if err := h.LendTo(host, change); err != nil {
		return made, err
	}
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	link.URL, err = s.opts.Hosts.ShareTold(ctx, host, h, share.ID)
	if err != nil {
		_ = h.Unshare(host, share.ID) // otherwise a link that was never shown to anybody would admit guests
		return made, err
	}
	at := s.hostURL(host)
	if req.Here != nil {
		at = req.Here.URL
	}
	link.URL = cmp.Or(link.URL, guestPage(at))
	loan, _ := h.Loan(host)
	return localapi.NewShare{Share: shareFrom(h.Info(), &loan, &share), Link: link.Text(), Loopback: onLoopback(link.URL)}, nil
}

// portForGuests opens the port of a link to guests alone, and for as long, unless it is
// open to the audience.
func portForGuests(h term.Handle, host string, s *loans.Share) []vocab.LentPort {
	p := vocab.LentPort{Port: s.Port, Guests: true, Until: s.Until}
	loan, _ := h.Loan(host)
	for _, open := range loan.OpenPorts() {
		switch {
		case open.Port != s.Port:
		case !open.Guests:
			return nil
		case open.Until.After(p.Until):
			p.Until = open.Until
		}
	}
	return []vocab.LentPort{p}
}

// hostURL returns the URL of a paired host, "" if there is none.
func (s *Server) hostURL(host string) string {
	for _, h := range s.opts.Daemon.Status().Hosts {
		if h.Name == host {
			return h.URL
		}
	}
	return ""
}

// guestPage returns the address of the page for guests of a host with a URL, for a host
// that does not report it.
func guestPage(host string) string {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return ""
	}
	scheme := "https"
	if u.Scheme == "ws" || u.Scheme == "http" {
		scheme = "http"
	}
	return scheme + "://" + u.Host + ahp.SharePath + "#"
}

// onLoopback reports whether an address is on loopback, and so leads to different
// machines from different places.
func onLoopback(base string) bool {
	u, err := url.Parse(base)
	return err == nil && loopback.Is(u.Hostname())
}

func shareFrom(i term.Info, l *loans.Loan, s *loans.Share) localapi.Share {
	return localapi.Share{ID: s.ID, Terminal: string(i.ID), Name: i.Name, Host: l.Host, Port: s.Port, Until: s.Until, Once: s.Once, GuestsOnly: l.Audience.GuestsOnly}
}

func (s *Server) shares(w http.ResponseWriter, r *http.Request) error {
	out := localapi.Shares{SchemaVersion: localapi.SchemaVersion, Shares: []localapi.Share{}}
	s.eachShare(r, func(h term.Handle, l *loans.Loan, share *loans.Share) {
		out.Shares = append(out.Shares, shareFrom(h.Info(), l, share))
	})
	return reply(w, out)
}

func (s *Server) eachShare(r *http.Request, do func(h term.Handle, l *loans.Loan, share *loans.Share)) {
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
	s.eachShare(r, func(h term.Handle, l *loans.Loan, share *loans.Share) {
		if share.ID == r.PathValue("id") {
			err = h.Unshare(l.Host, share.ID)
		}
	})
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}
