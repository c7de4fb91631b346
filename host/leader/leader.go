// Package leader helps services that one node of a host, the leader, runs for all nodes.
// It carries the other nodes' questions to the leader, and keeps a document for the next
// leader. Both are encrypted, because they pass through the nodes' engine, whose operator
// must not be able to act for people. A question counts once, soon, and for the leader to
// which it was sent: whoever can publish can also repeat.
package leader

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/internal/retry"
)

const (
	// waitTime is how long a question waits for a leader, and waitEvery is how often it
	// looks for one.
	waitTime  = 12 * time.Second
	waitEvery = 250 * time.Millisecond
	// maxQuestion bounds an encoded question, in bytes.
	maxQuestion = 128 << 10
)

// Errors of Ask.
var (
	// ErrNone means that no node leads, or that the leader did not answer in time. In the
	// latter case it may have carried out the request.
	ErrNone = errors.New("no node of the host answers")
	// ErrTooLong means that the question takes more than 128 KiB.
	ErrTooLong = errors.New("the question is too long for the nodes")
)

// Nodes are the nodes of a host. host/cluster implements it. about is the name of a
// service.
type Nodes interface {
	ID() string
	// Leader returns the node that leads now, "" if none does, and its epoch.
	Leader(about string) (node string, epoch int64)
	// Lead calls serve whenever this node becomes the leader, with an epoch that is
	// higher than those of all leaders before, until ctx ends.
	Lead(ctx context.Context, about string, serve func(ctx context.Context, epoch int64))
	Ask(ctx context.Context, node, about string, question []byte) (answer []byte, err error)
	Answer(about string, by func(ctx context.Context, question []byte) (answer []byte))
}

// Shared is what the nodes of a host use to share one service.
type Shared struct {
	Nodes Nodes
	// Place holds the leader's document.
	Place access.Place
	// Key has 32 bytes. It is the same at all nodes, known to nobody else, and used for
	// no other service.
	Key    []byte
	Logger *zerolog.Logger // nil means silence
}

// Service is a service at one node. Q is the type of questions to the leader and A that
// of answers; both are encoded as JSON. It is safe for concurrent use.
type Service[Q, A any] struct {
	shared Shared
	log    zerolog.Logger
	seal   cipher.AEAD
	about  string
	within time.Duration
	serve  func(context.Context, Q) (A, bool)

	epoch atomic.Int64 // in which this node leads; 0: it does not
	taken taken
	noted atomic.Int64 // when a question from another time was last logged, in Unix seconds
}

// New returns the service with the name about, a lower-case word. serve answers a
// question, and returns leads = false if this node does not lead. within bounds how long
// another node waits for the answer. New must be called before the node runs.
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

// NewCipher returns AES-256-GCM with a key of 32 bytes. It makes a random nonce for each
// message; callers pass nil.
func NewCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// question is a question as it is sent to another node.
type question[Q any] struct {
	ID       string `json:"id"` // binds the answer to it
	At       int64  `json:"at"` // when it was asked, in Unix milliseconds
	Question Q      `json:"question"`
}

// sentTo is what a question is sealed with, besides the key: it can be opened only by the
// leader to which it was sent, and only as long as that leads.
func (s *Service[Q, A]) sentTo(node string, epoch int64) []byte {
	return fmt.Appendf(nil, "question %s %s %d", s.about, node, epoch)
}

// answer is the answer to a question. Leads is false if the asked node does not lead any
// more.
type answer[A any] struct {
	Leads  bool `json:"leads"`
	Answer A    `json:"answer"`
}

// Ask returns the answer of the leader, which may be this node. It waits 12 s for a
// leader, and for the answer. Its error is ErrNone, ErrTooLong or ctx's.
func (s *Service[Q, A]) Ask(ctx context.Context, q Q) (a A, err error) {
	for began := time.Now(); ; {
		if a, leads := s.serve(ctx, q); leads {
			return a, nil
		}
		if node, epoch := s.shared.Nodes.Leader(s.about); node != "" && node != s.shared.Nodes.ID() {
			there, err := s.askNode(ctx, node, epoch, q)
			switch {
			case err == nil && there.Leads, errors.Is(err, ErrTooLong):
				return there.Answer, err
			case errors.Is(err, context.DeadlineExceeded):
				return a, fmt.Errorf("%w: %w", ErrNone, err) // the leader may have carried out the request: the caller decides whether to ask again
			}
		}
		if time.Since(began) > waitTime {
			return a, ErrNone
		}
		if !retry.Wait(ctx, waitEvery) {
			return a, ctx.Err()
		}
	}
}

func (s *Service[Q, A]) askNode(ctx context.Context, node string, epoch int64, q Q) (a answer[A], err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	id := rand.Text()
	text, err := json.Marshal(question[Q]{id, time.Now().UnixMilli(), q})
	if err == nil && len(text) > maxQuestion {
		err = ErrTooLong
	}
	if err != nil {
		return a, err
	}
	data, err := s.shared.Nodes.Ask(ctx, node, s.about, s.seal.Seal(nil, nil, text, s.sentTo(node, epoch)))
	if err == nil {
		data, err = s.seal.Open(nil, nil, data, []byte("answer "+id))
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err
}

// answer answers another node's question. It returns nil if no node of the host has
// sealed the question for this leader, and for a question from another time or that it
// has answered before.
func (s *Service[Q, A]) answer(ctx context.Context, sealed []byte) []byte {
	var q question[Q]
	text, err := s.seal.Open(nil, nil, sealed, s.sentTo(s.shared.Nodes.ID(), s.epoch.Load()))
	if err != nil || json.Unmarshal(text, &q) != nil {
		return nil
	}
	if !s.taken.first(q.ID, time.UnixMilli(q.At)) {
		if now := time.Now().Unix(); now-s.noted.Swap(now) > int64(questionAge.Seconds()) {
			s.log.Warn().Str("about", s.about).Time("asked", time.UnixMilli(q.At)).
				Msg("a question of another node came twice, or more than a minute from now: somebody repeats questions, or the nodes' clocks differ")
		}
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

// Run calls lead whenever this node becomes the leader, until ctx ends. kept is the
// document with the content of the former leader, which cannot change it any more. lead
// must return when its context ends. Run logs its error.
func (s *Service[Q, A]) Run(ctx context.Context, lead func(ctx context.Context, kept access.Place) error) {
	s.shared.Nodes.Lead(ctx, s.about, func(ctx context.Context, epoch int64) {
		kept := sealed{s.shared.Place, s.seal, s.log, epoch}
		s.epoch.Store(epoch)
		defer s.epoch.CompareAndSwap(epoch, 0)
		err := kept.Change(func(old []byte) ([]byte, error) { return old, nil }) // writes the new epoch, so that the former leader cannot write any more
		if err == nil {
			err = lead(ctx, kept)
		}
		if err != nil && !errors.Is(err, errSuperseded) {
			s.log.Error().Err(err).Str("about", s.about).Msg("this node cannot lead")
		}
	})
}

// Kept returns the leader's document. Only Read and Version of it may be called.
func (s *Service[Q, A]) Kept() access.Place { return sealed{s.shared.Place, s.seal, s.log, 0} }
