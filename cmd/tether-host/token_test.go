package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"testing/cryptotest"
)

// A random token that lacks some letters by chance is recognised as random.
func TestStrengthOfRandomTokens(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1) // 1 token of 100,000 has no capital letter, and would count as less
	bytes := func() []byte {
		b := make([]byte, minTokenBits/8)
		_, _ = rand.Read(b) // never fails
		return b
	}
	for name, random := range map[string]func() string{
		"rand.Text": rand.Text,
		"hex":       func() string { return hex.EncodeToString(bytes()) },
		"base64":    func() string { return base64.RawURLEncoding.EncodeToString(bytes()) },
	} {
		for range 5000 {
			if token := random(); checkStrength(name, token) != nil {
				t.Fatalf("%s: %q: %v", name, token, checkStrength(name, token))
			}
		}
	}
}
