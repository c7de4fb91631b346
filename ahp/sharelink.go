package ahp

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
)

// SharePath is the path of a host's page for guests. Everything below it is for guests.
const SharePath = "/s/"

// ShareSecretSize is the size of a link's secret, in bytes.
const ShareSecretSize = 32

// ShareLink is a link with which a guest watches one terminal. Its secret is in the part
// after the '#', which browsers send to nobody.
type ShareLink struct {
	URL    string // of the host's page for guests, with the '#' at its end
	ID     string // of the share, see CheckShareID
	Secret [ShareSecretSize]byte
}

// ErrShareLink is the error of ParseShareLink. It does not quote the text, which may hold
// a secret.
var ErrShareLink = errors.New("this is not a whole link: a guest's link is https://HOST" + SharePath + "#, an id, a dot and a secret")

// maxShareLink bounds the text of a link, in bytes.
const maxShareLink = 1 << 10

// NewShareLink makes a link with a new id and a new secret. Its URL is still empty.
func NewShareLink() ShareLink {
	l := ShareLink{ID: strings.ToLower(rand.Text())}
	rand.Read(l.Secret[:])
	return l
}

// Text returns the link as a guest gets it. Nobody else may see it.
func (l ShareLink) Text() string { return l.URL + l.ID + "." + l.SecretText() }

// SecretText returns the secret as it is in the link.
func (l ShareLink) SecretText() string { return base64.RawURLEncoding.EncodeToString(l.Secret[:]) }

// SecretHash returns the hash of the secret for the host, see ShareParams.
func (l ShareLink) SecretHash() string {
	sum := sha256.Sum256(l.Secret[:])
	return hex.EncodeToString(sum[:])
}

// ParseShareLink reads a link. Its error is ErrShareLink.
func ParseShareLink(text string) (ShareLink, error) {
	page, rest, _ := strings.Cut(text, "#")
	id, secret, _ := strings.Cut(rest, ".")
	u, err := url.Parse(page)
	raw, wrong := base64.RawURLEncoding.Strict().DecodeString(secret)
	if err != nil || wrong != nil || len(text) > maxShareLink || strings.ContainsAny(secret, "\r\n") || len(raw) != ShareSecretSize || CheckShareID(id) != nil ||
		u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || !strings.HasSuffix(u.Path, SharePath) {
		return ShareLink{}, ErrShareLink
	}
	return ShareLink{URL: page + "#", ID: id, Secret: [ShareSecretSize]byte(raw)}, nil
}
