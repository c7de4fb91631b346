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

	"tether/host"
	"tether/pairing"
)

var (
	// ErrPairingToken is returned by Redeem for a token that is invalid, has expired, or was used.
	ErrPairingToken = errors.New("the pairing token is invalid, expired or already used")
	// ErrTakenName is returned by AddDevice if another machine or a token has the name.
	ErrTakenName = errors.New("the name is taken")
)

// CreatePairing makes a token with which one machine pairs by its key, once, and which opens nothing else.
func (t *Tokens) CreatePairing(principal string, ttl time.Duration) (token string, info Info, err error) {
	return t.create(principal, host.RoleMachine, ttl, true)
}

// Redeem uses up a pairing token for the machine with that key, which has the token's name from then on.
func (t *Tokens) Redeem(token string, key ed25519.PublicKey) (Info, error) {
	if !strings.HasPrefix(token, pairing.TokenPrefix) || !t.mayRedeem(token) {
		return Info{}, ErrPairingToken
	}
	hash := sha256.Sum256([]byte(token))
	var added record
	err := change(t.at, func(all []record) ([]record, error) {
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

// mayRedeem looks for the token without the lock that changes need: guessing costs others nothing.
func (t *Tokens) mayRedeem(token string) bool {
	all, err := load(t.at)
	hash := sha256.Sum256([]byte(token))
	return err == nil && slices.ContainsFunc(all, func(r record) bool {
		return r.Once && subtle.ConstantTimeCompare(r.SHA256, hash[:]) == 1
	})
}

// AddDevice admits the machine with that key, under a name that no other has. A machine that was paired already has the new name from then
// on. Approved is asked with pairing.
func (t *Tokens) AddDevice(principal string, key ed25519.PublicKey, pairing []byte) (Info, error) {
	if err := checkName(principal); err != nil {
		return Info{}, err
	}
	if len(key) != ed25519.PublicKeySize {
		return Info{}, errors.New("the machine's key has the wrong size")
	}
	added := deviceRecord(principal, key)
	added.Pairing, added.Owner = slices.Clone(pairing), t.owner
	err := change(t.at, func(all []record) ([]record, error) {
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

// Device returns whose the key is; ok is false if it is nobody's or was revoked.
func (t *Tokens) Device(key ed25519.PublicKey) (p host.Principal, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.grants[deviceKey(key)]
	if g == nil { // it may have been added a moment ago
		t.lookLocked()
		g = t.grants[deviceKey(key)]
	}
	if g == nil {
		return host.Principal{}, false
	}
	return g.principal(), true
}

// Approved is Device for a machine that was let in by that pairing.
func (t *Tokens) Approved(key ed25519.PublicKey, pairing []byte) (p host.Principal, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	g := t.grants[deviceKey(key)]
	if g == nil || !bytes.Equal(g.Pairing, pairing) {
		return host.Principal{}, false
	}
	return g.principal(), true
}

// RemoveDevice ends the connections of the machine with that key, and its access. ErrNoToken means that there is none.
func (t *Tokens) RemoveDevice(key ed25519.PublicKey) error {
	err := change(t.at, func(all []record) ([]record, error) {
		left := withoutDevice(slices.Clone(all), key)
		if len(left) == len(all) {
			return nil, ErrNoToken
		}
		return left, nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked() // at once: the machine may ask again
	return err
}

// deviceKey is the key of a machine's record.
func deviceKey(key ed25519.PublicKey) string { return "machine " + string(key) }

// deviceID names a machine by its key.
func deviceID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return fmt.Sprintf("d-%x", sum[:idBytes*2])
}

func deviceRecord(principal string, key ed25519.PublicKey) record {
	return record{ID: deviceID(key), Principal: principal, Role: host.RoleMachine, DeviceKey: slices.Clone(key),
		Created: time.Now().UTC().Truncate(time.Second)}
}

func withoutDevice(all []record, key ed25519.PublicKey) []record {
	return slices.DeleteFunc(all, func(r record) bool { return r.DeviceKey != nil && bytes.Equal(r.DeviceKey, key) })
}
