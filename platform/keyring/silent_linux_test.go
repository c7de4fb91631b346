package keyring_test

import (
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/keyring"
)

// A desktop bus that accepts connections and never answers, as that of a hanging process,
// costs each call at most a second, even with many callers.
func TestABusThatSaysNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	bus := must.Get(net.Listen("unix", path))(t)
	var served sync.WaitGroup
	var conns []net.Conn
	served.Go(func() {
		for {
			c, err := bus.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	})
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
	k := keyring.System()
	if err := k.Probe(); !errors.Is(err, keyring.ErrSilent) {
		t.Errorf("a probe: %v, want ErrSilent", err)
	}
	var asked sync.WaitGroup
	for range 8 {
		asked.Go(func() {
			if _, err := k.Get("a"); !errors.Is(err, keyring.ErrSilent) {
				t.Errorf("a secret: %v, want ErrSilent", err)
			}
		})
	}
	asked.Wait()

	bus.Close()
	served.Wait()
	if len(conns) != 1 {
		t.Errorf("%d connections wait at the bus, want one", len(conns))
	}
	for _, c := range conns {
		c.Close()
	}
	testkit.Eventually(t, testkit.Patience, "the call that hung comes back, and others say why", func() bool {
		err := k.Probe()
		return err != nil && !errors.Is(err, keyring.ErrSilent)
	})
}
