package pairing

import (
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// LoginPath is the path below the host's URL where a command line logs in through an identity provider: see docs/PROTOCOL.md. The login
// itself happens in a browser. The program that began it gets a token, by proving that it knows the verifier, which never leaves it (PKCE,
// RFC 7636).
const LoginPath = "/login/oidc/cli"

// Times that both sides know.
const (
	LoginTime   = 10 * time.Minute // bound for finishing a login
	LoginCodeOK = 2 * time.Minute  // bound for exchanging the code that arrived at the loopback address
)

// LoginPage is the answer to POST page: where a browser begins a login, without the query.
type LoginPage struct {
	URL string `json:"url"`
}

// LoginBegin is the body of POST begin, for a login by a code that a person types into the host's page.
type LoginBegin struct {
	Challenge string `json:"challenge"` // LoginChallenge of the verifier
}

// LoginBegun is the answer to LoginBegin.
type LoginBegun struct {
	ID   string `json:"id"`   // of the login, a secret of both
	Code string `json:"code"` // to be typed
}

// LoginClaim is the body of POST token: with Code, which came to the loopback address, or with ID. With ID it is answered when the login is
// decided, or after WaitTime.
type LoginClaim struct {
	ID       string `json:"id,omitempty"`
	Code     string `json:"code,omitempty"`
	Verifier string `json:"verifier"`
}

// LoggedIn is the answer to LoginClaim. Without a Token the login waits.
type LoggedIn struct {
	Token  string `json:"token,omitempty"` // an observer's, in the Authorization header and in AHP
	Person string `json:"person,omitempty"`
	// ExpiresMs is after how many milliseconds the person has to log in again, at the latest.
	ExpiresMs int64 `json:"expires_ms,omitempty"`
}

// LoginApprove is the body of POST approve, with the token in the Authorization header: it lets a machine in that waits to be paired, as
// the person's own.
type LoginApprove struct {
	Code string `json:"code"`           // that tether pair shows
	Name string `json:"name,omitempty"` // of the machine; empty: its own
}

// LoginChallenge derives the challenge that announces a verifier.
func LoginChallenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
