// Package webpush makes requests that bring a message to a browser through its vendor's
// push service: the message is encrypted for the browser alone (RFC 8291 with RFC 8188),
// and signed so that the service knows who sends (VAPID, RFC 8292). It opens no
// connections.
//
//	key, err := webpush.KeyOf(secret)
//	r, err := key.Request(ctx, subscription, webpush.Message{Text: text, TTL: time.Hour})
package webpush

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// MaxText is the longest text of a message, in bytes.
	MaxText = padded - 1
	// padded is the size of every message before encryption: its length tells the push
	// service nothing.
	padded = 3 << 10

	maxEndpoint = 1000 // bytes; the longest known ones, of WNS, have some 700
	saltSize    = 16
	authSize    = 16             // RFC 8291, section 3.2
	tokenTime   = 12 * time.Hour // at most 24 h (RFC 8292, section 2)
)

// Subscription is a browser's PushSubscription, as its toJSON returns it.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys are the browser's public key and secret, in base64url.
type Keys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Check reports what is wrong with a subscription. It does not judge where the endpoint
// is.
func (s *Subscription) Check() error {
	if len(s.Endpoint) > maxEndpoint {
		return fmt.Errorf("the endpoint is longer than %d bytes", maxEndpoint)
	}
	_, _, err := s.decode()
	return err
}

func (s *Subscription) decode() (public *ecdh.PublicKey, auth []byte, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s.Keys.P256dh)
	if err == nil {
		public, err = ecdh.P256().NewPublicKey(raw)
	}
	if err != nil {
		return nil, nil, errors.New("p256dh is not a point of P-256 in base64url")
	}
	if auth, err = base64.RawURLEncoding.DecodeString(s.Keys.Auth); err != nil || len(auth) != authSize {
		return nil, nil, fmt.Errorf("auth is not %d bytes in base64url", authSize)
	}
	return public, auth, nil
}

// Message is what a browser is sent.
type Message struct {
	Text []byte // at most MaxText
	// TTL is how long the service keeps it for a browser that is not connected.
	TTL time.Duration
	// Topic replaces an earlier message with the same one that was not delivered yet; at
	// most 32 characters of base64url, "" for none (RFC 8030, section 5.4).
	Topic string
	// Contact is an https or mailto URL of who runs the sender, for the service's
	// operator.
	Contact string
}

// Key signs requests to push services. It is safe for concurrent use.
type Key struct {
	signer jose.Signer
	public string
}

// KeyOf derives a key from a secret: the same secret always yields the same key.
func KeyOf(secret []byte) (*Key, error) {
	for n := byte(0); ; n++ { // one of 2³² values is no scalar of P-256
		raw, err := hkdf.Key(sha256.New, secret, nil, "tether-host VAPID key "+string(rune(n)), 32)
		if err != nil {
			return nil, err
		}
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
		if err != nil {
			continue
		}
		public, err := private.PublicKey.Bytes()
		if err != nil {
			return nil, err
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithType("JWT"))
		return &Key{signer, base64.RawURLEncoding.EncodeToString(public)}, err
	}
}

// Public is the public key as pages give it to PushManager.subscribe.
func (k *Key) Public() string { return k.public }

// Request returns the request that sends a message.
func (k *Key) Request(ctx context.Context, to Subscription, m Message) (*http.Request, error) {
	single, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	body, err := encrypt(to, single, salt, m.Text, padded)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := jwt.Signed(k.signer).Claims(claims{origin(r.URL), time.Now().Add(tokenTime).Unix(), m.Contact}).Serialize()
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "vapid t="+token+", k="+k.public)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("Content-Encoding", "aes128gcm")
	r.Header.Set("TTL", strconv.Itoa(int(m.TTL.Seconds())))
	r.Header.Set("Urgency", "high") // otherwise phones wait until somebody picks them up
	if m.Topic != "" {
		r.Header.Set("Topic", m.Topic)
	}
	return r, nil
}

// claims are those of RFC 8292, section 2. go-jose's own write the audience as a list,
// which not every service reads.
type claims struct {
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	Contact  string `json:"sub,omitempty"`
}

// origin is the origin of a URL (RFC 6454), as the token names whom it is for.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// encrypt encrypts text as one record, for one browser (RFC 8291, section 3.4). single is
// a key that is used once. The text is padded to size bytes, if it is shorter.
func encrypt(to Subscription, single *ecdh.PrivateKey, salt, text []byte, size int) ([]byte, error) {
	theirs, auth, err := to.decode()
	if err != nil {
		return nil, err
	}
	ours := single.PublicKey().Bytes()
	secret, err := single.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	plain := append(append(make([]byte, 0, max(size, len(text)+1)), text...), 2) // 2 ends the last record
	if len(plain) < size {
		plain = plain[:size]
	}
	if len(plain) > padded {
		return nil, fmt.Errorf("a message has at most %d bytes", MaxText)
	}
	input, err := hkdf.Key(sha256.New, secret, auth, "WebPush: info\x00"+string(theirs.Bytes())+string(ours), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(bytes.Clone(salt), 4096) // the record's size, an upper bound (RFC 8188, section 2.1)
	out = append(append(out, byte(len(ours))), ours...)
	return seal.Seal(out, nonce, plain, nil), nil
}
