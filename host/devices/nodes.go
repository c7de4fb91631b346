package devices

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"tether/host"
	"tether/pairing"
)

// Nodes carries questions between the doors of a cluster's nodes. It is safe for concurrent use.
type Nodes interface {
	// ID names this node. All have names of the same length.
	ID() string
	// Ask asks a node about something and returns its answer. The error is host.ErrNoNode if there is no such node any more.
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
	// Answer says who answers the other nodes' questions about something. Its ctx ends when nobody waits for the answer any more.
	Answer(about string, by func(ctx context.Context, question []byte) []byte)
}

const (
	aboutPairing  = "pairing"
	sessionPrefix = "tethersession_"
	nodeEnds      = "-" // behind the name of a node, in an id or a token
	// useToken is the question for the machine that has got a token: its body is the token's hash.
	useToken = "use"
	// askMargin is how much longer than the request takes a question to another node may take.
	askMargin = 3 * time.Second
)

// question is a request that belongs to another node than the one that it has reached.
type question struct {
	What string `json:"what"`
	From string `json:"from"`
	Body []byte `json:"body"`
}

// reply is the answer to a question, or why there is none.
type reply struct {
	Answer  json.RawMessage `json:"answer,omitempty"`
	Refusal pairing.Refusal `json:"refusal,omitzero"`
}

// node is the name of this node, "" without others.
func (d *Door) node() string {
	if d.opts.Nodes == nil {
		return ""
	}
	return d.opts.Nodes.ID()
}

// elsewhere reports whether that may be the name of another node.
func (d *Door) elsewhere(node string) bool {
	return d.opts.Nodes != nil && len(node) == len(d.node()) && node != d.node()
}

// beganAt returns the name, of that length, of the node at which that began to which a request belongs; ok is false for one that begins something.
func beganAt(body []byte, length int) (node string, ok bool) {
	var of struct {
		ID        string `json:"id"`
		Challenge []byte `json:"challenge"`
	}
	_ = json.Unmarshal(body, &of) // an invalid one is refused where it is answered
	switch {
	case len(of.ID) > length:
		return of.ID[:length], true
	case len(of.Challenge) > length:
		return string(of.Challenge[:length]), true
	}
	return "", false
}

// askNode has another node answer.
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
	if errors.Is(err, host.ErrNoNode) {
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
		return nil, errors.New("the node at which this began cannot save it; its log says why")
	}
	return r.Answer, nil
}

// asked answers another node.
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
		r.Answer, _ = json.Marshal(answer) // can be encoded, as for HTTP
	}
	data, _ = json.Marshal(r) // as above
	return data
}

// usedAt uses up the token of a session that another node has made, and returns the machine that has got it, once it is known here.
func (d *Door) usedAt(node string, hash [sha256.Size]byte) (ed25519.PublicKey, bool) {
	answer, err := d.askNode(context.Background(), node, question{What: useToken, Body: hash[:]})
	var device ed25519.PublicKey
	if err != nil || json.Unmarshal(answer, &device) != nil || !d.knows(device) {
		return nil, false
	}
	return device, true
}
