package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/secret"
)

const (
	tokenBytes  = 32 // random: 256 bits
	tokenPrefix = "tether_"
	maxToken    = 64 // bytes after the prefix
	// maxTokens bounds the agents' tokens.
	maxTokens = 100
	// userToken is the name under which the person's own token is renewed.
	userToken = "user"
)

// ErrRevoked is the cause of the end of connections opened with a revoked token.
var ErrRevoked = errors.New("the token was revoked")

// UserTokenPath returns the path of the file with the person's own token, for the daemon
// with this state directory. The file exists once loopback TCP was enabled or Tokens.User
// was called.
func UserTokenPath(state string) string { return filepath.Join(state, "local.token") }

// Tokens admit clients at the local door on TCP, and prove at the socket that a person is
// behind a script. The person's own token, for TCP, is stored in a file that only they
// can read, so that their programs find it. Of other tokens only hashes are stored. It is
// safe for concurrent use.
type Tokens struct {
	// Set at construction.
	userPath, madePath string
	// Changed, if not nil, is called after a token was made, renewed or revoked and that
	// was stored. It gets the principal, never the token. It must be set before use, and
	// may be called by several goroutines at once.
	Changed func(act TokenAct, principal string)

	mu   sync.Mutex
	user *grant   // the person's own token; nil until it is needed
	made []*grant // tokens of agents, and of the person for scripts
}

// TokenAct is an operation on a token.
type TokenAct string

// The acts. Renewing revokes the former token.
const (
	TokenMade    TokenAct = "made"
	TokenRenewed TokenAct = "renewed"
	TokenRevoked TokenAct = "revoked"
)

// grant is a valid token.
type grant struct {
	tokenRecord
	hash  [sha256.Size]byte
	actor term.Actor
	live  context.Context // ends with ErrRevoked
	end   context.CancelCauseFunc
}

// caller is the identity that the token gives.
func (g *grant) caller() Caller {
	c := Caller{Actor: g.actor, Why: "the token of " + g.Principal}
	if g.actor == term.User {
		c.Sign = "your own token"
	}
	return c
}

// tokenRecord is the stored form of a token.
type tokenRecord struct {
	Principal string    `json:"principal"`
	Person    bool      `json:"person,omitempty"` // it is the person's, and Principal a name for it
	SHA256    []byte    `json:"sha256"`
	Created   time.Time `json:"created"`
}

// tokenFile is the content of the file with the tokens that were made.
type tokenFile struct {
	Version int           `json:"version"`
	Tokens  []tokenRecord `json:"tokens"`
}

const tokenFileVersion = 1

// OpenTokens reads the tokens stored in the state directory, if there are any.
func OpenTokens(state string) (*Tokens, error) {
	t := &Tokens{userPath: UserTokenPath(state), madePath: filepath.Join(state, "tokens.json")}
	var f tokenFile
	err := secret.ReadJSON(t.madePath, tokenFileVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	for _, r := range f.Tokens {
		if checkPrincipal(r.Principal) != nil || len(r.SHA256) != sha256.Size {
			return nil, fmt.Errorf("tokens: %s: the entry of %.80q is not a token; remove it", t.madePath, r.Principal)
		}
		t.made = append(t.made, newGrant(r))
	}
	return t, nil
}

func newGrant(r tokenRecord) *grant {
	g := &grant{tokenRecord: r, hash: [sha256.Size]byte(r.SHA256), actor: term.Agent(r.Principal)}
	if r.Person {
		g.actor = term.User
	}
	g.live, g.end = context.WithCancelCause(context.Background())
	return g
}

// newToken makes a token and its record.
func newToken(principal string, person bool) (string, tokenRecord) {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return token, recordOf(principal, token, person)
}

func recordOf(principal, token string, person bool) tokenRecord {
	hash := sha256.Sum256([]byte(token))
	return tokenRecord{Principal: principal, Person: person, SHA256: hash[:], Created: time.Now().UTC().Truncate(time.Second)}
}

// changed calls Changed if the operation succeeded.
func (t *Tokens) changed(act TokenAct, principal string, err error) {
	if err == nil && t.Changed != nil {
		t.Changed(act, principal)
	}
}

// User returns the person's own token; the first call makes and stores it.
func (t *Tokens) User() (string, error) {
	t.mu.Lock()
	token, made, err := t.userLocked()
	t.mu.Unlock()
	if made {
		t.changed(TokenMade, userToken, err)
	}
	return token, err
}

func (t *Tokens) userLocked() (token string, made bool, err error) {
	data, err := secret.ReadFile(t.userPath)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = t.renewLocked()
		return token, true, err
	}
	if err != nil {
		return "", false, fmt.Errorf("token: %w", err)
	}
	token = strings.TrimSpace(string(data))
	if random, ok := strings.CutPrefix(token, tokenPrefix); !ok || len(random) < base64.RawURLEncoding.EncodedLen(tokenBytes) || len(random) > maxToken {
		return "", false, fmt.Errorf("token: %s holds no token; remove the file, and the daemon makes another", t.userPath)
	}
	if r := recordOf(userToken, token, true); t.user == nil || !bytes.Equal(t.user.SHA256, r.SHA256) {
		t.setUserLocked(r)
	}
	return token, false, nil
}

// renewLocked makes another token for the person and revokes the former one.
func (t *Tokens) renewLocked() (string, error) {
	token, r := newToken(userToken, true)
	if err := secret.WriteFile(t.userPath, []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	t.setUserLocked(r)
	return token, nil
}

func (t *Tokens) setUserLocked(r tokenRecord) {
	if t.user != nil {
		t.user.end(ErrRevoked)
	}
	t.user = newGrant(r)
}

// Create makes a token for the agent called principal, which must not have one yet, and
// stores its hash. The token cannot be shown again later.
func (t *Tokens) Create(principal string) (string, error) { return t.create(principal, false) }

// CreatePerson is Create for the person's scripts: name distinguishes the token from
// others.
func (t *Tokens) CreatePerson(name string) (string, error) { return t.create(name, true) }

func (t *Tokens) create(principal string, person bool) (string, error) {
	if err := checkPrincipal(principal); err != nil {
		return "", err
	}
	if principal == userToken {
		return "", localapi.BadRequest("%q is the name of your own token", principal)
	}
	t.mu.Lock()
	token, err := t.createLocked(principal, person)
	t.mu.Unlock()
	t.changed(TokenMade, principal, err)
	return token, err
}

func (t *Tokens) createLocked(principal string, person bool) (string, error) {
	switch {
	case len(t.made) >= maxTokens:
		return "", &localapi.Error{Code: localapi.CodeLimit, Message: fmt.Sprintf("there are %d tokens, the maximum", maxTokens), Hint: "revoke one"}
	case slices.ContainsFunc(t.made, named(principal)):
		return "", &localapi.Error{Code: localapi.CodeExists, Message: principal + " already has a token",
			Hint: "tether token revoke " + principal + " first, if it is lost"}
	}
	token, r := newToken(principal, person)
	next := append(slices.Clip(t.made), newGrant(r))
	if err := t.keepLocked(next); err != nil {
		return "", err
	}
	return token, nil
}

// Revoke ends the token of that name and all that it has opened. Revoking "user" renews
// the person's own.
func (t *Tokens) Revoke(principal string) error {
	act, do := TokenRevoked, t.revokeLocked
	if principal == userToken {
		act, do = TokenRenewed, func(string) error { _, err := t.renewLocked(); return err }
	}
	t.mu.Lock()
	err := do(principal)
	t.mu.Unlock()
	t.changed(act, principal, err)
	return err
}

func (t *Tokens) revokeLocked(principal string) error {
	i := slices.IndexFunc(t.made, named(principal))
	if i < 0 {
		return &localapi.Error{Code: localapi.CodeNoToken, Message: fmt.Sprintf("%.80q has no token", principal), Hint: "tether token ls shows those that have"}
	}
	revoked := t.made[i]
	if err := t.keepLocked(slices.Delete(slices.Clone(t.made), i, i+1)); err != nil {
		return err
	}
	revoked.end(ErrRevoked)
	return nil
}

// List returns the tokens that were made, the oldest first.
func (t *Tokens) List() []localapi.TokenInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]localapi.TokenInfo, 0, len(t.made))
	for _, g := range t.made {
		all = append(all, localapi.TokenInfo{Principal: g.Principal, Person: g.Person, Created: g.Created})
	}
	slices.SortFunc(all, func(a, b localapi.TokenInfo) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Principal, b.Principal))
	})
	return all
}

func named(principal string) func(*grant) bool {
	return func(g *grant) bool { return g.Principal == principal }
}

// keepLocked replaces the tokens by next, first in the file.
func (t *Tokens) keepLocked(next []*grant) error {
	f := tokenFile{Version: tokenFileVersion, Tokens: []tokenRecord{}}
	for _, g := range next {
		f.Tokens = append(f.Tokens, g.tokenRecord)
	}
	if err := secret.WriteJSON(t.madePath, f); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	t.made = next
	return nil
}

// find returns the grant of a token, nil if it is invalid. Tokens for scripts count only
// at the socket, as a sign of a person; the others count only on TCP, where they admit a
// client. The search takes the same time for all tokens, so that nobody can guess one
// piece by piece.
func (t *Tokens) find(token string, script bool) *grant {
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	var found *grant
	for _, g := range append(slices.Clip(t.made), t.user) {
		if g != nil && (g.Person && g != t.user) == script && subtle.ConstantTimeCompare(g.hash[:], hash[:]) == 1 {
			found = g
		}
	}
	return found
}

// tokens returns the server's tokens, or an error of status 404 if it has none.
func (s *Server) tokens() (*Tokens, error) {
	if s.opts.Tokens == nil {
		return nil, &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon has no tokens"}
	}
	return s.opts.Tokens, nil
}

func (s *Server) listTokens(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	return reply(w, localapi.TokenList{SchemaVersion: localapi.SchemaVersion, Tokens: t.List()})
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	var req localapi.TokenRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	token, err := t.create(req.Principal, req.Person)
	return answer(w, localapi.NewToken{SchemaVersion: localapi.SchemaVersion, Principal: req.Principal, Person: req.Person, Token: token}, err)
}

// showToken answers with the person's own token.
func (s *Server) showToken(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	token, err := t.User()
	return answer(w, localapi.NewToken{SchemaVersion: localapi.SchemaVersion, Principal: userToken, Token: token}, err)
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	t, err := s.tokens()
	if err != nil {
		return err
	}
	return answer(w, struct{}{}, t.Revoke(r.PathValue("principal")))
}
