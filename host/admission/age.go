package admission

import (
	"context"
	"net/http"
	"sync"
)

// Age says how old the tokens, people and grants are that a node of a cluster knows and
// by which it admits and serves clients.
type Age int

// The ages of rights.
const (
	Checked Age = iota // the node has all changes of the cluster
	Old                // the node does not reach NATS: it admits nobody new
	Lapsed             // the node has not reached NATS for too long: it serves only machines
)

// ErrOld refuses what needs newer rights.
var ErrOld = &Refusal{Status: http.StatusServiceUnavailable, Text: "this node does not reach its cluster and admits nobody: try another one", Quiet: true}

// Gate opens the doors of a host as far as the age of its rights allows. The zero value
// is that of a host without other nodes: it is open. It is safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	age    Age
	lapsed context.Context // ends when rights have lapsed; replaced when they are good again; nil in the zero value
	lapse  context.CancelFunc
}

// NewGate returns the gate of a node.
func NewGate() *Gate {
	g := &Gate{}
	g.lapsed, g.lapse = context.WithCancel(context.Background())
	return g
}

// Age returns how old the rights are.
func (g *Gate) Age() Age {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.age
}

// Set sets how old the rights of a node are, and reports whether they have just lapsed.
func (g *Gate) Set(now Age) (lapsed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.age = now
	switch {
	case now != Lapsed && g.lapsed.Err() != nil:
		g.lapsed, g.lapse = context.WithCancel(context.Background())
	case now == Lapsed && g.lapsed.Err() == nil:
		g.lapse()
		return true
	}
	return false
}

// Admits decides whether a request is served at all. While rights are old, only those of
// in are; nil admits none.
func (g *Gate) Admits(r *http.Request, in func(*http.Request) bool) *Refusal {
	age := g.Age()
	if age == Checked || age == Old && in != nil && in(r) {
		return nil
	}
	return ErrOld
}

// Unlapsed returns a context that ends with ctx or when rights have lapsed. The caller
// must call done.
func (g *Gate) Unlapsed(ctx context.Context) (_ context.Context, done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lapsed == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.lapsed, func() { cancel(ErrOld) })
	return ctx, func() { stop(); cancel(nil) }
}
