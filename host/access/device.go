package access

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/host/rights"
	"tether/pairing"
)

var (
	// ErrPairingToken is returned by Redeem for a token that is invalid, has expired, or
	// was used.
	ErrPairingToken = errors.New("the pairing token is invalid, expired or already used")
	// ErrTakenName is returned by AddDevice if another machine or a token has the name.
	ErrTakenName = errors.New("the name is taken")
)

// CreatePairing makes a token with which one machine can register its key, once. The
// token opens nothing else.
func (t *Tokens) CreatePairing(principal string, ttl time.Duration) (token string, info Info, err error) {
	return t.create(principal, rights.RoleMachine, ttl, true)
}

// Redeem uses up a pairing token to admit the machine with that key, under the token's
// name.
func (t *Tokens) Redeem(token string, key ed25519.PublicKey) (Info, error) {
	if !strings.HasPrefix(token, pairing.TokenPrefix) || !t.mayRedeem(token) {
		return Info{}, ErrPairingToken
	}
	hash := sha256.Sum256([]byte(token))
	var added record
	err := t.change(func(all []record) ([]record, error) {
		i := slices.IndexFunc(all, func(r record) bool {
			return r.Once && subtle.ConstantTimeCompare(r.SHA256, hash[:]) == 1 && !r.expired(time.Now())
		})
		if i < 0 {
			return nil, ErrPairingToken
		}
		added = deviceRecord(all[i].Principal, key)
		added.Owner = all[i].Owner
		return add(withoutDevice(slices.Delete(all, i, i+1), key), added)
	})
	if err != nil {
		return Info{}, err
	}
	return added.info(time.Now()), nil
}

// HadPairing reports whether the document had that pairing token when it was last read.
// It reads nothing.
func (t *Tokens) HadPairing(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	hash, had := sha256.Sum256([]byte(token)), false
	for _, g := range t.grants {
		if g.Once && subtle.ConstantTimeCompare(g.SHA256, hash[:]) == 1 {
			had = true
		}
	}
	return had
}

// mayRedeem reports whether the document has that pairing token. It does not take the
// lock that changes need, so that guessing tokens delays nobody.
func (t *Tokens) mayRedeem(token string) bool {
	all, err := t.records()
	hash := sha256.Sum256([]byte(token))
	return err == nil && slices.ContainsFunc(all, func(r record) bool {
		return r.Once && subtle.ConstantTimeCompare(r.SHA256, hash[:]) == 1
	})
}

// AddDevice admits the machine with that key under a name that no other principal has. A
// machine that was paired before changes its name. pairing identifies the request that a
// person has approved, see Approved.
func (t *Tokens) AddDevice(principal string, key ed25519.PublicKey, pairing []byte) (Info, error) {
	if err := checkName(principal); err != nil {
		return Info{}, err
	}
	if len(key) != ed25519.PublicKeySize {
		return Info{}, errors.New("the machine's key has the wrong size")
	}
	added := deviceRecord(principal, key)
	added.Pairing, added.Owner = slices.Clone(pairing), t.owner
	err := t.change(func(all []record) ([]record, error) {
		all = withoutDevice(all, key)
		if slices.ContainsFunc(all, func(r record) bool { return r.Principal == principal }) {
			return nil, fmt.Errorf("%w: %s", ErrTakenName, principal)
		}
		return add(all, added)
	})
	if err != nil {
		return Info{}, err
	}
	return added.info(time.Now()), nil
}

// Device returns the principal of the machine with that key; ok is false if there is none
// or it was revoked.
func (t *Tokens) Device(key ed25519.PublicKey) (p rights.Principal, ok bool) {
	return t.lookup(func() (p rights.Principal, ok bool) {
		if g := t.grants[deviceKey(key)]; g != nil {
			return g.principal(), true
		}
		return p, false
	})
}

// Approved is Device, but only for a machine that was admitted by that pairing.
func (t *Tokens) Approved(key ed25519.PublicKey, pairing []byte) (p rights.Principal, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	g := t.grants[deviceKey(key)]
	if g == nil || !bytes.Equal(g.Pairing, pairing) {
		return rights.Principal{}, false
	}
	return g.principal(), true
}

// RemoveDevice ends the connections of the machine with that key, and its access.
// ErrNoToken means that there is none.
func (t *Tokens) RemoveDevice(key ed25519.PublicKey) error {
	err := t.change(func(all []record) ([]record, error) {
		left := withoutDevice(slices.Clone(all), key)
		if len(left) == len(all) {
			return nil, ErrNoToken
		}
		return left, nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked() // at once, because the machine may connect again before Run looks
	return err
}

// deviceKey is the key in Tokens.grants of a machine.
func deviceKey(key ed25519.PublicKey) string { return "machine " + string(key) }

// deviceID derives the id of a machine's record from its key.
func deviceID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return fmt.Sprintf("d-%x", sum[:idBytes*2])
}

func deviceRecord(principal string, key ed25519.PublicKey) record {
	return record{ID: deviceID(key), Principal: principal, Role: rights.RoleMachine, DeviceKey: slices.Clone(key),
		Created: time.Now().UTC().Truncate(time.Second)}
}

func withoutDevice(all []record, key ed25519.PublicKey) []record {
	return slices.DeleteFunc(all, func(r record) bool { return r.DeviceKey != nil && bytes.Equal(r.DeviceKey, key) })
}
