// Package pairing has the messages with which a machine and a host learn each other's
// keys, and with which the machine later proves its identity, and the texts that they
// sign. It does no I/O. docs/PROTOCOL.md describes the steps.
//
//	c := pairing.Commit(key.Public().(ed25519.PublicKey), "laptop", nonce)
//	…
//	s := pairing.Session{Host: hostKey, Device: deviceKey, Challenge: answer.Challenge, Nonce: nonce, Time: answer.Time}
//	request.Signature = s.Sign(key, pairing.ForSession)
//
// Every signed text begins with its purpose, and each part of it is preceded by its
// length, so that no text can be taken for another. No clocks are compared: the only
// signed time is the host's, which the machine signs as it got it.
package pairing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

const (
	// Version is the version of the protocol, as in Identity.
	Version = 1
	// Path is the path of the protocol below the host's URL.
	Path = "/device/v1/"
	// TokenPrefix begins pairing tokens. A pairing token is good for one pairing and for
	// nothing else.
	TokenPrefix = "tetherpair_"
	// NonceSize is the size of nonces, challenges and commitments, in bytes.
	NonceSize = 32
	// MaxMessage bounds each body, in bytes.
	MaxMessage = 8 << 10
	// MaxName bounds a machine's name for itself, in bytes.
	MaxName = 64
)

// Time limits, the same on both sides.
const (
	PairingTime   = 10 * time.Minute // bound for approving the code
	ChallengeTime = time.Minute      // bound for answering a challenge
	SessionTime   = time.Minute      // bound for connecting with a session's token
	WaitTime      = 20 * time.Second // bound for the answer to one Wait
)

// Identity is the answer to GET identity. It says that the host speaks this protocol.
type Identity struct {
	Version int    `json:"version"`
	HostKey []byte `json:"host_key"` // Ed25519
}

// Begin is the body of POST begin, with which pairing by a code begins.
type Begin struct {
	DeviceKey  []byte `json:"device_key"` // Ed25519
	Name       string `json:"name"`       // the machine's name for itself
	Commitment []byte `json:"commitment"` // see Commit
}

// Begun is the answer to Begin.
type Begun struct {
	ID      string `json:"id"` // of the pairing; secret
	HostKey []byte `json:"host_key"`
	Nonce   []byte `json:"nonce"` // the host's, made after it received the commitment
}

// Reveal is the body of POST reveal. Signature signs the Pair.
type Reveal struct {
	ID        string `json:"id"`
	Nonce     []byte `json:"nonce"` // the machine's, to which it had committed
	Signature []byte `json:"signature"`
}

// Revealed is the answer to Reveal: the host's signature of the same Pair.
type Revealed struct {
	Signature []byte `json:"signature"`
}

// Wait is the body of POST wait. The host answers when the machine is approved, or after
// WaitTime.
type Wait struct {
	ID string `json:"id"`
}

// Waited is the answer to Wait.
type Waited struct {
	Approved  bool   `json:"approved"`
	Principal string `json:"principal,omitempty"` // the host's name for the machine
}

// Redeem is the body of POST redeem, with which a machine pairs by a pairing token. The
// token is in the Authorization header.
type Redeem struct {
	DeviceKey []byte `json:"device_key"`
	Nonce     []byte `json:"nonce"`
	Signature []byte `json:"signature"` // signs the Redemption
}

// Redeemed is the answer to Redeem.
type Redeemed struct {
	HostKey   []byte `json:"host_key"`
	Principal string `json:"principal"`
	Signature []byte `json:"signature"` // the host's, of the same Redemption
}

// Ask is the body of POST challenge.
type Ask struct {
	DeviceKey []byte `json:"device_key"`
}

// Challenge is the answer to Ask. It is good for one Answer.
type Challenge struct {
	HostKey   []byte `json:"host_key"`
	Challenge []byte `json:"challenge"`
	Time      int64  `json:"time"` // the host's clock, in Unix milliseconds; part of the signed Session
}

// Answer is the body of POST session and POST leave.
type Answer struct {
	DeviceKey []byte `json:"device_key"`
	Challenge []byte `json:"challenge"`
	Nonce     []byte `json:"nonce"`     // the machine's
	Signature []byte `json:"signature"` // signs the Session, for the purpose of the request
}

// Opened is the answer to POST session.
type Opened struct {
	Token     string `json:"token"`      // for one connection
	ExpiresMs int64  `json:"expires_ms"` // from now
	Signature []byte `json:"signature"`  // the host's, of the Session with the token
}

// Refusal is the body of every other answer.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of a Refusal.
const (
	CodeBadRequest    = "bad_request"
	CodeUnknownDevice = "unknown_device" // never paired, or revoked
	CodeWrongToken    = "wrong_token"    // used, expired or unknown
	CodeExpired       = "expired"        // the pairing or the challenge has expired, or is unknown
	CodeWrongKey      = "wrong_key"      // a signature or a nonce is wrong
	CodeTooMany       = "too_many"
	CodeNotFound      = "not_found"
)

// A Pair holds everything that both sides said in a pairing by code.
type Pair struct {
	Host, Device           ed25519.PublicKey
	Name                   string
	HostNonce, DeviceNonce []byte
}

func (p Pair) message(purpose string) []byte {
	return message(purpose, p.Host, p.Device, []byte(p.Name), p.HostNonce, p.DeviceNonce)
}

// Commit returns the commitment that a machine sends before it knows the host's nonce. So
// the machine cannot choose nonce, key or name to get a wanted code.
func Commit(device ed25519.PublicKey, name string, nonce []byte) []byte {
	sum := sha256.Sum256(message("commit", device, []byte(name), nonce))
	return sum[:]
}

// Code returns the number that people compare: six digits that depend on both keys, both
// nonces and the name. An attacker between both sides has one chance in a million for
// each pairing that is begun.
func (p Pair) Code() string {
	const most = 1_000_000
	sum := sha256.Sum256(p.message("code"))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:])%most)
}

// SignDevice is the machine's signature.
func (p Pair) SignDevice(k ed25519.PrivateKey) []byte {
	return ed25519.Sign(k, p.message("pair device"))
}

// SignHost is the host's signature.
func (p Pair) SignHost(k ed25519.PrivateKey) []byte { return ed25519.Sign(k, p.message("pair host")) }

// VerifyDevice reports whether the signature is the machine's.
func (p Pair) VerifyDevice(signature []byte) bool {
	return verify(p.Device, p.message("pair device"), signature)
}

// VerifyHost reports whether the signature is the host's.
func (p Pair) VerifyHost(signature []byte) bool {
	return verify(p.Host, p.message("pair host"), signature)
}

// A Redemption holds everything that both sides said in a pairing by token.
type Redemption struct {
	Host, Device ed25519.PublicKey
	Token        string
	Nonce        []byte
}

func (r Redemption) message(purpose string) []byte {
	sum := sha256.Sum256([]byte(r.Token))
	return message(purpose, r.Host, r.Device, sum[:], r.Nonce)
}

// SignDevice is the machine's signature.
func (r Redemption) SignDevice(k ed25519.PrivateKey) []byte {
	return ed25519.Sign(k, r.message("redeem device"))
}

// SignHost is the host's signature.
func (r Redemption) SignHost(k ed25519.PrivateKey) []byte {
	return ed25519.Sign(k, r.message("redeem host"))
}

// VerifyDevice reports whether the signature is the machine's.
func (r Redemption) VerifyDevice(signature []byte) bool {
	return verify(r.Device, r.message("redeem device"), signature)
}

// VerifyHost reports whether the signature is the host's.
func (r Redemption) VerifyHost(signature []byte) bool {
	return verify(r.Host, r.message("redeem host"), signature)
}

// A Purpose says why a machine answers a challenge.
type Purpose string

// The purposes.
const (
	ForSession Purpose = "session"
	ForLeaving Purpose = "leave"
)

// A Session holds everything that both sides said when a challenge was answered.
type Session struct {
	Host, Device ed25519.PublicKey
	Challenge    []byte
	Nonce        []byte
	Time         int64 // of the Challenge
}

func (s Session) message(purpose string, more []byte) []byte {
	return message(purpose, s.Host, s.Device, s.Challenge, s.Nonce, binary.BigEndian.AppendUint64(nil, uint64(s.Time)), more)
}

// Sign is the machine's signature for a purpose.
func (s Session) Sign(k ed25519.PrivateKey, p Purpose) []byte {
	return ed25519.Sign(k, s.message(string(p)+" device", nil))
}

// Verify reports whether the signature is the machine's, for that purpose.
func (s Session) Verify(p Purpose, signature []byte) bool {
	return verify(s.Device, s.message(string(p)+" device", nil), signature)
}

// SignToken is the host's signature of the Session and of the token that it answers with.
func (s Session) SignToken(k ed25519.PrivateKey, token string) []byte {
	return ed25519.Sign(k, s.message("session host", []byte(token)))
}

// VerifyToken reports whether the signature is the host's.
func (s Session) VerifyToken(token string, signature []byte) bool {
	return verify(s.Host, s.message("session host", []byte(token)), signature)
}

// Fingerprint returns the form in which people see a key, as ssh shows keys.
func Fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// domain begins every text that is signed or hashed.
const domain = "tether pairing v1"

// message joins parts so that different lists of parts give different results.
func message(purpose string, parts ...[]byte) []byte {
	m := append([]byte(domain), 0)
	for _, part := range append([][]byte{[]byte(purpose)}, parts...) {
		m = append(binary.BigEndian.AppendUint32(m, uint32(len(part))), part...)
	}
	return m
}

// verify returns false for a key of a wrong size, for which ed25519.Verify panics.
func verify(key ed25519.PublicKey, message, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, signature)
}
