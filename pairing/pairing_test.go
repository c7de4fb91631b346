package pairing_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"tether/pairing"
)

// key returns a key made from a fixed seed.
func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func nonce(n byte) []byte { return bytes.Repeat([]byte{n}, pairing.NonceSize) }

func pair() pairing.Pair {
	return pairing.Pair{Host: public(key(1)), Device: public(key(2)), Name: "laptop", HostNonce: nonce(3), DeviceNonce: nonce(4)}
}

// Other implementations of the protocol rely on these: they must not change within a
// version.
func TestVectors(t *testing.T) {
	s := pairing.Session{Host: public(key(1)), Device: public(key(2)), Challenge: nonce(5), Nonce: nonce(6), Time: 1_700_000_000_000}
	for name, c := range map[string]struct{ got, want string }{
		"code":        {pair().Code(), "247278"},
		"commitment":  {fmt.Sprintf("%x", pairing.Commit(public(key(2)), "laptop", nonce(4)))[:16], "09144df71a6e9762"},
		"session":     {fmt.Sprintf("%x", s.Sign(key(2), pairing.ForSession))[:16], "505c273f34a8a9b0"},
		"fingerprint": {pairing.Fingerprint(public(key(1))), "SHA256:NHUPmL1Z/PyUbaRaqr6TO+FUpLUJThxKv0KGZQXzyX4"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", name, c.got, c.want)
		}
	}
}

// Any difference in the input changes the code, the signatures and the commitment.
func TestEverythingCounts(t *testing.T) {
	changed := map[string]func(*pairing.Pair){
		"nothing":      func(*pairing.Pair) {},
		"host":         func(p *pairing.Pair) { p.Host = public(key(9)) },
		"device":       func(p *pairing.Pair) { p.Device = public(key(9)) },
		"name":         func(p *pairing.Pair) { p.Name = "laptoq" },
		"host nonce":   func(p *pairing.Pair) { p.HostNonce = nonce(9) },
		"device nonce": func(p *pairing.Pair) { p.DeviceNonce = nonce(9) },
		"moved border": func(p *pairing.Pair) { p.Name, p.HostNonce = "laptop\x03", p.HostNonce[1:] },
	}
	codes := map[string]string{}
	for name, change := range changed {
		p := pair()
		change(&p)
		if other, same := codes[p.Code()]; same {
			t.Errorf("%s and %s give the same code", name, other)
		}
		codes[p.Code()] = name
		if ok := p.VerifyHost(pair().SignHost(key(1))) && p.VerifyDevice(pair().SignDevice(key(2))); ok != (name == "nothing") {
			t.Errorf("%s: the signatures fit: %v", name, ok)
		}
	}
	if bytes.Equal(pairing.Commit(public(key(2)), "a", nonce(1)), pairing.Commit(public(key(2)), "b", nonce(1))) {
		t.Error("the commitment is not bound to the name")
	}
}

// A signature is good for one purpose and one side.
func TestPurposesAreApart(t *testing.T) {
	s := pairing.Session{Host: public(key(1)), Device: public(key(2)), Challenge: nonce(3), Nonce: nonce(4), Time: 1}
	r := pairing.Redemption{Host: s.Host, Device: s.Device, Token: "t", Nonce: nonce(4)}
	if !s.Verify(pairing.ForSession, s.Sign(key(2), pairing.ForSession)) || !s.VerifyToken("t", s.SignToken(key(1), "t")) ||
		!r.VerifyDevice(r.SignDevice(key(2))) || !r.VerifyHost(r.SignHost(key(1))) {
		t.Fatal("signatures do not fit what they are of")
	}
	later := s
	later.Time++
	for name, wrong := range map[string]bool{
		"session for leaving":  s.Verify(pairing.ForLeaving, s.Sign(key(2), pairing.ForSession)),
		"leaving for session":  s.Verify(pairing.ForSession, s.Sign(key(2), pairing.ForLeaving)),
		"another time":         later.Verify(pairing.ForSession, s.Sign(key(2), pairing.ForSession)),
		"another key":          s.Verify(pairing.ForSession, s.Sign(key(1), pairing.ForSession)),
		"another token":        s.VerifyToken("u", s.SignToken(key(1), "t")),
		"host's as device's":   pairing.Session{Host: s.Device, Device: s.Host}.Verify(pairing.ForSession, s.SignToken(key(1), "")),
		"redeem device's host": r.VerifyHost(r.SignDevice(key(1))),
		"no key":               pairing.Session{}.Verify(pairing.ForSession, nil),
		"short key":            pairing.Pair{Host: s.Host[:5]}.VerifyHost(make([]byte, ed25519.SignatureSize)),
	} {
		if wrong {
			t.Errorf("%s is believed", name)
		}
	}
}

func FuzzMessagesAreUnambiguous(f *testing.F) {
	f.Add("laptop", []byte("n1"), []byte("n2"), "laptopn", []byte("1"), []byte("n2"))
	f.Fuzz(func(t *testing.T, name1 string, h1, d1 []byte, name2 string, h2, d2 []byte) {
		a, b := pair(), pair()
		a.Name, a.HostNonce, a.DeviceNonce = name1, h1, d1
		b.Name, b.HostNonce, b.DeviceNonce = name2, h2, d2
		same := name1 == name2 && bytes.Equal(h1, h2) && bytes.Equal(d1, d2)
		if b.VerifyDevice(a.SignDevice(key(2))) != same {
			t.Errorf("%+v is taken for %+v", a, b)
		}
		if code := a.Code(); len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Errorf("code %q", code)
		}
	})
}
