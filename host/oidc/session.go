package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"tether/host/rights"
	"tether/internal/change"
	"tether/internal/retry"
)

const (
	maxSessions   = 4096 // of all people
	maxOfOne      = 16   // of one person; beyond it the oldest ends
	maxRefresh    = 4 << 10
	renewAfter    = renewEvery - time.Minute // so that an end takes effect within renewEvery
	retryAfter    = 30 * time.Second         // after a renewal that was not answered
	sessionPrefix = "tetherlogin_"
)

// Reasons for the end of a session.
var (
	errOver           = errors.New("the login is over: log in again")
	errProvider       = errors.New("the identity provider has ended this login")
	errSilent         = errors.New("the identity provider did not answer for half an hour: log in again")
	errLoggedOut      = errors.New("the identity provider has logged this person out")
	errManyOfOne      = errors.New("this person has logged in elsewhere too often")
	errEndedHere      = errors.New("the login was ended at the host's page")
	errEndedElsewhere = errors.New("the login has ended")
	errAllChanged     = errors.New("the person may not use this host any more")
)

// session is one login of one person. Its fields are guarded by Provider.mu, except for
// principal and end, which never change.
type session struct {
	principal rights.Principal // its Live ends with the session
	end       context.CancelCauseFunc

	identity     rights.Identity // as last passed to People.LoggedIn
	subject, sid string          // the provider's ids of the person and of this login
	refresh      string          // the provider's refresh token; empty: it gave none
	begun        time.Time       // when the person logged in
	asked        time.Time       // when the provider last confirmed the person
	due          time.Time       // when the provider is asked next
	renewing     bool
}

// Authenticate implements rights.Authenticator for the tokens of sessions.
func (p *Provider) Authenticate(token string) (rights.Principal, bool) { return p.Known(token) }

// Known implements rights.Authenticator.
func (p *Provider) Known(token string) (rights.Principal, bool) {
	return p.ByHash(sha256.Sum256([]byte(token)))
}

// ByHash returns the principal of the session whose token has that hash; ok is false if
// there is none.
func (p *Provider) ByHash(hash [sha256.Size]byte) (rights.Principal, bool) {
	if principal, ok := p.byHash(hash); ok || p.leads() {
		return principal, ok
	}
	p.look() // the session may have just begun
	return p.byHash(hash)
}

func (p *Provider) byHash(hash [sha256.Size]byte) (rights.Principal, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[hash]
	if s == nil || s.principal.Live.Err() != nil {
		return rights.Principal{}, false
	}
	return s.principal, true
}

// open starts a session for a person who has logged in, and returns its token.
func (p *Provider) open(who claims, token *oauth2.Token) (rights.Principal, string, error) {
	principal, err := p.principalOf(who)
	if err != nil {
		return principal, "", err
	}
	secret := sessionPrefix + rand.Text()
	now := time.Now()
	s := &session{identity: p.identity(who), subject: who.Subject, sid: who.Session, refresh: token.RefreshToken, begun: now, asked: now}
	if len(s.refresh) > maxRefresh {
		s.refresh = ""
	}
	p.add(sha256.Sum256([]byte(secret)), s, principal)
	p.keep()
	return s.principal, secret, nil
}

// principalOf admits a person.
func (p *Provider) principalOf(who claims) (rights.Principal, error) {
	if err := p.admit(who); err != nil {
		return rights.Principal{}, err
	}
	principal, err := p.opts.People.LoggedIn(p.identity(who))
	if err != nil {
		return principal, fmt.Errorf("%w: %w", errEnded, err)
	}
	return principal, nil
}

// add adds a session, which ends when its person does.
func (p *Provider) add(hash [sha256.Size]byte, s *session, principal rights.Principal) {
	parent := principal.Live
	if parent == nil {
		parent = context.Background()
	}
	live, end := context.WithCancelCause(parent)
	timed, stop := context.WithDeadlineCause(live, s.begun.Add(sessionTime), errOver)
	principal.Live = timed
	s.principal, s.due = principal, s.asked.Add(renewAfter)
	s.end = func(why error) { end(why); stop() }
	p.mu.Lock()
	p.sessions[hash] = s
	if p.nodes == nil || p.kept != nil {
		p.boundLocked(s)
	}
	p.mu.Unlock()
	context.AfterFunc(timed, func() { p.drop(hash) })
	change.Wake(p.wake)
}

// boundLocked ends sessions beyond the bounds after a new one was added, first those of
// the same person.
func (p *Provider) boundLocked(newest *session) {
	var oldest, oldestOwn *session
	own := 0
	for _, s := range p.sessions {
		if s == newest || s.principal.Live.Err() != nil {
			continue
		}
		if oldest == nil || s.begun.Before(oldest.begun) {
			oldest = s
		}
		if s.subject == newest.subject {
			if own++; oldestOwn == nil || s.begun.Before(oldestOwn.begun) {
				oldestOwn = s
			}
		}
	}
	switch {
	case own >= maxOfOne:
		oldestOwn.end(errManyOfOne)
	case len(p.sessions) > maxSessions && oldest != nil:
		oldest.end(errManyOfOne)
	}
}

// drop removes a session that has ended.
func (p *Provider) drop(hash [sha256.Size]byte) {
	p.mu.Lock()
	_, known := p.sessions[hash]
	if known && !p.closed {
		delete(p.sessions, hash)
	}
	closed := p.closed
	p.mu.Unlock()
	if known && !closed {
		p.keep()
	}
}

// Run renews sessions until ctx ends; while another node leads, it follows that node
// instead. It returns when no renewal is under way.
func (p *Provider) Run(ctx context.Context) {
	if p.nodes != nil {
		var following sync.WaitGroup
		following.Go(func() {
			for retry.Wait(ctx, lookEvery) {
				p.look()
			}
		})
		p.nodes.Run(ctx, p.lead)
		following.Wait()
	} else {
		p.renewAll(ctx)
	}
	p.mu.Lock()
	p.closed = true // sessions that end from now on stay stored for the next host
	p.mu.Unlock()
}

// renewAll renews sessions until ctx ends. It returns when no renewal is under way.
func (p *Provider) renewAll(ctx context.Context) {
	var renewals sync.WaitGroup
	defer renewals.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.wake:
		}
		due, next := p.due(time.Now())
		for _, s := range due {
			renewals.Go(func() { p.renew(ctx, s) })
		}
		timer.Reset(next)
	}
}

// due returns the sessions to renew now, and the time until the next one is due.
func (p *Provider) due(now time.Time) (due []*session, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = renewEvery
	renewing := 0
	for _, s := range p.sessions {
		if s.renewing {
			renewing++
		}
	}
	for _, s := range p.sessions {
		switch wait := s.due.Sub(now); {
		case s.renewing || s.principal.Live.Err() != nil:
		case wait > 0:
			next = min(next, wait)
		case renewing+len(due) < maxRenewals:
			s.renewing = true
			due = append(due, s)
		default:
			next = time.Second
		}
	}
	return due, next
}

// renew asks the provider whether a session's person and their groups are unchanged.
func (p *Provider) renew(ctx context.Context, s *session) {
	p.mu.Lock()
	refresh := s.refresh
	p.mu.Unlock()
	who, token, err := p.again(ctx, s, refresh)
	p.mu.Lock()
	now := time.Now()
	s.renewing = false
	switch {
	case err == nil:
		s.identity, s.refresh, s.asked, s.due = p.identity(who), token.RefreshToken, now, now.Add(renewAfter)
	case ctx.Err() != nil:
	case errors.Is(err, errOver), errors.Is(err, errProvider), errors.Is(err, errAllChanged):
		defer s.end(err)
	case now.Sub(s.asked) > maxUnasked:
		defer s.end(errSilent)
	default:
		s.due = now.Add(retryAfter)
	}
	p.mu.Unlock()
	if err == nil {
		p.keep()
	} else if ctx.Err() == nil {
		p.log.Warn().Str("principal", s.principal.Name).Err(err).Msg("a login was not renewed")
	}
	change.Wake(p.wake)
}

// again asks the provider once. An error that is one of the reasons for the end of a
// session means that the session has ended.
func (p *Provider) again(ctx context.Context, s *session, refresh string) (who claims, token *oauth2.Token, err error) {
	if refresh == "" {
		return who, nil, errOver
	}
	ctx, done := p.bounded(ctx)
	defer done()
	d, err := p.discover(ctx)
	if err != nil {
		return who, nil, err
	}
	if token, err = d.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token(); err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			if refused.ErrorCode == "invalid_grant" { // RFC 6749, section 5.2: expired, revoked, or the person has ended
				return who, nil, errProvider
			}
			err = fmt.Errorf("the identity provider refuses this host: %s", describe(refused))
		}
		return who, nil, err
	}
	if who, err = p.identify(ctx, d, token, ""); err != nil {
		return who, nil, err
	}
	if who.Subject != s.subject {
		return who, nil, fmt.Errorf("%w: it is somebody else's now", errProvider)
	}
	if _, err := p.principalOf(who); err != nil {
		return who, nil, fmt.Errorf("%w: %w", errAllChanged, err)
	}
	return who, token, nil
}

// Kind implements access.More.
func (p *Provider) Kind() rights.EntryKind { return rights.EntrySession }

// Entries implements access.More: it returns the open logins.
func (p *Provider) Entries() (all []rights.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for hash, s := range p.sessions {
		if s.principal.Live.Err() == nil {
			since, until := s.begun, s.begun.Add(sessionTime)
			all = append(all, rights.Entry{Kind: rights.EntrySession, ID: sessionID(hash), Name: s.principal.Name, OwnerID: s.principal.Owner, Detail: "by the identity provider", Since: &since, Until: &until})
		}
	}
	return all
}

// sessionID returns the id of a session, which does not reveal its secret.
func sessionID(hash [sha256.Size]byte) string { return "s-" + hex.EncodeToString(hash[:8]) }

// end ends a session.
func (p *Provider) end(id string) error {
	p.mu.Lock()
	var found *session
	for hash, s := range p.sessions {
		if sessionID(hash) == id {
			found = s
		}
	}
	p.mu.Unlock()
	if found == nil {
		return rights.ErrNoEntry
	}
	found.end(errEndedHere)
	return nil
}

// Session implements access.More.
func (p *Provider) Session(token [sha256.Size]byte) bool {
	_, ok := p.ByHash(token)
	return ok
}
