package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"tether/events"
	"tether/host"
	"tether/mcp"
)

// AboutWebhooks is what nodes ask their leader about.
const AboutWebhooks = "webhooks"

const (
	// askWithin bounds a request that another node answers: a receiver may take attemptTime to prove itself.
	askWithin = attemptTime + 5*time.Second
	// leaderWithin is how long a request waits for a node that delivers, and leaderEvery how often it looks.
	leaderWithin = 12 * time.Second
	leaderEvery  = 250 * time.Millisecond
)

// Nodes are the nodes of a host. host/cluster implements it.
type Nodes interface {
	ID() string
	Leader(about string) (node string)
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
}

// Shared has the webhooks of a host of several nodes. One node, the leader, delivers for all; clients may ask any node. It implements
// host.Webhooks, and is safe for concurrent use.
type Shared struct {
	nodes Nodes
	key   []byte // seals questions, which have secrets of receivers
	find  func(name string, role host.Role) (host.Principal, bool)
	open  func(epoch int64) (*Hub, error)

	mu  sync.Mutex
	hub *Hub // while this node leads
}

// NewShared returns those of a node. key, of 32 bytes, is the same at all nodes and known to nobody else. open makes the hub of a leader, from
// what the former one has kept.
func NewShared(nodes Nodes, key []byte, find func(string, host.Role) (host.Principal, bool), open func(epoch int64) (*Hub, error)) *Shared {
	return &Shared{nodes: nodes, key: key, find: find, open: open}
}

// Lead delivers until ctx ends. It is called when this node becomes the leader.
func (s *Shared) Lead(ctx context.Context, epoch int64) error {
	hub, err := s.open(epoch)
	if err != nil {
		return err
	}
	running := make(chan struct{})
	go func() { defer close(running); hub.Run(ctx) }()
	s.set(hub)
	<-running
	s.set(nil)
	return nil
}

func (s *Shared) set(hub *Hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = hub
}

func (s *Shared) here() *Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub
}

// question is a client's request, for the leader.
type question struct {
	Name    string    `json:"name"`
	Role    host.Role `json:"role"`
	Owner   string    `json:"owner,omitempty"`
	End     bool      `json:"end,omitempty"` // to unsubscribe
	Request Request   `json:"request"`
}

// reply is the answer to it. Elsewhere says that the node does not lead any more.
type reply struct {
	Done      mcp.Subscribed `json:"done,omitzero"`
	Wrong     *events.Error  `json:"wrong,omitempty"`
	Failed    string         `json:"failed,omitempty"`
	Elsewhere bool           `json:"elsewhere,omitempty"`
}

// Subscribe implements host.Webhooks.
func (s *Shared) Subscribe(ctx context.Context, p host.Principal, w mcp.Webhook) (mcp.Subscribed, error) {
	return s.ask(ctx, p, question{Request: request(w)})
}

// Unsubscribe implements host.Webhooks.
func (s *Shared) Unsubscribe(p host.Principal, w mcp.Webhook) error {
	_, err := s.ask(context.Background(), p, question{End: true, Request: request(w)})
	return err
}

// ask has the leader answer, which may be this node.
func (s *Shared) ask(ctx context.Context, p host.Principal, q question) (mcp.Subscribed, error) {
	q.Name, q.Role, q.Owner = p.Name, p.Role, p.Owner
	began := time.Now()
	for {
		if hub := s.here(); hub != nil {
			return s.do(ctx, hub, p, &q)
		}
		if node := s.nodes.Leader(AboutWebhooks); node != "" && node != s.nodes.ID() {
			if r, err := s.askNode(ctx, node, &q); err == nil && !r.Elsewhere {
				switch {
				case r.Wrong != nil:
					return mcp.Subscribed{}, r.Wrong
				case r.Failed != "":
					return mcp.Subscribed{}, errors.New(r.Failed)
				}
				return r.Done, nil
			}
		}
		if time.Since(began) > leaderWithin {
			return mcp.Subscribed{}, errors.New("no node of the host delivers webhooks now: try again in a minute")
		}
		select {
		case <-time.After(leaderEvery):
		case <-ctx.Done():
			return mcp.Subscribed{}, ctx.Err()
		}
	}
}

func (s *Shared) askNode(ctx context.Context, node string, q *question) (r reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	data, err := json.Marshal(q)
	if err == nil {
		data, err = seal(s.key, data)
	}
	if err == nil {
		data, err = s.nodes.Ask(ctx, node, AboutWebhooks, data)
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func (s *Shared) do(ctx context.Context, hub *Hub, p host.Principal, q *question) (done mcp.Subscribed, err error) {
	if q.End {
		return done, refusal(hub.Unsubscribe(p, q.Request))
	}
	return Door{hub}.subscribe(ctx, p, q.Request)
}

// Answer answers another node's question.
func (s *Shared) Answer(ctx context.Context, data []byte) []byte {
	var q question
	r := reply{}
	hub := s.here()
	data, err := unseal(s.key, data)
	if err == nil {
		err = json.Unmarshal(data, &q)
	}
	switch {
	case err != nil:
		r.Failed = "the question of the node cannot be read"
	case hub == nil:
		r.Elsewhere = true
	default:
		p, ok := s.find(q.Name, q.Role)
		if !ok || p.Owner != q.Owner { // the token has ended meanwhile
			r.Wrong = errWithdrawn
			break
		}
		if r.Done, err = s.do(ctx, hub, p, &q); err != nil {
			if wrong, ok := errors.AsType[*events.Error](err); ok {
				r.Wrong = wrong
			} else {
				r.Failed = err.Error()
			}
		}
	}
	answer, _ := json.Marshal(r) // has nothing that cannot be encoded
	return answer
}
