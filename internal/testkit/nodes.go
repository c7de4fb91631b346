package testkit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

// Nodes are the nodes of a host, for tests of services that one node provides for all
// nodes (host/leader). The test chooses the leader. Its methods may be called from any
// goroutine.
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

// NewNodes returns nodes without a leader. The test fails if a question between nodes
// contains one of the secrets in plain text.
func NewNodes(t *testing.T, secrets ...string) *Nodes {
	return &Nodes{t: t, secret: secrets, answers: map[string]func(context.Context, []byte) []byte{}, serves: map[string]func(int64) func(){}, stops: map[string]func(){}}
}

// Lead makes a node the leader, with a new epoch, and starts its service, if it has one.
// The former leader's service runs on until Stop.
func (n *Nodes) Lead(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads = name
	n.epoch++
	if serve := n.serves[name]; serve != nil {
		n.stops[name] = serve(n.epoch)
	}
}

// Stop ends a node's service and waits until it has ended.
func (n *Nodes) Stop(name string) {
	n.mu.Lock()
	stop := n.stops[name]
	delete(n.stops, name)
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Between lets a test stand between the nodes and one of them: change gets the function
// that answers there, and returns the one that is asked instead.
func (n *Nodes) Between(name string, change func(by func(context.Context, []byte) []byte) func(context.Context, []byte) []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name] = change(n.answers[name])
}

// Node is one of the Nodes. It implements leader.Nodes.
type Node struct {
	*Nodes
	Name string
}

// ID implements leader.Nodes.
func (n Node) ID() string { return n.Name }

// Leader implements leader.Nodes.
func (n Node) Leader(string) (node string, epoch int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads, n.epoch
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
