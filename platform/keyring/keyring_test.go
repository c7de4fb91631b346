package keyring_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	library "github.com/zalando/go-keyring"

	"tether/internal/testkit/must"
	"tether/platform/keyring"
)

// fake is a keyring in memory with the faults of real ones.
type fake struct {
	mu     sync.Mutex
	items  map[string]string
	broken error
	answer func() // nil answers at once
	calls  int
}

func (f *fake) call() error {
	f.mu.Lock()
	f.calls++
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		answer()
	}
	return f.broken
}

func (f *fake) called() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fake) Set(service, user, password string) error {
	if err := f.call(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(password) > 2500 {
		return library.ErrSetDataTooBig
	}
	if f.items == nil {
		f.items = map[string]string{}
	}
	f.items[service+" "+user] = password
	return nil
}

func (f *fake) Get(service, user string) (string, error) {
	if err := f.call(); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.items[service+" "+user]
	if !ok {
		return "", library.ErrNotFound
	}
	return text, nil
}

func (f *fake) Delete(service, user string) error {
	if _, err := f.Get(service, user); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, service+" "+user)
	return nil
}

// The test runs in a bubble, so that a busy machine does not make the keyring slow.
func TestSecretsAreKept(t *testing.T) { synctest.Test(t, secretsAreKept) }

func secretsAreKept(t *testing.T) {
	f := &fake{}
	k := keyring.New(f)
	if err := k.Probe(); err != nil || len(f.items) != 0 {
		t.Errorf("probe: %v, it left %v", err, f.items)
	}
	if _, err := k.Get("a"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("nothing there: %v", err)
	}
	for _, secret := range []string{"one", "two"} {
		must.Do(t, k.Set("a", secret))
		if got, err := k.Get("a"); err != nil || got != secret {
			t.Errorf("%q, %v; want %q", got, err, secret)
		}
	}
	if err := k.Set("a", strings.Repeat("x", 9999)); !errors.Is(err, keyring.ErrTooLarge) {
		t.Errorf("too much: %v", err)
	}
	if err := k.Delete("a"); err != nil || len(f.items) != 0 {
		t.Errorf("delete: %v, left %v", err, f.items)
	}
	if err := k.Delete("a"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
}

func TestAKeyringThatIsNotThereSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyring.New(&fake{broken: errors.New("no bus")})
		_, err := k.Get("a")
		for _, err := range []error{k.Probe(), k.Set("a", "b"), k.Delete("a"), err} {
			if err == nil || errors.Is(err, keyring.ErrSilent) || !strings.Contains(err.Error(), "no bus") {
				t.Errorf("%v, want the reason", err)
			}
		}
	})
}

// A locked keyring waits for a person. Its callers do not wait, and only one goroutine is
// left behind.
func TestALockedKeyringBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unlocked := make(chan struct{})
		f := &fake{answer: func() { <-unlocked }}
		k := keyring.New(f)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				began := time.Now()
				if _, err := k.Get("a"); !errors.Is(err, keyring.ErrSilent) {
					t.Errorf("%v, want ErrSilent", err)
				}
				if took := time.Since(began); took > keyring.Timeout {
					t.Errorf("it took %v", took)
				}
			})
		}
		all.Wait()
		if n := f.called(); n != 1 {
			t.Errorf("%d calls are under way, want 1", n)
		}
		close(unlocked)
		synctest.Wait()
		if err := k.Probe(); err != nil {
			t.Errorf("unlocked: %v", err)
		}
	})
}

func TestASlowKeyringIsAProbeOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func() { time.Sleep(400 * time.Millisecond) }}
		k := keyring.New(f)
		began := time.Now()
		if err := k.Probe(); !errors.Is(err, keyring.ErrSilent) || time.Since(began) != keyring.Timeout {
			t.Errorf("%v after %v; a probe of three calls would have taken 1.6 s", err, time.Since(began))
		}
		if err := k.Set("a", "b"); err != nil {
			t.Errorf("one call within the time: %v", err)
		}
	})
}
