package oidc

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"
	"github.com/rs/zerolog"
	"golang.org/x/oauth2"

	"tether/host/access"
	"tether/host/admission"
	"tether/host/leader"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/loopback"
)

// Path begins every path of a Provider, below the host's public URL.
const Path = "/login/oidc"

const (
	callbackPath = Path + "/callback" // the redirect URI that the provider must know
	logoutPath   = Path + "/logout"   // the back-channel logout URI
)

const (
	renewEvery  = 10 * time.Minute // the provider is asked about a session at least so often
	maxUnasked  = 30 * time.Minute // a session ends after so long without an answer from the provider
	sessionTime = 12 * time.Hour   // then the person has to log in again
	clockSkew   = time.Minute      // by which a session may seem to be from the future
	discoverGap = 5 * time.Second  // between two tries to read the provider's configuration
	// Requests to the provider at a time: of people who log in, those of one address
	// among them, for logout tokens, and to renew sessions. They have slots of their own,
	// so that strangers who invent codes and logout tokens keep nobody from logging in.
	// More are answered 503; renewals wait.
	maxLogins, maxLoginsOfOne, maxLogouts, maxRenewals = 32, 8, 16, 16
)

// Options are the settings of a Provider. Issuer, ClientID, Secret, PublicURL, People,
// OnLogin and OnRefused are required.
type Options struct {
	// Issuer is the provider's URL, exactly as its tokens name it: https, or http on a
	// loopback address.
	Issuer string
	// ClientID and Secret identify this host to the provider.
	ClientID, Secret string
	// PublicURL is the https URL under which browsers reach the host, without a path;
	// http on a loopback address. The provider must know PublicURL +
	// "/login/oidc/callback" as the redirect URI, and may know PublicURL +
	// "/login/oidc/logout" for back-channel logout.
	PublicURL string
	// Domains are the domains of e-mail addresses that may log in, lower case. With any,
	// an address that the provider has not verified is refused. Empty admits everyone
	// whom the provider admits.
	Domains []string
	// Groups are the groups in one of which a person must be; empty requires none.
	Groups []string
	// GroupsClaim is the claim that lists a person's groups; empty means "groups".
	GroupsClaim string
	// People turns identities into people.
	People People
	// Sessions is where sessions and the provider's refresh tokens are stored for the
	// next host; nil stores none.
	Sessions access.Place
	// Shared is set, instead of Sessions, if the host has several nodes. One node, the
	// leader, connects to the identity provider for all and is the only one that changes
	// sessions; browsers and command lines may use any node.
	Shared *leader.Shared
	// OnLogin logs a browser in as p, the principal of the session with that token, and
	// sends it to the page.
	OnLogin func(w http.ResponseWriter, r *http.Request, p rights.Principal, token string, proof rights.Proof)
	// OnRefused tells a person why nobody was logged in.
	OnRefused func(w http.ResponseWriter, r *http.Request, status int, why string)

	// Approve admits the machine that waits with a pairing code, as belonging to the
	// person p. Its error is shown to that person. nil admits none.
	Approve func(p rights.Principal, code, name string) error

	// Noted reports whether one more refusal of the sender of a request is to be logged
	// and recorded; nil: all are. Anybody can send requests that are refused.
	Noted  func(r *http.Request) bool
	Audit  func(rights.AuditEvent) // nil keeps no record
	Logger *zerolog.Logger         // nil means silence
}

// People maps identities to people. It is safe for concurrent use.
type People interface {
	// LoggedIn returns the principal of the person with that identity, and adds the
	// person at the first login. The groups that the provider names now replace those
	// that it named before. The principal's Live ends when an administrator ends the
	// person. An error means that this has happened already.
	LoggedIn(rights.Identity) (rights.Principal, error)
}

// Provider is the identity provider as the host sees it. It is an http.Handler for
// everything below Path and a rights.Authenticator for the tokens of sessions, and safe
// for concurrent use.
type Provider struct {
	opts   Options
	log    zerolog.Logger
	secure bool // PublicURL is https
	client *http.Client
	nodes  *leader.Service[question, answer] // nil: this is the only node
	seal   cipher.AEAD                       // of the cookie between a browser's leaving and its return
	logins bounded.Slots                     // people who log in
	ends   bounded.Slots                     // logout tokens that the known keys have not signed
	wake   chan struct{}                     // wakes Run when a session was added; holds one

	discovering sync.Mutex // held while the provider's configuration is read
	mu          sync.Mutex
	found       *discovered                    // nil until the provider has answered
	tried       time.Time                      // when found was last requested
	why         error                          // the error of that request
	sessions    map[[sha256.Size]byte]*session // by their tokens' hashes
	cli         logins
	loggedOut   bounded.Map[string, struct{}] // ids of logout tokens that were taken, until they expire
	closed      bool
	kept        *access.Doc[store] // where this node stores sessions; nil: nowhere, or the leader does
	theirs      *access.Doc[store] // the leader's; set once
	taken       *store             // what this node has applied of it

	writing sync.Mutex // held while the file is written, so that the newest state is written last
	looking sync.Mutex // held while the leader's sessions are applied
}

// discovered is the provider's description of itself.
type discovered struct {
	provider *openid.Provider
	verifier *openid.IDTokenVerifier
	known    *openid.IDTokenVerifier // requests nothing from the provider
	oauth    oauth2.Config
}

// New returns a Provider with the sessions in the file. It does not contact the identity
// provider, so that a host can start while that is down.
func New(o Options) (*Provider, error) {
	p := &Provider{opts: o, log: zerolog.Nop(), client: newClient(), logins: bounded.Slots{All: maxLogins, Each: maxLoginsOfOne}, ends: bounded.Slots{All: maxLogouts}, wake: make(chan struct{}, 1),
		sessions: map[[sha256.Size]byte]*session{}, loggedOut: bounded.Map[string, struct{}]{Most: maxLoggedOut},
		cli: logins{bounded.Map[string, *waiting]{Most: maxWaiting}, bounded.Map[[sha256.Size]byte, confirming]{Most: maxConfirm}, bounded.Map[[sha256.Size]byte, granted]{Most: maxGranted}}}
	if o.Logger != nil {
		p.log = *o.Logger
	}
	if o.GroupsClaim == "" {
		p.opts.GroupsClaim = "groups"
	}
	if o.ClientID == "" || o.Secret == "" || o.People == nil || o.OnLogin == nil || o.OnRefused == nil {
		return nil, errors.New("oidc: ClientID, Secret, People, OnLogin and OnRefused are required")
	}
	if _, err := webURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("the issuer: %w", err)
	}
	public, err := webURL(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("the host's public URL: %w", err)
	}
	if o.Noted == nil {
		p.opts.Noted = func(*http.Request) bool { return true }
	}
	p.opts.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	p.secure = public.Scheme == "https"
	key := make([]byte, 32)
	if o.Shared != nil {
		key = o.Shared.Key
	} else {
		rand.Read(key) // never fails, see crypto/rand
	}
	if p.seal, err = leader.NewCipher(key); err != nil {
		return nil, err
	}
	if o.Shared != nil {
		if p.nodes, err = leader.New(*o.Shared, "logins", askWithin, p.answer); err == nil {
			p.theirs = p.doc(p.nodes.Kept())
		}
		return p, err
	}
	if o.Sessions != nil {
		p.kept = p.doc(o.Sessions)
	}
	return p, p.restore()
}

// webURL parses an https URL; http is allowed for a loopback address, where nobody can
// eavesdrop.
func webURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no URL such as https://id.example.com", text)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback.Is(u.Hostname())) {
		return nil, fmt.Errorf("%q: use https (http only on a loopback address)", text)
	}
	return u, nil
}

// errBusy refuses one request too many to the provider.
var errBusy = errors.New("too many logins at a time")

// ask takes a slot for what a request makes the host ask the provider, and bounds the
// time for that. The caller gives the slot back by calling done.
func (p *Provider) ask(r *http.Request, from *bounded.Slots) (within context.Context, done func(), err error) {
	give, ok := from.Try(admission.PlaceOf(r.RemoteAddr))
	if !ok {
		return nil, nil, errBusy
	}
	within, cancel := p.bounded(r.Context())
	return within, func() { cancel(); give() }, nil
}

// bounded bounds the time for requests to the provider.
func (p *Provider) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(openid.ClientContext(ctx, p.client), 2*requestTime)
}

// description returns the provider's description of itself, nil before it was read.
func (p *Provider) description() *discovered {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

// discover returns the provider's description of itself, which is requested on first use.
// After a failure it is not requested again for discoverGap.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.description(); found != nil {
		return found, nil
	}
	p.discovering.Lock()
	defer p.discovering.Unlock()
	p.mu.Lock()
	found, why, wait := p.found, p.why, time.Since(p.tried) < discoverGap
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if why != nil && wait {
		return nil, why
	}
	found, err := p.read(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.why, p.tried = found, err, time.Now()
	return found, err
}

// algorithms are those with a public key.
var algorithms = []string{openid.RS256, openid.RS384, openid.RS512, openid.ES256, openid.ES384, openid.ES512, openid.PS256, openid.PS384, openid.PS512, openid.EdDSA}

// read asks the provider for its configuration.
func (p *Provider) read(ctx context.Context) (*discovered, error) {
	// Others wait for the answer, too, so the request does not end with the one that has
	// caused it.
	provider, err := openid.NewProvider(openid.ClientContext(context.WithoutCancel(ctx), p.client), p.opts.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read the identity provider's configuration: %w", err)
	}
	var says struct {
		Scopes     []string `json:"scopes_supported"`
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, fmt.Errorf("read the identity provider's configuration: %w", err)
	}
	scopes := []string{openid.ScopeOpenID, "profile", "email"}
	for _, extra := range []string{openid.ScopeOfflineAccess, "groups"} {
		if slices.Contains(says.Scopes, extra) {
			scopes = append(scopes, extra)
		}
	}
	config := &openid.Config{ClientID: p.opts.ClientID, SupportedSigningAlgs: slices.DeleteFunc(says.Algorithms, func(alg string) bool { return !slices.Contains(algorithms, alg) })}
	all := newKeys(p.client, says.Keys)
	return &discovered{provider: provider, verifier: openid.NewVerifier(p.opts.Issuer, all, config), known: openid.NewVerifier(p.opts.Issuer, known{all}, config),
		oauth: oauth2.Config{ClientID: p.opts.ClientID, ClientSecret: p.opts.Secret, Endpoint: provider.Endpoint(),
			RedirectURL: p.opts.PublicURL + callbackPath, Scopes: scopes}}, nil
}
