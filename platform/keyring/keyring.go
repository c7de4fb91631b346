// Package keyring keeps small secrets in the desktop's keyring: Secret Service, Keychain
// or Credential Manager.
//
//	k := keyring.System()
//	err := k.Probe()
//	err = k.Set("hosts/laptop", token)
//	token, err := k.Get("hosts/laptop")
//
// Keyrings hang: a locked one waits for a password, perhaps on a machine without a
// person, and its bus may be dead. So every call takes at most a second. A call that
// hangs continues in the background, and until it returns every other call fails after
// its second: at most one goroutine hangs.
//
// A keyring does not protect secrets from other programs of the same user, which can also
// ask it. It keeps secrets encrypted on the disk and out of backups.
package keyring

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// Timeout is how long one call may take.
const Timeout = time.Second

// service marks tether's items in the keyring.
const service = "tether"

var (
	// ErrNotFound is returned by Get and Delete if there is no such secret.
	ErrNotFound = errors.New("the keyring has no such secret")
	// ErrTooLarge is returned by Set for a secret that is too large for the keyring.
	// Every keyring takes 2500 bytes.
	ErrTooLarge = errors.New("the secret is too large for the keyring")
	// ErrSilent is returned when the keyring does not answer in time: it is locked, or
	// its backend hangs.
	ErrSilent = errors.New("the keyring does not answer; check whether it is locked")
)

// Provider is a keyring that may hang.
type Provider interface {
	Set(service, user, password string) error
	Get(service, user string) (string, error)
	Delete(service, user string) error
}

// Keyring is a keyring that does not hang. It is safe for concurrent use.
type Keyring struct {
	provider Provider
	turn     chan struct{} // 1 slot, held by the call under way
}

// New returns a Keyring over p.
func New(p Provider) *Keyring { return &Keyring{provider: p, turn: make(chan struct{}, 1)} }

// System returns the keyring of this user's desktop. It does not check whether there is
// one: Probe does.
func System() *Keyring { return New(desktop{}) }

// desktop is go-keyring. It is called only if reachable finds no reason against that.
type desktop struct{}

func (desktop) Set(service, user, password string) error {
	if err := reachable(); err != nil {
		return err
	}
	return keyring.Set(service, user, password)
}

func (desktop) Get(service, user string) (string, error) {
	if err := reachable(); err != nil {
		return "", err
	}
	return keyring.Get(service, user)
}

func (desktop) Delete(service, user string) error {
	if err := reachable(); err != nil {
		return err
	}
	return keyring.Delete(service, user)
}

// Probe checks whether the keyring keeps secrets, by storing one and removing it. It
// takes at most a second in all.
func (k *Keyring) Probe() error {
	name, secret := "probe/"+rand.Text(), rand.Text()
	_, err := k.within(func() (string, error) {
		if err := k.provider.Set(service, name, secret); err != nil {
			return "", err
		}
		got, err := k.provider.Get(service, name)
		if err == nil && got != secret {
			err = errors.New("the keyring returned a different value than was stored")
		}
		if gone := k.provider.Delete(service, name); err == nil {
			err = gone
		}
		return "", err
	})
	return err
}

// Set stores a secret under a name, in place of the secret with that name.
func (k *Keyring) Set(name, secret string) error {
	_, err := k.within(func() (string, error) { return "", k.provider.Set(service, name, secret) })
	return err
}

// Get returns the secret with that name.
func (k *Keyring) Get(name string) (string, error) {
	return k.within(func() (string, error) { return k.provider.Get(service, name) })
}

// Delete removes the secret with that name.
func (k *Keyring) Delete(name string) error {
	_, err := k.within(func() (string, error) { return "", k.provider.Delete(service, name) })
	return err
}

// within waits for its turn and calls f in a goroutine. If that takes longer than Timeout
// in all, it returns ErrSilent, and f continues.
func (k *Keyring) within(f func() (string, error)) (string, error) {
	late := time.NewTimer(Timeout)
	defer late.Stop()
	select {
	case k.turn <- struct{}{}:
	case <-late.C:
		return "", ErrSilent
	}
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends when the keyring answers; see the package comment
		defer func() { <-k.turn }()
		text, err := f()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, plain(r.err)
	case <-late.C:
	}
	select {
	case r := <-done: // the keyring answered in time, but this goroutine ran late
		return r.text, plain(r.err)
	default:
		return "", ErrSilent
	}
}

// plain translates errors of the library into errors of this package.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return ErrTooLarge
	}
	return fmt.Errorf("keyring: %w", err)
}
