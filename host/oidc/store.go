package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"tether/host"
	"tether/platform/secret"
)

const (
	storeVersion = 1
	maxStore     = 1 << 20 // bytes, as many as secret.ReadFile takes; beyond it, the oldest sessions are not kept
)

// kept is a session in the file. The provider's refresh token is a secret; ours is there as a hash.
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
	Epoch    int64  `json:"epoch,omitempty"` // of the leader, see Shared
	Sessions []kept `json:"sessions"`
}

// keep writes the sessions for the next host. A failure is logged: people log in again then.
func (p *Provider) keep() {
	if p.opts.Sessions == "" && p.opts.Shared == nil {
		return
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	all := p.keptSessions()
	var data []byte
	var err error
	for {
		if data, err = json.Marshal(store{Version: storeVersion, Issuer: p.opts.Issuer, Sessions: all}); err != nil || len(data) < maxStore {
			break
		}
		all = all[(len(all)+7)/8:]
	}
	switch {
	case err != nil:
	case p.opts.Shared != nil:
		err = p.replace(all)
	default:
		err = secret.WriteFile(p.opts.Sessions, append(data, '\n'))
	}
	if err != nil {
		p.log.Error().Err(err).Msg("logins are not kept: they end with this host")
	}
}

// keptSessions returns the sessions to keep, the oldest first.
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

// restore admits the sessions of the former host, unless they are another provider's. Those that were not renewed meanwhile are due at
// once.
func (p *Provider) restore() error {
	if p.opts.Sessions == "" {
		return nil
	}
	var f store
	err := secret.ReadJSON(p.opts.Sessions, storeVersion, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		aside := p.opts.Sessions + ".damaged"
		if moved := os.Rename(p.opts.Sessions, aside); moved != nil {
			return fmt.Errorf("logins: %w; the file cannot be put aside: %w", err, moved)
		}
		p.log.Error().Err(err).Str("aside", aside).Msg("the file of logins cannot be used and is put aside: people have to log in again")
		return nil
	case f.Issuer != p.opts.Issuer:
		return nil
	}
	for _, k := range f.Sessions[:min(len(f.Sessions), maxSessions)] {
		p.admitKept(k)
	}
	return nil
}

// admitKept admits a session that was kept, unless it is over.
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
