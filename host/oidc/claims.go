package oidc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// Bounds of a provider's claims about a person.
const (
	maxText   = 256 // bytes of a subject, a session id, an address or a name; the specification has 255 for subjects
	maxGroups = 256 // groups; further ones are ignored
)

// claims are a provider's claims about a person.
type claims struct {
	Subject  string `json:"sub"`
	Session  string `json:"sid"`
	Email    string `json:"email"`
	Verified flag   `json:"email_verified"`
	Username string `json:"preferred_username"`
	Party    string `json:"azp"`
	AuthTime unix   `json:"auth_time"` // when the person logged in at the provider; 0: it does not say so. Of the ID token alone

	issued time.Time // when the ID token was issued
	groups []string
	listed bool // the claim of groups was present
}

// unix is a time in seconds since 1970.
type unix int64

// UnmarshalJSON implements json.Unmarshaler. Anything but a number is 0.
func (u *unix) UnmarshalJSON(data []byte) error {
	var seconds float64
	if jsonspan.Unmarshal(data, &seconds) != nil || seconds < 0 || seconds > math.MaxUint32 {
		seconds = 0
	}
	*u = unix(seconds)
	return nil
}

// flag is a boolean that some providers send as a string.
type flag bool

// UnmarshalJSON implements json.Unmarshaler. Any value except true and "true" is false.
func (f *flag) UnmarshalJSON(data []byte) error {
	*f = flag(bytes.Equal(data, []byte(`true`)) || bytes.Equal(data, []byte(`"true"`)))
	return nil
}

// identify returns the person of a token from the provider. nonce is that of the attempt.
// A renewal has no nonce, and may have no ID token.
func (p *Provider) identify(ctx context.Context, d *discovered, token *oauth2.Token, nonce string) (who claims, err error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" && nonce != "" {
		return who, fmt.Errorf("%w: it has no ID token", errUnbelieved)
	}
	if raw != "" {
		id, err := d.verifier.Verify(ctx, raw)
		if err != nil {
			return who, fmt.Errorf("%w: %w", errUnbelieved, err)
		}
		if nonce != "" && subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
			return who, fmt.Errorf("%w: the nonce is another login's", errUnbelieved)
		}
		if id.AccessTokenHash != "" {
			if err := id.VerifyAccessToken(token.AccessToken); err != nil {
				return who, fmt.Errorf("%w: %w", errUnbelieved, err)
			}
		}
		if who, err = p.decode(id.Claims); err != nil {
			return who, err
		}
		who.issued = id.IssuedAt
		// A token for several parties names the one that has requested it (OpenID Connect
		// Core 1.0, section 3.1.3.7).
		if who.Party != "" && who.Party != p.opts.ClientID || who.Party == "" && len(id.Audience) > 1 {
			return who, fmt.Errorf("%w: the ID token was made for another client", errUnbelieved)
		}
	}
	if raw != "" && who.Email != "" && who.listed || d.provider.UserInfoEndpoint() == "" {
		return who, p.known(who)
	}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return who, fmt.Errorf("ask the identity provider for the person: %w", err)
	}
	more, err := p.decode(info.Claims)
	if err != nil {
		return who, err
	}
	if raw != "" && more.Subject != who.Subject {
		return who, fmt.Errorf("%w: the person differs between its answers", errUnbelieved)
	}
	return who.with(more), p.known(who.with(more))
}

// decode reads claims and bounds them.
func (p *Provider) decode(into func(any) error) (c claims, err error) {
	var all map[string]json.RawMessage
	if err := into(&c); err != nil {
		return c, fmt.Errorf("%w: %w", errUnbelieved, err)
	}
	if err := into(&all); err != nil {
		return c, fmt.Errorf("%w: %w", errUnbelieved, err)
	}
	for _, text := range []string{c.Subject, c.Session, c.Email, c.Username} {
		if len(text) > maxText {
			return c, fmt.Errorf("%w: a claim is longer than %d bytes", errUnbelieved, maxText)
		}
	}
	c.groups, c.listed = groupsOf(all[p.opts.GroupsClaim])
	return c, nil
}

// groupsOf returns the groups in the claim, which may be a list or one name. It leaves
// out names that a grant cannot have. ok is false without the claim.
func groupsOf(claim json.RawMessage) (groups []string, ok bool) {
	if len(claim) == 0 {
		return nil, false
	}
	var list []string
	if jsonspan.Unmarshal(claim, &list) != nil {
		var one string
		if jsonspan.Unmarshal(claim, &one) != nil {
			return nil, true
		}
		list = []string{one}
	}
	for _, name := range list[:min(len(list), maxGroups)] {
		if access.Check(name, rights.RoleObserver) == nil && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups, true
}

// display returns the person's name, for a question to that person.
func (c claims) display() string {
	return cmp.Or(c.Email, c.Username, c.Subject)
}

// with adds the provider's answer to a query about the person, which is newer than the ID
// token.
func (c claims) with(more claims) claims {
	more.Session, more.Party, more.AuthTime, more.issued = c.Session, c.Party, c.AuthTime, c.issued
	if more.Email == "" {
		more.Email, more.Verified = c.Email, c.Verified
	}
	more.Username = cmp.Or(more.Username, c.Username)
	if !more.listed {
		more.groups, more.listed = c.groups, c.listed
	}
	return more
}

// known refuses claims that name no person.
func (p *Provider) known(c claims) error {
	if c.Subject == "" {
		return fmt.Errorf("%w: it names nobody", errUnbelieved)
	}
	return nil
}

// admit refuses people whom this host does not accept.
func (p *Provider) admit(c claims) error {
	if len(p.opts.Domains) > 0 {
		_, domain, ok := strings.Cut(c.Email, "@")
		if !ok || strings.Contains(domain, "@") || !bool(c.Verified) || !slices.Contains(p.opts.Domains, strings.ToLower(domain)) {
			return fmt.Errorf("%w (address verified: %t)", errStranger, c.Verified)
		}
	}
	if len(p.opts.Groups) > 0 && !slices.ContainsFunc(c.groups, func(g string) bool { return slices.Contains(p.opts.Groups, g) }) {
		return fmt.Errorf("%w (in none of the required groups)", errStranger)
	}
	return nil
}

// identity returns the identity for the host's people.
func (p *Provider) identity(c claims) rights.Identity {
	wanted, _, _ := strings.Cut(cmp.Or(c.Username, c.Email), "@")
	return rights.Identity{Issuer: p.opts.Issuer, Subject: c.Subject, Wanted: wanted, Groups: c.groups}
}
