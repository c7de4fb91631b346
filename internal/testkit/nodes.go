package testkit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

// Nodes are the nodes of a host, for tests of services that one of them does for all (host/leader). The test decides which one leads.
type Nodes struct {
	t      *testing.T
	secret []string

	mu      sync.Mutex
	leads   string
	epoch   int64
	answers map[string]func(context.Context, []byte) []byte
	serves  map[string]func(epoch int64) (stop func())
	stops   map[string]func()
}

// NewNodes returns nodes. The test fails if a question between them contains one of the secrets.
func NewNodes(t *testing.T, secrets ...string) *Nodes {
	return &Nodes{t: t, secret: secrets, answers: map[string]func(context.Context, []byte) []byte{}, serves: map[string]func(int64) func(){}, stops: map[string]func(){}}
}

// Lead makes a node the leader. Its service, if there is one, runs already. The former one does not know yet: see Stop.
func (n *Nodes) Lead(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads = name
	n.epoch++
	if serve := n.serves[name]; serve != nil {
		n.stops[name] = serve(n.epoch)
	}
}

// Stop ends the leading of a node and waits until its service has.
func (n *Nodes) Stop(name string) {
	n.mu.Lock()
	stop := n.stops[name]
	delete(n.stops, name)
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Node is one of them. It implements leader.Nodes.
type Node struct {
	*Nodes
	Name string
}

// ID implements leader.Nodes.
func (n Node) ID() string { return n.Name }

// Leader implements leader.Nodes.
func (n Node) Leader(string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads
}

// Lead implements leader.Nodes.
func (n Node) Lead(ctx context.Context, _ string, serve func(ctx context.Context, epoch int64)) {
	n.mu.Lock()
	n.serves[n.Name] = func(epoch int64) func() {
		serving, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); serve(serving, epoch) }()
		return func() { cancel(); <-ended }
	}
	n.mu.Unlock()
	<-ctx.Done()
	n.Stop(n.Name)
}

// Ask implements leader.Nodes.
func (n Node) Ask(ctx context.Context, node, _ string, question []byte) ([]byte, error) {
	for _, secret := range n.secret {
		if strings.Contains(string(question), secret) {
			n.t.Errorf("the question can be read: %s", question)
		}
	}
	n.mu.Lock()
	answer := n.answers[node]
	n.mu.Unlock()
	if answer == nil {
		return nil, errors.New("no such node")
	}
	a := answer(ctx, question)
	return a, ctx.Err()
}

// Answer implements leader.Nodes.
func (n Node) Answer(_ string, by func(context.Context, []byte) []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[n.Name] = by
}
