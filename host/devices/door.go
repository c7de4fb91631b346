package devices

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/host/admission"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/change"
	"tether/pairing"
)

// Bounds of the state kept for clients.
const (
	maxPending    = 8    // pairings under way
	maxChallenges = 1024 // of all machines
	maxSessions   = 1024 // tokens not used yet
)

// How often guessable secrets may be tried. A code is one of a million. A door begins at
// most beginBurst pairings at once, and then one every beginEvery. Within the ten minutes
// that a pairing is open, an attacker between both sides has about 25 chances in a
// million at each node.
const (
	beginBurst, beginEvery   = 5, 30 * time.Second
	redeemBurst, redeemEvery = 10, 6 * time.Second // wrong pairing tokens from one place
	noiseBurst, noiseEvery   = 10, 3 * time.Second // refusals of one place that are logged
)

// Options are the settings of a Door. Key and Tokens are required.
type Options struct {
	Key    ed25519.PrivateKey // the host's identity
	Tokens *access.Tokens     // the machines that are let in
	// Pending holds the waiting pairings, for the people who may approve them; nil shows
	// them to nobody.
	Pending access.Place
	// Nodes are the nodes of the cluster, whose doors have the same Key, Tokens and
	// Pending; nil means that there is only this node.
	Nodes  Nodes
	Audit  func(rights.AuditEvent) // nil keeps no record
	Logger *zerolog.Logger         // nil means silence
}

// Types of audit events.
const (
	AuditPairing  = "pairing"  // a machine has asked to be paired
	AuditPaired   = "paired"   // a machine was paired
	AuditUnpaired = "unpaired" // a machine has left
)

// Door serves the pairing protocol. It is an http.Handler and a rights.Authenticator, and
// safe for concurrent use. It has no goroutines.
//
// If there are several nodes, each door keeps the pairings, challenges and tokens that
// began there, and their ids name the node. The other doors ask it. So each challenge is
// answered once and each token is used once, at whichever node, and unpaired clients
// leave nothing in the cluster's bucket but their waiting pairings.
type Door struct {
	opts   Options
	log    zerolog.Logger
	public ed25519.PublicKey
	checks []byte // the key of check values

	doc     *access.Doc[pendingFile] // at Options.Pending
	writing sync.Mutex               // held while Pending is written, so that the newest state is written last
	shown   map[string]bool          // commitments of this door's pairings in Pending; guarded by writing

	challenges bounded.Map[string, challenge]
	sessions   bounded.Map[[sha256.Size]byte, session]  // by the token's hash
	spent      bounded.Map[[sha256.Size]byte, struct{}] // tokens that another node has refused
	begins     bounded.Rates                            // of pairings, by nothing
	redeems    bounded.Rates                            // of wrong pairing tokens, by place
	noise      bounded.Rates                            // of logged refusals, by place

	pending bounded.Map[string, *pending] // by id
	mu      sync.Mutex                    // guards the fields of pending ones
}

// challenge is a challenge that was not answered yet.
type challenge struct {
	device ed25519.PublicKey
	time   int64
}

// session is a token that was not used yet.
type session struct {
	device ed25519.PublicKey
	live   context.Context // ends when the machine is revoked
}

// New returns a door at which no machine waits. Without Nodes, it also removes the
// pairings that an earlier door left in Pending.
func New(o Options) (*Door, error) {
	if len(o.Key) != ed25519.PrivateKeySize || o.Tokens == nil {
		return nil, errors.New("devices: Key and Tokens are required")
	}
	d := &Door{opts: o, log: zerolog.Nop(), public: o.Key.Public().(ed25519.PublicKey), pending: bounded.Map[string, *pending]{Most: maxPending},
		challenges: bounded.Map[string, challenge]{Most: maxChallenges}, sessions: bounded.Map[[sha256.Size]byte, session]{Most: maxSessions},
		spent: bounded.Map[[sha256.Size]byte, struct{}]{Most: maxSessions}, shown: map[string]bool{}, begins: bounded.Rates{Burst: beginBurst, Every: beginEvery},
		redeems: bounded.Rates{Burst: redeemBurst, Every: redeemEvery}, noise: bounded.Rates{Burst: noiseBurst, Every: noiseEvery}}
	if o.Logger != nil {
		d.log = *o.Logger
	}
	d.doc = pendingDoc(o.Pending, func(why error) {
		d.log.Warn().Err(why).Msg("only new pairings are shown")
	})
	var err error
	if d.checks, err = checkKey(o.Key); err != nil {
		return nil, err
	}
	if o.Nodes != nil {
		o.Nodes.Answer(aboutPairing, d.asked)
		return d, nil
	}
	return d, d.show()
}

// Authenticate implements rights.Authenticator for the tokens of sessions. It uses up the
// token: each is good for one connection, which lasts until the machine is revoked. It
// asks another node only about a token that a node of this host has made.
func (d *Door) Authenticate(token string) (rights.Principal, bool) {
	after, ours := strings.CutPrefix(token, sessionPrefix)
	if !ours || !d.made(token) {
		return rights.Principal{}, false
	}
	hash := sha256.Sum256([]byte(token))
	device, ok := ed25519.PublicKey(nil), false
	if node, _, _ := strings.Cut(after, nodeEnds); d.elsewhere(node) {
		device, ok = d.usedAt(node, hash)
	} else {
		device, ok = d.used(hash)
	}
	if !ok {
		return rights.Principal{}, false
	}
	return d.opts.Tokens.Device(device) // it may have been revoked meanwhile
}

// used uses up the token of a session and returns the machine that it was made for.
func (d *Door) used(hash [sha256.Size]byte) (ed25519.PublicKey, bool) {
	s, ok := d.sessions.Take(hash)
	return s.device, ok && s.live.Err() == nil
}

// Known implements rights.Authenticator. It is Authenticate, which reads no file for a
// wrong token.
func (d *Door) Known(token string) (rights.Principal, bool) { return d.Authenticate(token) }

// Both returns an Authenticator that knows the tokens of a and of b.
func Both(a, b rights.Authenticator) rights.Authenticator { return both{a, b} }

type both [2]rights.Authenticator

// Authenticate implements rights.Authenticator.
func (b both) Authenticate(token string) (rights.Principal, bool) {
	if p, ok := b[0].Authenticate(token); ok {
		return p, true
	}
	return b[1].Authenticate(token)
}

// Known implements rights.Authenticator.
func (b both) Known(token string) (rights.Principal, bool) {
	if p, ok := b[0].Known(token); ok {
		return p, true
	}
	return b[1].Known(token)
}

// knows reports whether a machine is paired. If it is unknown and there are other nodes,
// knows waits a little: the machine may have been paired at another node a moment ago.
func (d *Door) knows(device ed25519.PublicKey) bool {
	paired := func() bool { _, ok := d.opts.Tokens.Device(device); return ok }
	return paired() || d.opts.Nodes != nil && change.Soon(paired)
}

// challengeFor makes a challenge for a machine.
func (d *Door) challengeFor(device ed25519.PublicKey) (pairing.Challenge, error) {
	if !d.knows(device) {
		return pairing.Challenge{}, errUnknownDevice
	}
	now := time.Now()
	c := challenge{device: device, time: now.UnixMilli()}
	text := d.newChallenge()
	d.challenges.Put(string(text), c, now.Add(pairing.ChallengeTime))
	return pairing.Challenge{HostKey: d.public, Challenge: text, Time: c.time}, nil
}

// answered checks the answer to a challenge, and uses up the challenge.
func (d *Door) answered(a pairing.Answer, why pairing.Purpose) (pairing.Session, rights.Principal, error) {
	c, ok := d.challenges.Take(string(a.Challenge))
	s := pairing.Session{Host: d.public, Device: c.device, Challenge: a.Challenge, Nonce: a.Nonce, Time: c.time}
	if !ok {
		return s, rights.Principal{}, errExpired
	}
	if !c.device.Equal(ed25519.PublicKey(a.DeviceKey)) || len(a.Nonce) != pairing.NonceSize || !s.Verify(why, a.Signature) {
		return s, rights.Principal{}, errWrongKey
	}
	p, ok := d.opts.Tokens.Device(c.device) // it may have been revoked meanwhile
	if !ok {
		return s, rights.Principal{}, errUnknownDevice
	}
	return s, p, nil
}

// open makes a token for a machine that has answered a challenge.
func (d *Door) open(s pairing.Session, p rights.Principal) pairing.Opened {
	token := d.mark(sessionPrefix + d.node() + nodeEnds + rand.Text())
	d.sessions.Put(sha256.Sum256([]byte(token)), session{device: s.Device, live: p.Live}, time.Now().Add(pairing.SessionTime))
	return pairing.Opened{Token: token, ExpiresMs: pairing.SessionTime.Milliseconds(), Signature: s.SignToken(d.opts.Key, token)}
}

// redeem pairs by a token.
func (d *Door) redeem(from, token string, r pairing.Redeem) (pairing.Redeemed, error) {
	place := admission.PlaceOf(from)
	if blocked, _ := d.redeems.Spent(place); blocked && !d.opts.Tokens.HadPairing(token) { // a right one passes, however many wrong ones came from the same place
		return pairing.Redeemed{}, errTooMany
	}
	said := pairing.Redemption{Host: d.public, Device: r.DeviceKey, Token: token, Nonce: r.Nonce}
	if len(r.Nonce) != pairing.NonceSize || !said.VerifyDevice(r.Signature) {
		return pairing.Redeemed{}, errWrongKey
	}
	info, err := d.opts.Tokens.Redeem(token, r.DeviceKey)
	if errors.Is(err, access.ErrPairingToken) {
		d.redeems.Allow(place)
		d.audit(rights.AuditRefused, from, "", "an invalid or used pairing token")
		return pairing.Redeemed{}, errWrongToken
	}
	if err != nil {
		return pairing.Redeemed{}, err
	}
	d.audit(AuditPaired, from, info.Principal, "by a token: "+pairing.Fingerprint(r.DeviceKey))
	return pairing.Redeemed{HostKey: d.public, Principal: info.Principal, Signature: said.SignHost(d.opts.Key)}, nil
}

func (d *Door) audit(kind, from, principal, detail string) {
	d.log.Info().Str("remote", from).Str("principal", principal).Str("detail", detail).Msg(kind)
	if d.opts.Audit == nil {
		return
	}
	ev := rights.AuditEvent{At: time.Now().UTC(), Type: kind, Remote: from, Name: principal, Detail: detail}
	if kind != rights.AuditRefused {
		ev.Role = rights.RoleMachine
	}
	d.opts.Audit(ev)
}

func random() []byte {
	b := make([]byte, pairing.NonceSize)
	rand.Read(b) // never fails, see crypto/rand
	return b
}
