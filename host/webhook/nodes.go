package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"tether/events"
	"tether/host/access"
	"tether/host/leader"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/webpush"
	"tether/internal/deliver"
	"tether/mcp"
)

// askWithin bounds a request that another node answers: the receiver may take
// deliver.AttemptTime
// to answer its challenge.
const askWithin = deliver.AttemptTime + 5*time.Second

// Shared has the webhooks of a host of several nodes. One node, the leader, delivers for
// all; clients may send requests to any node. It implements agents.Webhooks, and is safe
// for concurrent use.
type Shared struct {
	led[question, answer]
	find func(name string, role rights.Role) (rights.Principal, bool)
}

// NewShared returns the Shared of a node. open makes the hub when the node becomes the
// leader, with what the former leader has stored. NewShared must be called before the
// node runs.
func NewShared(nodes leader.Shared, find func(string, rights.Role) (rights.Principal, bool), open func(kept access.Place) (*Hub, error)) (*Shared, error) {
	s := &Shared{find: find}
	s.open = open
	var err error
	s.nodes, err = leader.New(nodes, "webhooks", askWithin, s.answer)
	return s, err
}

// led is a hub at the node that leads. Q and A are the questions and answers of nodes.
type led[Q, A any] struct {
	nodes *leader.Service[Q, A]
	open  func(kept access.Place) (*Hub, error)

	mu  sync.Mutex
	hub *Hub // while this node leads
}

// Run delivers while this node leads, until ctx ends.
func (s *led[Q, A]) Run(ctx context.Context) { s.nodes.Run(ctx, s.lead) }

// lead delivers until ctx ends.
func (s *led[Q, A]) lead(ctx context.Context, kept access.Place) error {
	hub, err := s.open(kept)
	if err != nil {
		return err
	}
	s.set(hub)
	hub.Run(ctx)
	s.set(nil)
	return nil
}

func (s *led[Q, A]) set(hub *Hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = hub
}

func (s *led[Q, A]) here() *Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub
}

// question is a client's request, for the leader.
type question struct {
	Name    string      `json:"name"`
	Role    rights.Role `json:"role"`
	Owner   string      `json:"owner,omitempty"`
	End     bool        `json:"end,omitempty"` // to unsubscribe
	Request Request     `json:"request"`
}

// answer is the leader's answer.
type answer struct {
	Done   mcp.Subscribed `json:"done,omitzero"`
	Wrong  *events.Error  `json:"wrong,omitempty"`
	Failed string         `json:"failed,omitempty"`
}

// Subscribe implements agents.Webhooks.
func (s *Shared) Subscribe(ctx context.Context, p rights.Principal, w mcp.Webhook) (mcp.Subscribed, error) {
	return s.ask(ctx, p, question{Request: request(w)})
}

// Unsubscribe implements agents.Webhooks.
func (s *Shared) Unsubscribe(p rights.Principal, w mcp.Webhook) error {
	_, err := s.ask(context.Background(), p, question{End: true, Request: request(w)})
	return err
}

// ask makes the leader, which may be this node, answer a question.
func (s *Shared) ask(ctx context.Context, p rights.Principal, q question) (mcp.Subscribed, error) {
	q.Name, q.Role, q.Owner = p.Name, p.Role, p.Owner
	a, err := s.nodes.Ask(ctx, q)
	switch {
	case errors.Is(err, leader.ErrNone):
		return mcp.Subscribed{}, errors.New("no node of the host delivers webhooks now: try again in a minute")
	case err != nil:
		return mcp.Subscribed{}, err
	case a.Wrong != nil:
		return mcp.Subscribed{}, a.Wrong
	case a.Failed != "":
		return mcp.Subscribed{}, errors.New(a.Failed)
	}
	return a.Done, nil
}

// answer answers a question at the leader.
func (s *Shared) answer(ctx context.Context, q question) (a answer, leads bool) {
	hub := s.here()
	if hub == nil {
		return a, false
	}
	p, ok := s.find(q.Name, q.Role)
	if !ok || p.Owner != q.Owner { // the token has ended meanwhile
		return answer{Wrong: errWithdrawn}, true
	}
	var err error
	if q.End {
		err = refusal(hub.Unsubscribe(p, q.Request))
	} else {
		a.Done, err = Door{hub}.subscribe(ctx, p, q.Request)
	}
	if wrong, ok := errors.AsType[*events.Error](err); ok {
		a.Wrong = wrong
	} else if err != nil {
		a.Failed = err.Error()
	}
	return a, true
}

// SharedPushes notifies browsers at a host of several nodes, as Shared delivers webhooks.
// It implements page.Pushes.
type SharedPushes struct {
	led[pushQuestion, pushAnswer]
	key *webpush.Key
}

// pushQuestion is a browser's request, for the leader.
type pushQuestion struct {
	Browser page.PushBrowser `json:"browser"`
	Choice  *page.PushChoice `json:"choice,omitempty"`
}

// pushAnswer is the leader's answer.
type pushAnswer struct {
	Choice  page.PushChoice `json:"choice"`
	Refused string          `json:"refused,omitempty"`
	Failed  string          `json:"failed,omitempty"`
}

// NewSharedPushes is NewShared for a hub that notifies browsers. key is that of the hub.
func NewSharedPushes(nodes leader.Shared, key *webpush.Key, open func(kept access.Place) (*Hub, error)) (*SharedPushes, error) {
	s := &SharedPushes{key: key}
	s.open = open
	var err error
	s.nodes, err = leader.New(nodes, "pushes", askWithin, s.answer)
	return s, err
}

// Key implements page.Pushes.
func (s *SharedPushes) Key() string { return s.key.Public() }

// Choose implements page.Pushes.
func (s *SharedPushes) Choose(ctx context.Context, b page.PushBrowser, c *page.PushChoice) (page.PushChoice, error) {
	a, err := s.nodes.Ask(ctx, pushQuestion{b, c})
	switch {
	case err != nil:
		return page.PushChoice{}, err
	case a.Refused != "":
		return page.PushChoice{}, &page.PushRefused{Why: a.Refused}
	case a.Failed != "":
		return page.PushChoice{}, errors.New(a.Failed)
	}
	return a.Choice, nil
}

// answer answers a question at the leader.
func (s *SharedPushes) answer(ctx context.Context, q pushQuestion) (a pushAnswer, leads bool) {
	hub := s.here()
	if hub == nil {
		return a, false
	}
	var err error
	a.Choice, err = hub.Choose(ctx, q.Browser, q.Choice)
	if wrong, ok := errors.AsType[*page.PushRefused](err); ok {
		a.Refused = wrong.Why
	} else if err != nil {
		a.Failed = err.Error()
	}
	return a, true
}
