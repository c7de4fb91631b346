// Package leader has what services share that one node of a host, the leader, does for all nodes: questions of the other nodes to it, and the
// document that it keeps for the next leader. Both are sealed, since they pass through the nodes' engine, whose operator must not be able to
// act for people.
package leader

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
)

const (
	// waitTime is how long a question waits for a node that leads, and waitEvery how often it looks.
	waitTime  = 12 * time.Second
	waitEvery = 250 * time.Millisecond
	// maxQuestion bounds an encoded question, in bytes.
	maxQuestion = 128 << 10
)

// Errors of Ask.
var (
	// ErrNone means that no node leads, or that the leader did not answer in time; then it may have done what was asked.
	ErrNone = errors.New("no node of the host answers")
	// ErrTooLong means that the question takes more than 128 KiB.
	ErrTooLong = errors.New("the question is too long for the nodes")
)

// Nodes are the nodes of a host. host/cluster implements it.
type Nodes interface {
	ID() string
	// Leader is the node that leads now; empty: none.
	Leader(about string) (node string)
	// Lead calls serve whenever this node becomes the leader, with an epoch higher than that of any leader before, until ctx ends.
	Lead(ctx context.Context, about string, serve func(ctx context.Context, epoch int64))
	Ask(ctx context.Context, node, about string, question []byte) (answer []byte, err error)
	Answer(about string, by func(ctx context.Context, question []byte) (answer []byte))
}

// Shared are the means by which the nodes of a host share one service.
type Shared struct {
	Nodes Nodes
	// Place has the leader's document.
	Place access.Place
	// Key, of 32 bytes, is the same at all nodes and known to nobody else.
	Key    []byte
	Logger *zerolog.Logger // nil means silence
}

// Service is a service at one node. Q is a question to the leader and A its answer, encoded as JSON. It is safe for concurrent use.
type Service[Q, A any] struct {
	shared Shared
	log    zerolog.Logger
	seal   cipher.AEAD
	about  string
	within time.Duration
	serve  func(context.Context, Q) (A, bool)
}

// New returns the service that the nodes call about, a lower-case word. serve answers a question within that time; leads is false while this
// node does not lead. New must be called before the node runs.
func New[Q, A any](shared Shared, about string, within time.Duration, serve func(context.Context, Q) (answer A, leads bool)) (*Service[Q, A], error) {
	seal, err := NewCipher(shared.Key)
	if err != nil {
		return nil, err
	}
	s := &Service[Q, A]{shared: shared, log: zerolog.Nop(), seal: seal, about: about, within: within, serve: serve}
	if shared.Logger != nil {
		s.log = *shared.Logger
	}
	shared.Nodes.Answer(about, s.answer)
	return s, nil
}

// NewCipher returns AES-256-GCM with a key of 32 bytes. It makes its own nonces: callers give none.
func NewCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// question is a question on its way.
type question[Q any] struct {
	ID       string `json:"id"` // binds the answer to it
	Question Q      `json:"question"`
}

// answer is the answer to it. Leads is false if the node that was asked does not lead any more.
type answer[A any] struct {
	Leads  bool `json:"leads"`
	Answer A    `json:"answer"`
}

// Ask returns the leader's answer, which may be this node. It waits 12 s for a leader. Errors: ErrNone, ErrTooLong, or ctx's.
func (s *Service[Q, A]) Ask(ctx context.Context, q Q) (a A, err error) {
	for began := time.Now(); ; {
		if a, leads := s.serve(ctx, q); leads {
			return a, nil
		}
		if node := s.shared.Nodes.Leader(s.about); node != "" && node != s.shared.Nodes.ID() {
			there, err := s.askNode(ctx, node, q)
			switch {
			case err == nil && there.Leads, errors.Is(err, ErrTooLong):
				return there.Answer, err
			case errors.Is(err, context.DeadlineExceeded):
				return a, fmt.Errorf("%w: %w", ErrNone, err) // it may have been done: asking again is up to the caller
			}
		}
		if time.Since(began) > waitTime {
			return a, ErrNone
		}
		select {
		case <-time.After(waitEvery):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func (s *Service[Q, A]) askNode(ctx context.Context, node string, q Q) (a answer[A], err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	id := rand.Text()
	text, err := json.Marshal(question[Q]{id, q})
	if err == nil && len(text) > maxQuestion {
		err = ErrTooLong
	}
	if err != nil {
		return a, err
	}
	data, err := s.shared.Nodes.Ask(ctx, node, s.about, s.seal.Seal(nil, nil, text, []byte("question")))
	if err == nil {
		data, err = s.seal.Open(nil, nil, data, []byte("answer "+id))
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err
}

// answer answers another node's question; nil if it is not a node that asks.
func (s *Service[Q, A]) answer(ctx context.Context, sealed []byte) []byte {
	var q question[Q]
	text, err := s.seal.Open(nil, nil, sealed, []byte("question"))
	if err != nil || json.Unmarshal(text, &q) != nil {
		return nil
	}
	var a answer[A]
	a.Answer, a.Leads = s.serve(ctx, q.Question)
	data, err := json.Marshal(a)
	if err != nil {
		s.log.Error().Err(err).Str("about", s.about).Msg("an answer cannot be encoded")
		return nil
	}
	return s.seal.Seal(nil, nil, data, []byte("answer "+q.ID))
}

// Run calls lead whenever this node becomes the leader, until ctx ends. kept has what the former leader has kept, which it cannot change any
// more. lead returns when the context that it gets ends; its error is logged.
func (s *Service[Q, A]) Run(ctx context.Context, lead func(ctx context.Context, kept access.Place) error) {
	s.shared.Nodes.Lead(ctx, s.about, func(ctx context.Context, epoch int64) {
		kept := sealed{s.shared.Place, s.seal, s.log, epoch}
		err := kept.Change(func(old []byte) ([]byte, error) { return old, nil }) // the former leader can keep nothing more
		if err == nil {
			err = lead(ctx, kept)
		}
		if err != nil && !errors.Is(err, errSuperseded) {
			s.log.Error().Err(err).Str("about", s.about).Msg("this node cannot lead")
		}
	})
}

// Kept is the leader's document. Only Read and Version may be called.
func (s *Service[Q, A]) Kept() access.Place { return sealed{s.shared.Place, s.seal, s.log, 0} }
