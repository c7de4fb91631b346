package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// pinPrefix begins the text of a Pin, as in RFC 7469 and curl's --pinnedpubkey, except
// for their slashes.
const pinPrefix = "sha256/"

// ErrPin is returned by Connect when the host's certificate does not have the pinned key.
// Trying again does not help: either the host has a new key, or it is another host.
var ErrPin = errors.New("the host's certificate does not have the pinned key")

// A Pin is the SHA-256 of a certificate's public key (its SubjectPublicKeyInfo). It
// replaces the system's certificate authorities: a certificate with that key is trusted,
// whoever signed it, and no other certificate is. Name and dates are still checked. The
// zero Pin means that no key is pinned.
type Pin struct {
	sum [sha256.Size]byte
	set bool
}

// ParsePin reads sha256/ and base64, with or without padding, of either alphabet. "" is
// the zero Pin.
func ParsePin(text string) (Pin, error) {
	if text == "" {
		return Pin{}, nil
	}
	digits, ok := strings.CutPrefix(text, pinPrefix)
	digits = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(digits, "="))
	sum, err := base64.RawStdEncoding.Strict().DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return Pin{}, fmt.Errorf("a pin must be %s and the base64 of 32 bytes, not %.80q", pinPrefix, text)
	}
	return Pin{sum: [sha256.Size]byte(sum), set: true}, nil
}

// PinOf returns the Pin of a certificate.
func PinOf(c *x509.Certificate) Pin {
	return Pin{sum: sha256.Sum256(c.RawSubjectPublicKeyInfo), set: true}
}

// String returns the form that ParsePin reads, "" for the zero Pin.
func (p Pin) String() string {
	if !p.set {
		return ""
	}
	return pinPrefix + base64.StdEncoding.EncodeToString(p.sum[:])
}

// TLS returns the configuration for a host of that name or address. For the zero Pin it
// is nil, which means the system's authorities.
func (p Pin) TLS(host string) *tls.Config {
	if !p.set {
		return nil
	}
	// VerifyConnection replaces the check of the chain. It runs on every connection.
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error { return p.verify(s.PeerCertificates[0], host) }} // a client always has the host's certificate
}

// verify checks that the certificate has the pinned key, is for this name or address, and
// is valid now.
func (p Pin) verify(leaf *x509.Certificate, host string) error {
	seen := PinOf(leaf)
	if subtle.ConstantTimeCompare(seen.sum[:], p.sum[:]) != 1 {
		return fmt.Errorf("%w: its pin is %v", ErrPin, seen)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

// UnverifiedPin returns the Pin of the certificate that err says is not trusted, or the
// zero Pin if err has another cause. A caller that has verified the certificate in
// another way may pin it.
func UnverifiedPin(err error) Pin {
	unverified, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(unverified.UnverifiedCertificates) == 0 {
		return Pin{}
	}
	return PinOf(unverified.UnverifiedCertificates[0])
}
