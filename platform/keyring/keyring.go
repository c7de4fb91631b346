// Package keyring keeps small secrets in the keyring of the desktop: Secret Service, Keychain, Credential Manager.
//
//	k := keyring.System()
//	err := k.Probe()
//	err = k.Set("hosts/laptop", token)
//	token, err := k.Get("hosts/laptop")
//
// Keyrings hang: a locked one waits for a password, perhaps on a machine without a person, and its bus may be dead. So every call takes a
// second at most. A call that hangs continues in the background, and until it returns all others fail at once: at most one goroutine is
// lost.
//
// A keyring is no border against programs of the same user, who can ask it too. It keeps secrets encrypted on the disk and out of backups.
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

// service tells our items from others.
const service = "tether"

var (
	// ErrNotFound is returned by Get and Delete if there is no such secret.
	ErrNotFound = errors.New("the keyring has no such secret")
	// ErrTooLarge is returned by Set for a secret that does not fit: 2500 bytes fit everywhere.
	ErrTooLarge = errors.New("the secret is too large for the keyring")
	// ErrSilent is returned when the keyring does not answer in time: it is locked, or its backend hangs.
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

// System is the keyring of this user's desktop. Whether there is one shows when it is asked.
func System() *Keyring { return New(desktop{}) }

// desktop is go-keyring, asked only where that does no harm.
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

// Probe checks whether the keyring keeps secrets, by storing one and removing it. It takes at most a second in all.
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

// Set keeps a secret under a name, in place of the one it has.
func (k *Keyring) Set(name, secret string) error {
	_, err := k.within(func() (string, error) { return "", k.provider.Set(service, name, secret) })
	return err
}

// Get returns the secret of that name.
func (k *Keyring) Get(name string) (string, error) {
	return k.within(func() (string, error) { return k.provider.Get(service, name) })
}

// Delete forgets the secret of that name.
func (k *Keyring) Delete(name string) error {
	_, err := k.within(func() (string, error) { return "", k.provider.Delete(service, name) })
	return err
}

// within does f when it is its turn, and leaves it behind when the time is up.
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
	case r := <-done: // in time, and it was this process that was late
		return r.text, plain(r.err)
	default:
		return "", ErrSilent
	}
}

// plain gives errors of the library their names here.
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
