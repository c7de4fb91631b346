package agent_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/hosts"
	"tether/agent/local"
	"tether/internal/testkit"
	"tether/platform/keyring"
	"tether/platform/secret"
)

// A key that the keyring does not let go is not said to be gone.
func TestAKeyThatStaysIsNoticed(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	ring := &fakeRing{items: map[string]string{}}
	a := start(t, agent.Config{Dirs: d, Secrets: hosts.Secrets{Keyring: keyring.New(ring)}})
	k.pair(a, local.PairRequest{Name: "keys"}, "laptop")
	ring.mu.Lock()
	ring.broken = errors.New("the ring is stuck")
	ring.mu.Unlock()
	if _, err := a.client.Unpair(t.Context(), "keys"); err != nil {
		t.Fatal(err)
	}
	if len(ring.values()) != 1 {
		t.Fatal("the key is gone: nothing is tested")
	}
	testkit.Eventually(t, patience, "the log says that the key is kept", func() bool {
		f, err := secret.OpenRead(filepath.Join(d.State, "daemon.log"))
		if err != nil {
			return false
		}
		defer f.Close()
		log, err := io.ReadAll(f)
		return err == nil && strings.Contains(string(log), "the ring is stuck")
	})
}
