package uplink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/change"
	"tether/jsonrpc"
	"tether/vocab"
)

// Errors about audiences.
var (
	// ErrOffline: there is no connection to the host.
	ErrOffline = errors.New("the host is offline")
	// ErrOpen: the host does not keep audiences apart.
	ErrOpen = errors.New("this host shows shared terminals to everybody there")
	// ErrNoPorts: the host takes no lent ports.
	ErrNoPorts = errors.New("this host takes no ports of dev servers")
	// ErrNoShares: the host lets no guests in.
	ErrNoShares = errors.New("this host takes no links for guests")
	// errHeldBack is why a terminal is not announced.
	errHeldBack = fmt.Errorf("%w, so the terminal, which is shared with some, is not sent", ErrOpen)
)

// maxWho bounds a name from a host, in bytes.
const maxWho = 64

// watchersFrom returns what the host claims, made safe to show. No time is in the future.
func watchersFrom(p ahp.WatchersParams, now time.Time) *vocab.Watchers {
	fitAll := func(names []string) []string {
		out := []string{}
		for _, name := range names {
			out = append(out, fit(name, maxWho))
		}
		return out
	}
	w := &vocab.Watchers{May: fitAll(p.May), Refused: fitAll(p.Refused), Watching: []vocab.Watcher{}, More: int(p.More)}
	for _, one := range p.Watching {
		if one.Since.IsZero() || one.Since.After(now) {
			one.Since = now
		}
		w.Watching = append(w.Watching, vocab.Watcher{Who: fit(one.Who, maxWho), Kind: fit(one.Kind, maxWho), Since: one.Since})
	}
	return w
}

// watchers records a terminal's watchers and audience.
func (s *session) watchers(params []byte) {
	var p ahp.WatchersParams
	if ahp.DecodeParams(params, &p) != nil {
		return
	}
	le := s.link.byURI(p.Channel)
	if le == nil {
		return
	}
	w := watchersFrom(p, time.Now())
	s.link.update(le, func(le *lending) { le.watchers = w })
	if s.link.opts.Watched != nil {
		s.link.opts.Watched(le.h.ID(), w.Watching)
	}
}

// audience returns a loan's audience in the protocol's words.
func (l *Link) audience(a *loans.Audience) ahp.Audience {
	out := ahp.Audience{Denied: a.Denied, GuestsOnly: a.GuestsOnly, HostGrants: l.opts.HostGrants}
	for _, g := range a.Grants {
		out.Grants = append(out.Grants, ahp.Grant{To: g.To, From: g.From})
	}
	return out
}

// suits returns nil if the host may get a terminal with that audience. Otherwise the
// error says why not: the host would show it to others.
func (s *session) suits(a *loans.Audience) error {
	switch {
	case a.GuestsOnly && !s.marker.Shares:
		return ErrNoShares
	case len(a.Grants)+len(a.Denied) > 0 && !s.marker.KeepsAudiences():
		return errHeldBack
	}
	return nil
}

// addAudience adds the audience, and what the host may keep, to the _meta of an
// announcement, and records that the host knows it.
func (p *publisher) addAudience(m ahp.Meta) (ahp.Meta, error) {
	loan, ok := p.le.h.LoanHere()
	if !ok {
		return nil, term.ErrNotFound
	}
	if err := p.s.suits(&loan.Audience); err != nil {
		return nil, err
	}
	ports := p.s.ports(&loan)
	p.s.link.update(p.le, func(le *lending) {
		le.version, le.sentVersion, le.shares, le.ports = loan.Version, loan.Version, nil, ports
		if len(loan.Shares) > 0 {
			le.sentVersion = 0 // make the publisher's first step send the shares
		}
	})
	if p.s.parkFor() > 0 {
		m = ahp.AddPark(m, p.s.park(&loan))
	}
	m = ahp.AddPorts(m, ports)
	return ahp.AddAudience(m, p.s.link.audience(&loan.Audience)), nil // even an empty audience: a host that gets one reports who watches
}

// noteAudience checks whether the audience of a published terminal has changed. If so,
// the publisher tells the host, after the output before the change. If the publisher has
// ended because nothing is left to send, the session tells the host.
func (s *session) noteAudience(ctx context.Context, p *publication) {
	loan, ok := p.le.h.LoanHere()
	if !ok {
		return
	}
	s.link.mu.Lock()
	changed := p.le.version != loan.Version
	p.le.version = loan.Version
	alone := p.le.sentVersion != loan.Version && p.le.there && p.over() && !p.lost
	if alone {
		p.le.sentVersion = loan.Version
	}
	s.link.mu.Unlock()
	if changed {
		p.le.signal()
		change.Wake(p.le.again)
	}
	if alone {
		s.wg.Go(func() {
			if err := s.tellAudience(ctx, p.le); err != nil {
				s.link.update(p.le, func(le *lending) { le.sentVersion = 0 })
			}
		})
	}
}

// tellAudience sends the host the new audience. If the host refuses some names, it sends
// the audience without them, so that denials of other people still take effect.
func (s *session) tellAudience(ctx context.Context, le *lending) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	loan, ok := le.h.LoanHere()
	if !ok {
		return term.ErrNotFound
	}
	if err := s.suits(&loan.Audience); err != nil {
		return err
	}
	var err error
	if s.marker.KeepsAudiences() || s.marker.Shares {
		params := ahp.AudienceParams{Channel: le.uri, Audience: s.link.audience(&loan.Audience)}
		err = s.conn.Peer().CallBulk(ctx, ahp.MethodAudience, params, nil)
		if names := refusedNames(err); len(names) > 0 {
			params.Grants = slices.DeleteFunc(params.Grants, func(g ahp.Grant) bool { return slices.Contains(names, g.To) })
			params.Denied = slices.DeleteFunc(slices.Clone(params.Denied), func(name string) bool { return slices.Contains(names, name) })
			err = s.conn.Peer().CallBulk(ctx, ahp.MethodAudience, params, nil)
		}
	}
	if err != nil {
		return fmt.Errorf("say who may watch: %w", err)
	}
	if err := s.tellShares(ctx, le, &loan); err != nil {
		return err
	}
	if err := s.tellPark(ctx, le, &loan); err != nil {
		return err
	}
	if err := s.tellPorts(ctx, le, &loan); err != nil {
		return err
	}
	s.link.mu.Lock()
	le.sentVersion = loan.Version
	s.link.roseLocked()
	s.link.mu.Unlock()
	return nil
}

func refusedNames(err error) []string {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeInvalidParams {
		return ahp.FindRefusedNames(e.Data)
	}
	return nil
}

// roseLocked wakes goroutines that wait until the host knows something.
func (l *Link) roseLocked() {
	l.announced.Raise()
}

// online returns the connected session, or ErrOffline.
func (l *Link) online() (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		return nil, ErrOffline
	}
	return l.session, nil
}

// CheckAudience asks the host which of the names it would refuse in an audience. Errors:
// ErrOffline, ErrOpen, or the host's. Without names it does not ask.
func (l *Link) CheckAudience(ctx context.Context, names []string) (refused []string, err error) {
	s, err := l.online()
	if err != nil {
		return nil, err
	}
	if !s.marker.KeepsAudiences() {
		return nil, ErrOpen
	}
	if len(names) == 0 {
		return nil, nil
	}
	var params ahp.AudienceParams
	for _, name := range names {
		params.Grants = append(params.Grants, ahp.Grant{To: name})
	}
	err = s.conn.Peer().Call(ctx, ahp.MethodAudience, params, nil)
	if refused = refusedNames(err); len(refused) > 0 {
		for i := range refused {
			refused[i] = fit(refused[i], maxWho)
		}
		return refused, nil
	}
	if err != nil {
		return nil, shownError{err}
	}
	return nil, nil
}

// AudienceTold waits until the host knows the audience that the terminal has now. It
// returns false if there is no connection, or ctx ends before.
func (l *Link) AudienceTold(ctx context.Context, h term.Handle) bool {
	loan, ok := h.Loan(l.opts.Name)
	if !ok {
		return false
	}
	for {
		l.mu.Lock()
		le, next, online := l.lendings[h.ID()], l.announced.Next(), l.session != nil
		told := le != nil && le.there && le.sentVersion >= loan.Version
		l.mu.Unlock()
		if told || !online {
			return told
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

// unwatched returns the lendings that may count as watched, if anybody needs that.
func (l *Link) unwatched() (all []*lending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, le := range l.lendings {
		if l.opts.Watched != nil && le.watchers != nil {
			all = append(all, le)
		}
	}
	return all
}
