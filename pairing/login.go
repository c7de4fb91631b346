package pairing

import (
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// LoginPath is the path below the host's URL where a command line logs in through an
// identity provider: see docs/PROTOCOL.md. The login itself happens in a browser. The
// program that began the login gets a token if it proves that it knows the verifier,
// which it has told nobody before (PKCE, RFC 7636).
const LoginPath = "/login/oidc/cli"

// Time limits of a login, the same on both sides.
const (
	LoginTime   = 10 * time.Minute // bound for finishing a login
	LoginCodeOK = 2 * time.Minute  // bound for exchanging the code that arrived at the loopback address
)

// LoginPage is the answer to POST page: the URL, without a query, at which a browser
// begins a login.
type LoginPage struct {
	URL string `json:"url"`
}

// LoginBegin is the body of POST begin. It begins a login by a code, which a person types
// into the host's page.
type LoginBegin struct {
	Challenge string `json:"challenge"` // LoginChallenge of the verifier
}

// LoginBegun is the answer to LoginBegin.
type LoginBegun struct {
	ID   string `json:"id"`   // of the login; secret
	Code string `json:"code"` // what the person types
}

// LoginClaim is the body of POST token. It has Code, which the browser brought to the
// loopback address, or ID, which LoginBegun had. With ID, the host answers when the login
// is decided, or after WaitTime.
type LoginClaim struct {
	ID       string `json:"id,omitempty"`
	Code     string `json:"code,omitempty"`
	Verifier string `json:"verifier"`
}

// LoggedIn is the answer to LoginClaim. Without a Token, the login is not decided yet.
type LoggedIn struct {
	Token  string `json:"token,omitempty"` // an observer's token, for the Authorization header and for AHP
	Person string `json:"person,omitempty"`
	// ExpiresMs is the number of milliseconds after which the person must log in again,
	// at the latest.
	ExpiresMs int64 `json:"expires_ms,omitempty"`
}

// LoginApprove is the body of POST approve, with the token in the Authorization header.
// It approves a machine that waits to be paired; the machine then belongs to the token's
// person.
type LoginApprove struct {
	Code string `json:"code"`           // the code that tether pair shows
	Name string `json:"name,omitempty"` // for the machine; empty: the machine's name for itself
}

// LoginChallenge returns the challenge of a verifier: the base64url of its SHA-256 (RFC
// 7636, method S256).
func LoginChallenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
