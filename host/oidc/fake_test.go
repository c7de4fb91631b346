package oidc_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"tether/host/oidc"
	"tether/host/rights"
	"tether/internal/testkit/must"
)

const (
	issuer = "https://id.example.com"
	public = "https://host.example.com"
	client = "tether-host"
	secret = "the secret of the client"
)

// keys are made once: they take long.
var keys = sync.OnceValues(func() (*rsa.PrivateKey, *rsa.PrivateKey) {
	a, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	b, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return a, b
})

// fakeProvider is an identity provider without a network. Its fields may be changed by
// now.
type fakeProvider struct {
	mu sync.Mutex // held while a request is answered
	*oidctest.Server
	t *testing.T

	person  map[string]any                                // claims of who logs in
	forge   func(token map[string]any)                    // changes the ID token
	sign    func(claims string) string                    // instead of the right signature
	answer  func(http.ResponseWriter, *http.Request) bool // answers instead; true: it has
	offline bool                                          // gives refresh tokens

	codes     map[string]url.Values // requests of codes
	refreshes map[string]bool       // the valid ones
}

func newFakeProvider(t *testing.T) *fakeProvider {
	key, _ := keys()
	f := &fakeProvider{t: t, offline: true, codes: map[string]url.Values{}, refreshes: map[string]bool{},
		Server: &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "1", Algorithm: "RS256"}}},
		person: map[string]any{"sub": "248289761001", "email": "ann@example.com", "email_verified": true, "preferred_username": "Ann", "groups": []string{"web", "ops"}}}
	f.SetIssuer(issuer)
	return f
}

// RoundTrip answers without a network.
func (f *fakeProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answer == nil || !f.answer(w, r) {
		f.serve(w, r)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if w.Code == 0 {
		return nil, errors.New("connection refused")
	}
	return w.Result(), nil
}

// now changes later answers.
func (f *fakeProvider) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeProvider) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": "%[1]s/auth", "token_endpoint": "%[1]s/token", "jwks_uri": "%[1]s/keys",
			"userinfo_endpoint": "%[1]s/userinfo", "id_token_signing_alg_values_supported": ["RS256"], "scopes_supported": ["openid", "offline_access", "groups"]}`, issuer)
	case "/token":
		f.token(w, r)
	case "/userinfo":
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(f.person)
	default:
		f.Server.ServeHTTP(w, r)
	}
}

// login is the person's part at the provider: the address that the browser was sent to
// becomes the one that it is sent back to.
func (f *fakeProvider) login(to string) string {
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, issuer+"/auth?") {
		f.t.Fatalf("the browser was sent to %s", to)
	}
	q := u.Query()
	code := rand.Text()
	f.now(func() { f.codes[code] = q })
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
}

func (f *fakeProvider) token(w http.ResponseWriter, r *http.Request) {
	id, pass, _ := r.BasicAuth()
	asked, known := f.codes[r.PostFormValue("code")]
	delete(f.codes, r.PostFormValue("code"))
	var nonce string
	ok := id == client && pass == url.QueryEscape(secret)
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		ok = ok && known && asked.Get("code_challenge_method") == "S256" && base64.RawURLEncoding.EncodeToString(sum[:]) == asked.Get("code_challenge") &&
			r.PostFormValue("redirect_uri") == asked.Get("redirect_uri")
		nonce = asked.Get("nonce")
	case "refresh_token":
		ok = ok && f.refreshes[r.PostFormValue("refresh_token")]
		delete(f.refreshes, r.PostFormValue("refresh_token"))
	}
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": "invalid_grant"}`)
		return
	}
	answer := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": f.idToken(nonce)}
	if f.offline {
		refresh := rand.Text()
		f.refreshes[refresh] = true
		answer["refresh_token"] = refresh
	}
	json.NewEncoder(w).Encode(answer)
}

// idToken signs the person's claims.
func (f *fakeProvider) idToken(nonce string) string {
	token := maps.Clone(f.person)
	maps.Copy(token, map[string]any{"iss": issuer, "aud": client, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "sid": "sid-1"})
	if nonce != "" {
		token["nonce"] = nonce
	}
	if f.forge != nil {
		f.forge(token)
	}
	text := must.Get(json.Marshal(token))(f.t)
	if f.sign != nil {
		return f.sign(string(text))
	}
	key, _ := keys()
	return oidctest.SignIDToken(key, "1", "RS256", string(text))
}

// fakePeople knows everybody except those whom an administrator has ended.
type fakePeople struct {
	mu     sync.Mutex
	seen   []rights.Identity
	ended  map[string]bool
	cancel context.CancelCauseFunc
}

// LoggedIn implements oidc.People.
func (f *fakePeople) LoggedIn(i rights.Identity) (rights.Principal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, i)
	if f.ended[i.Subject] {
		return rights.Principal{}, errors.New("ended")
	}
	live, cancel := context.WithCancelCause(context.Background())
	f.cancel = cancel
	return rights.Principal{Name: strings.ToLower(i.Wanted), Role: rights.RoleObserver, Live: live}, nil
}

func (f *fakePeople) last() rights.Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[len(f.seen)-1]
}

// rig is a host's side with a provider.
type rig struct {
	t        *testing.T
	fake     *fakeProvider
	people   *fakePeople
	provider *oidc.Provider
	opts     oidc.Options
}

func newRig(t *testing.T, change func(*oidc.Options)) *rig {
	r := &rig{t: t, fake: newFakeProvider(t), people: &fakePeople{ended: map[string]bool{}}}
	r.opts = oidc.Options{Issuer: issuer, ClientID: client, Secret: secret, PublicURL: public, People: r.people,
		OnLogin: func(w http.ResponseWriter, _ *http.Request, p rights.Principal, token string, proof rights.Proof) {
			w.Header().Set("Logged-In", p.Name)
			w.Header().Set("Token", token)
			w.Header().Set("Proof", string(proof))
		},
		OnRefused: func(w http.ResponseWriter, _ *http.Request, status int, why string) { http.Error(w, why, status) }}
	if change != nil {
		change(&r.opts)
	}
	r.start()
	return r
}

// start makes the provider, as a host that starts does.
func (r *rig) start() {
	r.t.Helper()
	p := must.Get(oidc.New(r.opts))(r.t)
	p.SetTransport(r.fake)
	r.provider = p
}

// browser keeps cookies.
type browser struct {
	*rig
	cookies map[string]*http.Cookie
	from    string // its address
}

func (r *rig) browser() *browser { return &browser{r, map[string]*http.Cookie{}, "192.0.2.1"} }

// get follows a link.
func (b *browser) get(to string) *http.Response {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodGet, to, nil)
	r.RemoteAddr = b.from + ":1234"
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.provider.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		b.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w.Result()
}

// begin goes to the provider and returns the address with which it sends the browser
// back.
func (b *browser) begin() string {
	b.t.Helper()
	to := b.get(public + oidc.Path)
	if to.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("the way to the provider: %s", to.Status)
	}
	return b.fake.login(to.Header.Get("Location"))
}

// login goes all the way and returns the session's token.
func (b *browser) login() string {
	b.t.Helper()
	in := b.get(b.begin())
	if in.StatusCode != http.StatusOK || in.Header.Get("Token") == "" {
		b.t.Fatalf("the way back: %s", in.Status)
	}
	return in.Header.Get("Token")
}
