package devices

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/json"
	"errors"
	"time"

	"tether/host/sessions"
	"tether/pairing"
)

// Nodes carries questions between the doors of a cluster's nodes. Implementations are
// safe for concurrent use.
type Nodes interface {
	sessions.Nodes // whose names have the same length
	// Answer sets the function that answers the other nodes' questions to a service. Its
	// ctx ends when nobody waits for the answer any more.
	Answer(about string, by func(ctx context.Context, question []byte) []byte)
}

const (
	aboutPairing  = "pairing"
	sessionPrefix = "tethersession_"
	nodeEnds      = "-" // follows the name of a node in an id or a token
	// useToken asks a node to use up a token, and which machine it was made for. The
	// question's body is the token's hash.
	useToken = "use"
	// askMargin is how much longer a request may take if another node answers it.
	askMargin = 3 * time.Second
)

// question is a request that reached another node than the one to which it belongs.
type question struct {
	What string `json:"what"`
	From string `json:"from"`
	Body []byte `json:"body"`
}

// reply is the answer to a question, or its refusal. If both are empty, the other node's
// log has the error.
type reply struct {
	Answer  json.RawMessage `json:"answer,omitempty"`
	Refusal pairing.Refusal `json:"refusal,omitzero"`
}

// node returns the name of this node, "" if it is the only one.
func (d *Door) node() string {
	if d.opts.Nodes == nil {
		return ""
	}
	return d.opts.Nodes.ID()
}

// elsewhere reports whether node may be the name of another node.
func (d *Door) elsewhere(node string) bool {
	return d.opts.Nodes != nil && len(node) == len(d.node()) && node != d.node()
}

// beganAt returns the node's name in the id or challenge of a request, "" if the request
// begins something. genuine is false if no node has made that id or challenge: then there
// is nothing to ask about.
func (d *Door) beganAt(body []byte) (node string, genuine bool) {
	var of struct {
		ID        string `json:"id"`
		Challenge []byte `json:"challenge"`
	}
	_ = json.Unmarshal(body, &of) // the node that answers refuses an invalid body
	switch length := len(d.node()); {
	case len(of.ID) > length:
		return of.ID[:length], d.made(of.ID)
	case len(of.Challenge) > length:
		return string(of.Challenge[:length]), d.madeChallenge(of.Challenge)
	}
	return "", true
}

// checkKey derives the key for check values from the host's key, which all nodes have.
func checkKey(host ed25519.PrivateKey) ([]byte, error) {
	return hkdf.Key(sha256.New, host.Seed(), nil, "tether-host checks of tokens", sha256.Size)
}

const (
	textCheck      = 26 // characters of base32: 130 bits
	challengeCheck = 8  // bytes. It only spares other nodes questions; 112 random bits are left
)

// check returns the value by which every node sees that one of them has made a text.
func (d *Door) check(text []byte) []byte {
	mac := hmac.New(sha256.New, d.checks)
	mac.Write(text)
	return mac.Sum(nil)
}

func (d *Door) textCheck(text string) string {
	return base32.StdEncoding.EncodeToString(d.check([]byte(text)))[:textCheck]
}

// mark returns an id or a token with its check value.
func (d *Door) mark(text string) string { return text + d.textCheck(text) }

// made reports whether a node of this host has made an id or a token.
func (d *Door) made(text string) bool {
	n := len(text) - textCheck
	return n > 0 && subtle.ConstantTimeCompare([]byte(d.textCheck(text[:n])), []byte(text[n:])) == 1
}

// newChallenge returns a challenge of this node, with its check value.
func (d *Door) newChallenge() []byte {
	text := random()
	copy(text, d.node()) // 10 bytes
	n := len(text) - challengeCheck
	copy(text[n:], d.check(text[:n]))
	return text
}

func (d *Door) madeChallenge(text []byte) bool {
	n := len(text) - challengeCheck
	return n > 0 && subtle.ConstantTimeCompare(d.check(text[:n])[:challengeCheck], text[n:]) == 1
}

// askNode lets another node answer a question.
func (d *Door) askNode(ctx context.Context, node string, q question) (json.RawMessage, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	within := askMargin
	if q.What == "wait" {
		within += pairing.WaitTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err = d.opts.Nodes.Ask(ctx, node, aboutPairing, data)
	if errors.Is(err, sessions.ErrNoNode) {
		return nil, errExpired
	}
	var r reply
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	switch {
	case err != nil:
		return nil, err
	case statuses[r.Refusal.Code] != 0:
		return nil, &refusal{r.Refusal.Code, r.Refusal.Message}
	case r.Answer == nil:
		return nil, errors.New("the node at which the pairing began could not answer; its log says why")
	}
	return r.Answer, nil
}

// asked answers another node's question.
func (d *Door) asked(ctx context.Context, data []byte) []byte {
	var q question
	var answer any
	err := json.Unmarshal(data, &q)
	switch {
	case err != nil:
	case q.What == useToken && len(q.Body) == sha256.Size:
		device, ok := d.used([sha256.Size]byte(q.Body))
		if answer = device; !ok {
			err = errWrongToken
		}
	default:
		answer, err = d.answer(ctx, q)
	}
	var r reply
	if why, ok := errors.AsType[*refusal](err); ok {
		r.Refusal = pairing.Refusal{Code: why.code, Message: why.message}
	} else if err != nil {
		d.log.Warn().Str("path", q.What).Err(err).Msg("pairing request of another node refused")
	} else {
		r.Answer, _ = json.Marshal(answer) // answers can be encoded: they are also sent over HTTP
	}
	data, _ = json.Marshal(r) // cannot fail, as above
	return data
}

// usedAt uses up a session's token at the node that made it, and returns the machine that
// the token was made for. It waits until this node knows the machine. A token that the
// node has refused is not asked about again for as long as it could have been good.
func (d *Door) usedAt(node string, hash [sha256.Size]byte) (ed25519.PublicKey, bool) {
	if _, again := d.spent.Get(hash); again {
		return nil, false
	}
	answer, err := d.askNode(context.Background(), node, question{What: useToken, Body: hash[:]})
	var device ed25519.PublicKey
	if _, refused := errors.AsType[*refusal](err); refused {
		d.spent.Put(hash, struct{}{}, time.Now().Add(pairing.SessionTime))
	}
	if err != nil || json.Unmarshal(answer, &device) != nil || !d.knows(device) {
		return nil, false
	}
	return device, true
}
