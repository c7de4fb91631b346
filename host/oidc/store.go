package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"tether/host/access"
	"tether/host/rights"
)

const (
	storeVersion = 1
	maxStore     = 1 << 20 // bytes, the most that secret.ReadFile reads; beyond it, the oldest sessions are not stored
)

// kept is a session in the file. The provider's refresh token is a secret; of our own
// token there is only the hash.
type kept struct {
	Token    []byte          `json:"token_sha256"`
	Identity rights.Identity `json:"identity"`
	Subject  string          `json:"subject"`
	Session  string          `json:"sid,omitempty"`
	Refresh  string          `json:"refresh_token,omitempty"`
	Begun    time.Time       `json:"begun"`
	Asked    time.Time       `json:"asked"`
}

// store is the content of the file.
type store struct {
	Version  int    `json:"version"`
	Issuer   string `json:"issuer"`
	Sessions []kept `json:"sessions"`
}

// keep writes the sessions for the next host, or for the other nodes. A failure is
// logged; people then have to log in again.
func (p *Provider) keep() {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	doc := p.kept
	p.mu.Unlock()
	if doc == nil {
		return
	}
	f := store{Version: storeVersion, Issuer: p.opts.Issuer, Sessions: p.keptSessions()}
	for {
		if data, err := json.Marshal(f); err != nil || len(data) < maxStore {
			break
		}
		f.Sessions = f.Sessions[(len(f.Sessions)+7)/8:]
	}
	if err := doc.Set(f); err != nil {
		p.log.Error().Err(err).Msg("logins are not kept: they end with this host")
	}
}

// keptSessions returns the sessions to store, the oldest first.
func (p *Provider) keptSessions() []kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []kept{}
	for hash, s := range p.sessions {
		if s.principal.Live.Err() == nil {
			all = append(all, kept{Token: hash[:], Subject: s.subject, Session: s.sid, Refresh: s.refresh, Begun: s.begun.UTC(), Asked: s.asked.UTC(), Identity: s.identity})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return a.Begun.Compare(b.Begun) })
	return all
}

// doc returns the document of the stored sessions.
func (p *Provider) doc(at access.Place) *access.Doc[store] {
	return &access.Doc[store]{At: at, What: "logins by the identity provider", Version: storeVersion, Lost: func(why error) {
		p.log.Error().Err(why).Msg("the kept logins cannot be used: people have to log in again")
	}}
}

// sessionsOf returns the stored sessions, none if they are from another provider.
func (p *Provider) sessionsOf(f *store) []kept {
	if f.Issuer != p.opts.Issuer {
		return nil
	}
	return slices.Clone(f.Sessions)
}

// restore adds the sessions of the former host. Those whose renewal is overdue are due at
// once.
func (p *Provider) restore() error {
	if p.kept == nil {
		return nil
	}
	f, err := p.kept.Now()
	if err != nil {
		return err
	}
	all := p.sessionsOf(f)
	for _, k := range all[:min(len(all), maxSessions)] {
		p.admitKept(k)
	}
	return nil
}

// admitKept adds a stored session, unless it has ended.
func (p *Provider) admitKept(k kept) {
	now := time.Now()
	s := &session{identity: k.Identity, subject: k.Subject, sid: k.Session, refresh: k.Refresh, begun: k.Begun, asked: k.Asked}
	if len(k.Token) != sha256.Size || !now.Before(k.Begun.Add(sessionTime)) || k.Begun.After(now.Add(clockSkew)) || k.Asked.After(now.Add(clockSkew)) || now.Sub(k.Asked) > maxUnasked {
		return
	}
	if principal, err := p.opts.People.LoggedIn(k.Identity); err == nil {
		p.add([sha256.Size]byte(k.Token), s, principal)
	}
}
