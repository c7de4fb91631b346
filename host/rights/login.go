package rights

import (
	"crypto/sha256"
	"time"
)

// Authenticator knows tokens. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the principal of a token; ok is false if the token is unknown,
	// has expired or was revoked. The time that it takes does not depend on how much of a
	// token is correct. It may read a file.
	Authenticate(token string) (p Principal, ok bool)
	// Known is Authenticate without reading a file: it may not know a token that was made
	// in the last second.
	Known(token string) (p Principal, ok bool)
}

// Owners stores the owners of clientIds for the next host, for principals that lend. It
// is safe for concurrent use.
type Owners interface {
	// Owner returns the name of the principal to which a clientId belongs; ok is false if
	// it belongs to nobody.
	Owner(clientID string) (principal string, ok bool)
	// Own gives a clientId without an owner to a principal and returns when that is
	// stored. ours is false if the clientId belongs to another principal. If storing
	// fails, it still belongs to the principal until the host ends.
	Own(clientID, principal string) (ours bool, err error)
}

// Login is a logged-in browser, as stored for the next host.
type Login struct {
	Cookie    [sha256.Size]byte // hash of its cookie
	Token     [sha256.Size]byte // hash of the token by which it was logged in
	Principal Principal         // the principal of that token
	Until     time.Time
	Proof     Proof
}

// Proof says whether the person was there when a browser was logged in, and not only
// their cookie at an identity provider.
type Proof string

// The Proofs.
const (
	ProofNone    Proof = ""        // an earlier login at the identity provider may have sufficed
	ProofNow     Proof = "now"     // the person has shown a token or a link, or has logged in at the provider
	ProofMissing Proof = "missing" // the provider was asked for a new login, and does not say that there was one
)

// Logins stores browsers' logins for the next host. It is safe for concurrent use.
type Logins interface {
	// Kept returns the logins whose token is still valid.
	Kept() []Login
	// Keep adds a login, unless its token is not valid any more or ends with the host,
	// and returns when it is stored.
	Keep(Login) error
	// Of returns the principal of the token with that hash; ok is false if it is not
	// valid any more, or belongs to another name.
	Of(token [sha256.Size]byte, name string) (p Principal, ok bool)
	// Drop removes the login with that cookie, if there is one, and those whose token is
	// not valid any more.
	Drop(cookie [sha256.Size]byte) error
}

// SharedLogins are Logins that all nodes of a cluster share. Kept then also returns those
// of other nodes.
type SharedLogins interface {
	Logins
	// Moved reports whether they have changed since Kept was called. It is cheap.
	Moved() bool
	// KeepLink adds a link that logs one browser in, once, at any node; in the Login, the
	// hash of its code is in place of the cookie's. kept is false if the token is valid
	// only at this node.
	KeepLink(Login) (kept bool, err error)
	// UseLink uses up a link; ok is false if there is none, or not any more. It may wait
	// for a link that another node has just made.
	UseLink(code [sha256.Size]byte) (one Login, ok bool, err error)
}

// Identity is a person as an identity provider knows them.
type Identity struct {
	Issuer, Subject string   // together they identify the person; a name or an address does not
	Wanted          string   // the name that the person has there, from which this host makes one
	Groups          []string // as grants can name them
}
