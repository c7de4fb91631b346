package testkit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"testing"
)

// PushBrowser has the keys of a browser that receives Web Push.
type PushBrowser struct {
	private *ecdh.PrivateKey
	auth    []byte
}

// Browser returns a browser with a private key and a secret, in base64url, or with new
// ones if they are empty.
func Browser(t testing.TB, private, auth string) *PushBrowser {
	t.Helper()
	b := &PushBrowser{}
	var err error
	if private == "" {
		b.auth = make([]byte, 16)
		_, _ = rand.Read(b.auth)
		b.private, err = ecdh.P256().GenerateKey(rand.Reader)
	} else {
		b.auth = unbase64(t, auth)
		b.private, err = ecdh.P256().NewPrivateKey(unbase64(t, private))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// PushKeys are what a browser tells the sender: webpush.Keys.
type PushKeys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Keys returns what the browser tells the sender.
func (b *PushBrowser) Keys() PushKeys {
	return PushKeys{base64.RawURLEncoding.EncodeToString(b.private.PublicKey().Bytes()), base64.RawURLEncoding.EncodeToString(b.auth)}
}

// Decrypt returns a message as the browser reads it (RFC 8291, section 3.4, from the
// other side).
func (b *PushBrowser) Decrypt(t testing.TB, body []byte) []byte {
	t.Helper()
	if len(body) < 86 || body[20] != 65 {
		t.Fatalf("%d bytes are no message", len(body))
	}
	salt, theirs := body[:16], body[21:86]
	public, err := ecdh.P256().NewPublicKey(theirs)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := b.private.ECDH(public)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, size int) []byte {
		key, err := hkdf.Key(sha256.New, secret, salt, info, size)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	input := derive(secret, b.auth, "WebPush: info\x00"+string(b.private.PublicKey().Bytes())+string(theirs), 32)
	block, err := aes.NewCipher(derive(input, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	open, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := open.Open(nil, derive(input, salt, "Content-Encoding: nonce\x00", 12), body[86:], nil)
	if err != nil {
		t.Fatal(err)
	}
	for len(plain) > 0 && plain[len(plain)-1] == 0 {
		plain = plain[:len(plain)-1]
	}
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		t.Fatal("the record is not the last one")
	}
	return slices.Clip(plain[:len(plain)-1])
}

// P256 returns a public key in base64url as one that checks signatures.
func P256(t testing.TB, public string) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), unbase64(t, public))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
