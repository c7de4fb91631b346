package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"tether/host/sessions"
)

// headWithin is the header with the number of milliseconds for which the asking node
// waits.
const headWithin = "Within"

// Answerer answers another node's question; the answer must fit into a message. ctx ends
// when nobody waits for the answer any more.
type Answerer = func(ctx context.Context, question []byte) []byte

// Answer sets the function that answers the other nodes' questions about a subject, a
// lower-case word. It must be called before Run.
func (n *Node) Answer(about string, by Answerer) { n.answers[about] = by }

// Ask asks a node about a subject and returns its answer. ctx must have a deadline. The
// error is sessions.ErrNoNode if there is no such node any more.
func (n *Node) Ask(ctx context.Context, node, about string, question []byte) ([]byte, error) {
	if !validID(node) {
		return nil, sessions.ErrNoNode
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, errors.New("cluster: a question needs a deadline")
	}
	m := nats.NewMsg(n.subject("node." + node + ".ask." + about))
	m.Data = question
	m.Header.Set(headWithin, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10))
	a, err := n.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		n.mu.Lock()
		known := n.peers[node] != nil
		n.mu.Unlock()
		if !known {
			return nil, sessions.ErrNoNode
		}
	}
	if err != nil {
		return nil, err
	}
	return a.Data, nil
}

// Others implements host.Nodes.
func (n *Node) Others() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.peers))
}

// answer answers a question of another node.
func (n *Node) answer(ctx context.Context, m *nats.Msg, by Answerer) {
	ms, err := strconv.ParseInt(m.Header.Get(headWithin), 10, 64)
	if err != nil || ms <= 0 || ms > time.Hour.Milliseconds() || m.Reply == "" {
		return
	}
	n.spawn(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		_ = m.Respond(by(ctx, m.Data)) // if it fails, the asking node gives up at its deadline
	})
}
