package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/host/oidc"
	"tether/host/page"
	"tether/host/rights"
	"tether/internal/retry"
	"tether/internal/textfile"
	"tether/platform/secret"
)

// oidcSettings has the flags for logins by an identity provider.
type oidcSettings struct {
	issuer, clientID, secretFile string
	domains, groups              []string
	groupsClaim                  string
}

func (s *oidcSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.issuer, "oidc-issuer", "", "let people log in with the identity provider at `URL` (OpenID Connect); turns people on")
	f.StringVar(&s.clientID, "oidc-client-id", "", "the `ID` of this host at the identity provider")
	f.StringVar(&s.secretFile, "oidc-secret-file", "", "`FILE` with the secret of that client")
	f.StringArrayVar(&s.domains, "oidc-domain", nil, "let in only people with a verified e-mail address of this `DOMAIN`; may be repeated")
	f.StringArrayVar(&s.groups, "oidc-group", nil, "let in only members of this `GROUP`; may be repeated")
	f.StringVar(&s.groupsClaim, "oidc-groups-claim", "groups", "the `CLAIM` that lists a person's groups")
}

// check checks the flags, without opening anything.
func (s *oidcSettings) check(publicURL string, withoutToken bool) error {
	switch {
	case s.issuer == "" && (s.clientID != "" || s.secretFile != "" || len(s.domains) > 0 || len(s.groups) > 0):
		return &usageError{"--oidc flags need --oidc-issuer", "give the identity provider's URL"}
	case s.issuer == "":
		return nil
	case s.clientID == "" || s.secretFile == "":
		return &usageError{"--oidc-issuer needs --oidc-client-id and --oidc-secret-file", "register the host at the identity provider first: docs/HOST.md"}
	case publicURL == "":
		return &usageError{"--oidc-issuer needs --public-url", "give the https URL at which browsers reach this host; the identity provider sends them back there"}
	case withoutToken:
		return &usageError{"--oidc-issuer and --without-token cannot be combined", "omit --without-token"}
	}
	for i, domain := range s.domains {
		s.domains[i] = strings.ToLower(strings.TrimPrefix(domain, "@"))
		if !strings.Contains(domain, ".") || strings.ContainsAny(s.domains[i], "@ /") {
			return &usageError{fmt.Sprintf("--oidc-domain %.80q is no domain", domain), "give one such as example.com"}
		}
	}
	for _, group := range s.groups {
		if err := access.Check(group, rights.RoleObserver); err != nil {
			return &usageError{"--oidc-group: " + err.Error(), "give the group's name as the identity provider lists it"}
		}
	}
	return nil
}

// openProvider lets people log in by the identity provider, and puts audiences in force.
// It is called after openDevices; without an issuer it returns nil. The provider serves
// browsers once it runs.
func (s *settings) openProvider(o *host.Options) (p *provider, err error) {
	if s.oidc.issuer == "" {
		return nil, nil
	}
	path, err := tokensPath(s.tokens)
	if err != nil {
		return nil, err
	}
	clientSecret, err := secret.ReadFile(s.oidc.secretFile)
	if err == nil {
		clientSecret, err = textfile.Decode(clientSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("--oidc-secret-file: %w", err)
	}
	people, ok := o.People.(*access.People)
	if !ok {
		return nil, errors.New("--oidc-issuer needs a place for tokens: give one with --tokens FILE")
	}
	if !people.Look().On {
		if err := people.Switch(true); err != nil {
			return nil, err
		}
	}
	p = &provider{people: people}
	options := oidc.Options{Issuer: s.oidc.issuer, ClientID: s.oidc.clientID, Secret: strings.TrimSpace(string(clientSecret)), PublicURL: s.publicURL,
		Domains: s.oidc.domains, Groups: s.oidc.groups, GroupsClaim: s.oidc.groupsClaim, People: people, Approve: approveAs(s.places(path)),
		OnLogin: func(w http.ResponseWriter, r *http.Request, who rights.Principal, token string, proof rights.Proof) {
			p.host.Page().LogIn(w, r, who, token, proof)
		},
		OnRefused: func(w http.ResponseWriter, _ *http.Request, status int, why string) {
			p.host.Page().LoginRefused(w, status, why)
		},
		Noted: func(r *http.Request) bool { return p.host.Noted(r) }, Audit: o.Audit, Logger: o.Logger}
	if s.node == nil {
		options.Sessions = access.OwnFile(besideTokens(path, "sessions.json"))
	} else {
		nodes, err := s.leader(path, "logins", "sessions", o.Logger)
		if err != nil {
			return nil, err
		}
		options.Shared = &nodes
	}
	if p.Provider, err = oidc.New(options); err != nil {
		return nil, fmt.Errorf("identity provider: %w", err)
	}
	o.Access = devices.Both(o.Access, p)
	if logins, ok := o.Logins.(*access.Logins); ok {
		logins.Sessions(p.ByHash)
	}
	u, err := url.Parse(s.oidc.issuer)
	if err != nil {
		return nil, err
	}
	o.Provider = &page.LoginProvider{Name: u.Host, Path: oidc.Path}
	return p, nil
}

// provider is the identity provider and the host at which it logs people in.
type provider struct {
	*oidc.Provider
	people *access.People
	host   *host.Host // set by run
}

// run logs people in at the host until the returned function is called, which waits for
// the end.
func (p *provider) run(ctx context.Context, at *host.Host) (stop func()) {
	if p == nil {
		return func() {}
	}
	p.host = at
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { p.Run(ctx) })
	run.Go(func() {
		for retry.Wait(ctx, time.Second) {
			p.people.Look() // ends everything that an ended person has opened
		}
	})
	return func() { cancel(); run.Wait() }
}

// approveAs admits a machine as that of a logged-in person. It opens the tokens again,
// because Tokens.OwnedBy holds for all later tokens.
func approveAs(at places) func(rights.Principal, string, string) error {
	return func(p rights.Principal, code, name string) error {
		t, err := access.Open(at.tokens)
		if err != nil {
			return err
		}
		t.OwnedBy(p.Owner)
		if err = at.mayApprove(t, code, name, p.Name); err == nil {
			_, err = devices.Approve(at.pending, t, code, name)
		}
		if errors.Is(err, access.ErrTakenName) {
			return fmt.Errorf("%w: pair with another name, with --name", err)
		}
		return err
	}
}

// openRegister lets people and administrators see and end, on the page, the entries that
// the host keeps. It is called after openTokens and openProvider.
func openRegister(o *host.Options, p *provider) {
	people, ok := o.People.(*access.People)
	switch {
	case !ok:
	case p == nil:
		o.Register = access.NewRegister(people)
	default:
		o.Register = access.NewRegister(people, p)
	}
}
