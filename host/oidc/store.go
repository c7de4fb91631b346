package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"tether/host"
	"tether/host/access"
)

const (
	storeVersion = 1
	maxStore     = 1 << 20 // bytes, the most that secret.ReadFile reads; beyond it, the oldest sessions are not stored
)

// kept is a session in the file. The provider's refresh token is a secret; of our own token there is only the hash.
type kept struct {
	Token    []byte        `json:"token_sha256"`
	Identity host.Identity `json:"identity"`
	Subject  string        `json:"subject"`
	Session  string        `json:"sid,omitempty"`
	Refresh  string        `json:"refresh_token,omitempty"`
	Begun    time.Time     `json:"begun"`
	Asked    time.Time     `json:"asked"`
}

// store is the content of the file.
type store struct {
	Version  int    `json:"version"`
	Issuer   string `json:"issuer"`
	Sessions []kept `json:"sessions"`
}

// keep writes the sessions for the next host, or for the other nodes. A failure is logged; people then have to log in again.
func (p *Provider) keep() {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	place := p.kept
	p.mu.Unlock()
	if place == nil {
		return
	}
	all := p.keptSessions()
	var data []byte
	var err error
	for {
		if data, err = json.Marshal(store{Version: storeVersion, Issuer: p.opts.Issuer, Sessions: all}); err != nil || len(data) < maxStore {
			break
		}
		all = all[(len(all)+7)/8:]
	}
	if err == nil {
		err = place.Change(func([]byte) ([]byte, error) { return append(data, '\n'), nil })
	}
	if err != nil {
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

// stored reads the stored sessions; it returns none if they are from another provider.
func (p *Provider) stored(place access.Place) (store, error) {
	f, lost, err := access.Restore[store](place, storeVersion)
	if lost != nil {
		p.log.Error().Err(lost).Msg("the kept logins cannot be used: people have to log in again")
	}
	if f.Issuer != p.opts.Issuer {
		return store{}, err
	}
	return f, err
}

// restore adds the sessions of the former host. Those whose renewal is overdue are due at once.
func (p *Provider) restore() error {
	if p.kept == nil {
		return nil
	}
	f, err := p.stored(p.kept)
	for _, k := range f.Sessions[:min(len(f.Sessions), maxSessions)] {
		p.admitKept(k)
	}
	return err
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
