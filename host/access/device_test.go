package access_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/pairing"
	"tether/platform/secret"
)

func deviceKey(n byte) ed25519.PublicKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
}

func isEnded(t *testing.T, live context.Context) {
	t.Helper()
	select {
	case <-live.Done():
	case <-time.After(patience):
		t.Error("what it had opened did not end")
	}
}

// A pairing token pairs one machine, and opens nothing.
func TestAPairingTokenIsUsedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tokens.json")
	tokens := open(t, path)
	token, info, err := tokens.CreatePairing("laptop", time.Hour)
	if err != nil || !strings.HasPrefix(token, pairing.TokenPrefix) || info.Kind != access.KindPairing || info.Role != rights.RoleMachine {
		t.Fatalf("%+v, %v", info, err)
	}
	if p, ok := tokens.Authenticate(token); ok {
		t.Errorf("it lets %+v in", p)
	}
	plain, _ := create(t, tokens, "desk", rights.RoleMachine, 0)
	for _, wrong := range []string{"", token + "x", pairing.TokenPrefix, plain, pairing.TokenPrefix + plain} {
		if _, err := tokens.Redeem(wrong, deviceKey(1)); !errors.Is(err, access.ErrPairingToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	var used atomic.Int32
	var all sync.WaitGroup
	for n := range byte(8) {
		all.Go(func() {
			if _, err := open(t, path).Redeem(token, deviceKey(n)); err == nil {
				used.Add(1)
			} else if !errors.Is(err, access.ErrPairingToken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if used.Load() != 1 {
		t.Errorf("it was used %d times", used.Load())
	}
	old, _, err := tokens.CreatePairing("late", time.Nanosecond)
	if _, redeemed := tokens.Redeem(old, deviceKey(9)); err != nil || !errors.Is(redeemed, access.ErrPairingToken) {
		t.Errorf("one that has expired: %v, %v", redeemed, err)
	}
}

func TestMachinesComeAndGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tokens.json")
	atHost, elsewhere := open(t, path), open(t, path)
	create(t, elsewhere, "taken", rights.RoleObserver, 0)
	if _, err := elsewhere.AddDevice("taken", deviceKey(1), []byte("p1")); !errors.Is(err, access.ErrTakenName) {
		t.Errorf("a taken name: %v", err)
	}
	for _, name := range []string{"", "two words", "\x1b[2J"} {
		if _, err := elsewhere.AddDevice(name, deviceKey(1), []byte("p1")); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if _, ok := atHost.Device(deviceKey(1)); ok {
		t.Error("it is known before it is paired")
	}
	info, err := elsewhere.AddDevice("laptop", deviceKey(1), []byte("p1"))
	if err != nil || info.Kind != access.KindDevice {
		t.Fatalf("%+v, %v", info, err)
	}
	p, ok := atHost.Device(deviceKey(1))
	if !ok || p.Name != "laptop" || p.Role != rights.RoleMachine || p.Live.Err() != nil {
		t.Errorf("%+v, %v", p, ok)
	}
	if _, ok := atHost.Device(deviceKey(2)); ok {
		t.Error("another key is known")
	}
	if _, ok := atHost.Authenticate(string(deviceKey(1))); ok {
		t.Error("the public key is a token")
	}

	if _, ok := atHost.Approved(deviceKey(1), []byte("p1")); !ok {
		t.Error("it is not approved by its pairing")
	}
	if _, ok := atHost.Approved(deviceKey(1), []byte("p2")); ok {
		t.Error("it is approved by another pairing")
	}

	// Under another name it is another principal.
	must.Get(elsewhere.AddDevice("renamed", deviceKey(1), []byte("p1")))(t)
	_, _ = atHost.Device(deviceKey(2)) // looks
	isEnded(t, p.Live)
	if p, ok = atHost.Device(deviceKey(1)); !ok || p.Name != "renamed" {
		t.Errorf("%+v, %v", p, ok)
	}
	must.Do(t, atHost.RemoveDevice(deviceKey(1)))
	isEnded(t, p.Live)
	if err := atHost.RemoveDevice(deviceKey(1)); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("again: %v", err)
	}
	if _, err := elsewhere.AddDevice("laptop", deviceKey(1), []byte("p1")); err != nil {
		t.Error(err)
	}
	if gone, err := elsewhere.Revoke("laptop"); err != nil || len(gone) != 1 {
		t.Errorf("revoked by name: %+v, %v", gone, err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "device_key") {
		t.Errorf("what is left is %s, %v", data, err)
	}
}

func TestRecordsThatAreNone(t *testing.T) {
	for _, record := range []string{
		`"device_key":"AAAA"`, `"device_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","once":true`,
		`"device_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","sha256":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`, `"once":true`,
	} {
		path := filepath.Join(t.TempDir(), "tokens.json")
		text := `{"version":1,"tokens":[{"id":"d-1","principal":"x","role":"machine","created":"2026-01-01T00:00:00Z",` + record + `}]}`
		must.Do(t, secret.WriteFile(path, []byte(text)))
		if _, err := access.Open(access.File(path)); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", record, err)
		}
	}
}
