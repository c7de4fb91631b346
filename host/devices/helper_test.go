package devices_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/host/devices"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/pairing"
)

const patience = testkit.Patience

// key returns a key made from a fixed seed.
func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func nonce(n byte) []byte { return bytes.Repeat([]byte{n}, pairing.NonceSize) }

// world is a door and its files.
type world struct {
	t       *testing.T
	door    *devices.Door
	tokens  *access.Tokens
	pending string
	key     ed25519.PrivateKey
	audit   []rights.AuditEvent
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, nil)
}

// newWorldWith is newWorld with a log.
func newWorldWith(t *testing.T, log *zerolog.Logger) *world {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	w := &world{t: t, pending: filepath.Join(dir, "pending.json"), key: key(100)}
	var err error
	if w.tokens, err = access.Open(access.File(filepath.Join(dir, "tokens.json"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.tokens.Create("someone", rights.RoleObserver, 0); err != nil { // makes the directory
		t.Fatal(err)
	}
	w.door = must.Get(devices.New(devices.Options{Key: w.key, Tokens: w.tokens, Pending: access.OwnFile(w.pending), Logger: log,
		Audit: func(ev rights.AuditEvent) { w.audit = append(w.audit, ev) }}))(t)
	return w
}

// ask sends a request from an address, and returns the status and the code of a refusal.
// out may be nil.
func (w *world) ask(from, what, token string, in, out any) (status int, code string) {
	w.t.Helper()
	data := must.Get(json.Marshal(in))(w.t)
	r := httptest.NewRequest(http.MethodPost, pairing.Path+what, bytes.NewReader(data))
	r.RemoteAddr = from + ":1000"
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	w.door.ServeHTTP(rec, r)
	if rec.Code == http.StatusOK {
		if out != nil {
			must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), out))
		}
		return rec.Code, ""
	}
	var refused pairing.Refusal
	if err := json.Unmarshal(rec.Body.Bytes(), &refused); err != nil {
		w.t.Fatalf("%s: %d %q: %v", what, rec.Code, rec.Body, err)
	}
	return rec.Code, refused.Code
}

// must sends a request that the door must not refuse.
func (w *world) must(what string, in, out any) {
	w.t.Helper()
	if status, code := w.ask("192.0.2.1", what, "", in, out); code != "" {
		w.t.Fatalf("%s: %d %s", what, status, code)
	}
}

// admit approves a machine.
func (w *world) admit(k ed25519.PrivateKey) {
	w.t.Helper()
	must.Get(w.tokens.AddDevice("laptop", public(k), nil))(w.t)
}

// challenge gets a challenge for a machine and answers it for a purpose.
func (w *world) challenge(k ed25519.PrivateKey, why pairing.Purpose) (pairing.Session, pairing.Answer) {
	w.t.Helper()
	var c pairing.Challenge
	w.must("challenge", pairing.Ask{DeviceKey: public(k)}, &c)
	s := pairing.Session{Host: public(w.key), Device: public(k), Challenge: c.Challenge, Nonce: nonce(7), Time: c.Time}
	return s, pairing.Answer{DeviceKey: s.Device, Challenge: s.Challenge, Nonce: s.Nonce, Signature: s.Sign(k, why)}
}
