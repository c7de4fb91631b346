package access

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
	"slices"
	"strings"
	"sync"
	"time"

	"tether/host/rights"
	"tether/internal/retry"
	"tether/pairing"
)

const (
	tokenBytes  = 32 // random: 256 bits
	tokenPrefix = "tetherhost_"
	idBytes     = 4 // random, in a token's id
	// lookEvery is how often Run checks whether the file was changed. So a revoked token
	// works for at most this much longer.
	lookEvery = time.Second
)

var (
	// ErrRevoked is the cause of the end of connections opened with a revoked token.
	ErrRevoked = errors.New("the token was revoked")
	// ErrExpired is the cause of the end of connections opened with an expired token.
	ErrExpired = errors.New("the token has expired")
	// ErrNoToken is returned by Revoke if there is no such token.
	ErrNoToken = errors.New("no such token")
)

// Info is the part of a token that may be shown.
type Info struct {
	ID        string      `json:"id"`
	Principal string      `json:"principal"`
	Role      rights.Role `json:"role"`
	Created   time.Time   `json:"created"`
	Expires   *time.Time  `json:"expires,omitempty"` // nil: never
	Expired   bool        `json:"expired,omitempty"`
	Kind      Kind        `json:"kind"`
	Owner     string      `json:"owner,omitempty"` // id of the person who owns it; empty: the administrator
}

// Kind says what a record admits, and how.
type Kind string

// The kinds of a record.
const (
	KindToken   Kind = "token"
	KindPairing Kind = "pairing token" // pairs one machine, once, and opens nothing else
	KindDevice  Kind = "machine"       // paired by its key
)

// Tokens are the tokens and paired machines in one document. It implements
// rights.Authenticator, and is safe for concurrent use. Its methods read the document
// with mu held, and so wait for each other.
type Tokens struct {
	doc   Doc[tokensFile]
	owner string // see OwnedBy

	mu     sync.Mutex
	read   *tokensFile       // of which grants are
	err    error             // why the file could not be read; the former contents stay in force
	grants map[string]*grant // by record.key; an expired one stays until its record is removed
}

// grant is a record that was valid when it was read. Other goroutines have contexts that
// end with live, so a grant is never changed.
type grant struct {
	record
	live context.Context
	end  context.CancelCauseFunc
	stop context.CancelFunc // stops the timer of the expiry
}

// Open reads the tokens in a document, which may be missing.
func Open(at Place) (*Tokens, error) {
	t := &Tokens{doc: tokensDoc(at), grants: map[string]*grant{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	return t, t.err
}

// Run reads the file again whenever it was changed, until ctx ends, and so ends the
// connections of revoked tokens. onError, if not nil, is called with an error when the
// file cannot be read, and with nil when it can be read again.
func (t *Tokens) Run(ctx context.Context, onError func(error)) {
	for told := ""; retry.Wait(ctx, lookEvery); {
		t.mu.Lock()
		t.lookLocked()
		err := t.err
		t.mu.Unlock()
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != told && onError != nil {
			onError(err)
		}
		told = text
	}
}

// Authenticate implements rights.Authenticator.
func (t *Tokens) Authenticate(token string) (rights.Principal, bool) {
	return t.lookup(func() (rights.Principal, bool) { return t.knownLocked(token) })
}

// lookup returns the result of find. If it fails, lookup reads the file and calls it
// again, because the record may be new. Reading the file for every wrong token is
// affordable, because the host limits those.
func (t *Tokens) lookup(find func() (rights.Principal, bool)) (rights.Principal, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := find()
	if !ok {
		t.lookLocked()
		p, ok = find()
	}
	return p, ok
}

// Known implements rights.Authenticator.
func (t *Tokens) Known(token string) (rights.Principal, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.knownLocked(token)
}

func (t *Tokens) knownLocked(token string) (rights.Principal, bool) {
	hash := sha256.Sum256([]byte(token))
	return t.ofHashLocked(hash[:])
}

// ofHashLocked returns the principal of the token with that hash; ok is false if there is
// none or it has expired.
func (t *Tokens) ofHashLocked(hash []byte) (rights.Principal, bool) {
	g := t.findLocked(hash)
	if g == nil || g.expired(time.Now()) {
		return rights.Principal{}, false
	}
	return g.principal(), true
}

// Named returns the principal of that name and role, as admitted by the token of its that
// expires last; ok is false if it has no valid token. A machine that is paired by its key
// has no token.
func (t *Tokens) Named(name string, role rights.Role) (p rights.Principal, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	var best *grant
	for _, g := range t.grants {
		if g.Principal != name || g.Role != role || g.Once || g.DeviceKey != nil || g.expired(time.Now()) {
			continue
		}
		if best == nil || best.Expires != nil && (g.Expires == nil || g.Expires.After(*best.Expires)) {
			best = g
		}
	}
	if best == nil {
		return p, false
	}
	return best.principal(), true
}

func (g *grant) principal() rights.Principal {
	return rights.Principal{Name: g.Principal, Role: g.Role, Live: g.live, Owner: g.Owner}
}

// findLocked returns the token with that hash, or nil. It compares with every token, so
// that the time it takes reveals nothing.
func (t *Tokens) findLocked(hash []byte) *grant {
	var found *grant
	for _, g := range t.grants {
		if subtle.ConstantTimeCompare(g.SHA256, hash) == 1 && !g.Once {
			found = g
		}
	}
	return found
}

// look reads the file if it was changed.
func (t *Tokens) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
}

// lookLocked reads the file if it was changed, and ends the grants whose records are
// gone. If the file cannot be read, it sets t.err, and the former grants stay.
func (t *Tokens) lookLocked() {
	f, err := t.doc.Now()
	if t.err = err; err != nil || f == t.read {
		return
	}
	t.read = f
	there := map[string]bool{}
	for _, r := range f.Tokens {
		key := r.key()
		there[key] = true
		// A machine that was paired again, or a principal with another owner, must
		// reconnect.
		if g := t.grants[key]; g != nil && (g.Principal != r.Principal || g.Owner != r.Owner || !bytes.Equal(g.Pairing, r.Pairing)) {
			t.endLocked(key, g)
		}
		if t.grants[key] == nil && !r.expired(time.Now()) {
			t.grants[key] = newGrant(r)
		}
	}
	for key, g := range t.grants {
		if !there[key] {
			t.endLocked(key, g)
		}
	}
}

func (t *Tokens) endLocked(key string, g *grant) {
	g.end(ErrRevoked)
	g.stop()
	delete(t.grants, key)
}

func newGrant(r record) *grant {
	g := &grant{record: r, stop: func() {}}
	ctx := context.Background()
	if r.Expires != nil {
		ctx, g.stop = context.WithDeadlineCause(ctx, *r.Expires, ErrExpired)
	}
	g.live, g.end = context.WithCancelCause(ctx)
	return g
}

// Create makes a token for a principal and returns it; it cannot be shown again later. A
// principal may have several tokens, all of one role. With a ttl of 0, the token does not
// expire.
func (t *Tokens) Create(principal string, role rights.Role, ttl time.Duration) (token string, info Info, err error) {
	return t.create(principal, role, ttl, false)
}

func (t *Tokens) create(principal string, role rights.Role, ttl time.Duration, once bool) (token string, info Info, err error) {
	if err := Check(principal, role); err != nil {
		return "", Info{}, err
	}
	if ttl < 0 {
		return "", Info{}, fmt.Errorf("a token cannot expire before it is made: %v", ttl)
	}
	secretPart, id := make([]byte, tokenBytes), make([]byte, idBytes)
	rand.Read(secretPart) // never fails, see crypto/rand
	rand.Read(id)
	prefix := tokenPrefix
	if once {
		prefix = pairing.TokenPrefix
	}
	token = prefix + base64.RawURLEncoding.EncodeToString(secretPart)
	hash := sha256.Sum256([]byte(token))
	now := time.Now().UTC().Truncate(time.Second)
	r := record{ID: fmt.Sprintf("t-%x", id), Principal: principal, Role: role, SHA256: hash[:], Once: once, Created: now, Owner: t.owner}
	if ttl > 0 {
		r.Expires = new(time.Now().UTC().Add(ttl))
	}
	err = t.change(func(all []record) ([]record, error) {
		return add(all, r)
	})
	if err != nil {
		return "", Info{}, err
	}
	return token, r.info(now), nil
}

// MayCreate returns why no token can be created for a principal with that role, or nil.
// owner is the id of the person to whom it is to belong, "" if that is not said; any
// other text stands for somebody who is no person yet.
func (t *Tokens) MayCreate(principal string, role rights.Role, owner string) error {
	if err := Check(principal, role); err != nil {
		return err
	}
	all, err := t.records()
	if err == nil {
		_, err = add(slices.Clone(all), record{Principal: principal, Role: role, Owner: owner})
	}
	return err
}

// add adds a record. It fails if there are too many records, or if its principal already
// has another role or owner. A record without an owner gets the owner of the principal's
// other records, and they get its owner if they have none.
func add(all []record, r record) ([]record, error) {
	for i := range all {
		o := &all[i]
		switch {
		case o.Principal != r.Principal:
		case r.Owner == "":
			r.Owner = o.Owner
		case o.Owner == "":
			o.Owner = r.Owner
		}
		if o.Principal == r.Principal && o.Role != r.Role {
			return nil, fmt.Errorf("%s already has a token for the role %s, and one name has one role: revoke that token, or use another name", r.Principal, o.Role)
		}
		if o.Principal == r.Principal && o.Owner != r.Owner {
			return nil, fmt.Errorf("%s belongs to somebody else: change that with tether-host token owner, or use another name", r.Principal)
		}
	}
	if len(all) >= maxTokens {
		return nil, fmt.Errorf("there are %d tokens, the maximum; revoke one", maxTokens)
	}
	return append(all, r), nil
}

// OwnedBy makes tokens created from now on belong to the person with that id. It must not
// be called concurrently with other calls.
func (t *Tokens) OwnedBy(person string) { t.owner = person }

// SetOwner makes all tokens of a principal, and the machine of that name, belong to the
// person with that id; an empty id means the administrator. Connections that were opened
// for the former owner end. ErrNoToken means that there is no such token or machine.
func (t *Tokens) SetOwner(principal, person string) error {
	return t.change(func(all []record) ([]record, error) {
		found := false
		for i := range all {
			if all[i].Principal == principal {
				all[i].Owner, found = person, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: %.80q", ErrNoToken, principal)
		}
		return all, nil
	})
}

// Agent returns the owner of an agent's tokens; ok is false if there is no agent of that
// name.
func (t *Tokens) Agent(name string) (owner string, ok bool) {
	p, ok := t.lookup(func() (p rights.Principal, ok bool) {
		for _, g := range t.grants {
			if g.Principal == name && (g.Role == rights.RoleAgent || g.Role == rights.RoleOperator) && !g.expired(time.Now()) {
				return g.principal(), true
			}
		}
		return p, false
	})
	return p.Owner, ok
}

// Revoke revokes the token with that id, or all tokens of that principal, and returns
// them. A running host closes their connections within a second or two.
func (t *Tokens) Revoke(idOrPrincipal string) (revoked []Info, err error) {
	now := time.Now()
	err = t.change(func(all []record) ([]record, error) {
		revoked = nil
		left := slices.DeleteFunc(all, func(r record) bool {
			ours := r.ID == idOrPrincipal || r.Principal == idOrPrincipal
			if ours {
				revoked = append(revoked, r.info(now))
			}
			return ours
		})
		if len(revoked) == 0 {
			return nil, fmt.Errorf("%w: %.80q", ErrNoToken, idOrPrincipal)
		}
		return left, nil
	})
	return revoked, err
}

// List returns all tokens and machines in the file, sorted by principal and age.
func (t *Tokens) List() ([]Info, error) {
	all, err := t.records()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	infos := make([]Info, 0, len(all))
	for _, r := range all {
		infos = append(infos, r.info(now))
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(strings.Compare(a.Principal, b.Principal), a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return infos, nil
}

func (r *record) info(now time.Time) Info {
	kind := KindToken
	switch {
	case r.DeviceKey != nil:
		kind = KindDevice
	case r.Once:
		kind = KindPairing
	}
	return Info{ID: r.ID, Principal: r.Principal, Role: r.Role, Created: r.Created, Expires: r.Expires, Expired: r.expired(now), Kind: kind, Owner: r.Owner}
}
