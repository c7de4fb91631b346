package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"tether/host"
	"tether/host/runs"
	"tether/host/sessions"
	"tether/host/terminals"
	"tether/internal/retry"
)

const (
	// helloEvery is how often a node sends a hello. It counts as gone silentAfter after
	// its last one.
	helloEvery  = 2 * time.Second
	silentAfter = 10 * time.Second
	// listHold is how long a node waits for changes of its catalogue before it answers
	// that there are none. After that time, the other node notices an answer that NATS
	// has lost.
	listHold = 2 * time.Second
	// grace is how long an answer may take beyond the time for which the other node may
	// hold the request.
	grace = time.Second
	// repeatAfter is the pause before an unanswered request is repeated.
	repeatAfter = 200 * time.Millisecond
	// maxNodes bounds the nodes of a cluster.
	maxNodes = 64
)

// hello is a node's description of itself.
type hello struct {
	ID  string `json:"id"`
	Bye bool   `json:"bye,omitempty"` // it goes away

	Counts host.NodeCounts `json:"counts,omitzero"`
}

// peer is another node.
type peer struct {
	id    string
	heard time.Time
	end   context.CancelFunc // of requests to it
	ended chan struct{}      // closed when no request to it and no answer of it is being handled
	gone  bool               // it is being dropped
}

// subject returns the NATS subject of this cluster for a purpose.
func (n *Node) subject(of string) string { return "tether." + n.opts.Name + "." + of }

// Run shows h's terminals to the other nodes, and theirs to h, until ctx ends or the node
// is closed. h must be the host that has this node in its options.
func (n *Node) Run(ctx context.Context, h *host.Host) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	n.mu.Lock()
	n.host = h
	if n.streams == nil {
		n.streams = h.Ports().ServeNode
	}
	n.mu.Unlock()
	n.Answer(sessions.AboutTools, h.Callers().AnswerTools)
	n.Answer(sessions.AboutCall, h.Callers().AnswerCall)
	n.Answer(runs.About, h.Runs().AnswerNode)
	var subs []*nats.Subscription
	handlers := map[string]nats.MsgHandler{
		n.subject("hello"):                  func(m *nats.Msg) { n.heard(ctx, m) },
		n.subject("node." + n.id + ".list"): func(m *nats.Msg) { n.answerList(ctx, m) },
		n.subject("node." + n.id + ".feed"): func(m *nats.Msg) { n.answerFeed(ctx, m) },
	}
	handlers[n.connSubject(n.id, "*")] = n.arrived
	for about, by := range n.answers {
		handlers[n.subject("node."+n.id+".ask."+about)] = func(m *nats.Msg) { n.answer(ctx, m, by) }
	}
	for subject, handle := range handlers {
		sub, err := n.nc.Subscribe(subject, handle)
		if err != nil {
			return fmt.Errorf("NATS: %w", err)
		}
		subs = append(subs, sub)
	}
	defer func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // the connection ends with the node
		}
	}()
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	n.say(hello{ID: n.id})
	for {
		select {
		case <-tick.C:
			n.mu.Lock()
			leaving := n.leaving
			n.mu.Unlock()
			if !leaving {
				n.say(hello{ID: n.id, Counts: h.NodeCounts()})
			}
			n.dropSilent()
		case <-ctx.Done():
			n.Leave()
			n.dropAll()
			return nil
		}
	}
}

// Leave tells the other nodes that this one is going away and that its machines will
// connect to others.
func (n *Node) Leave() {
	n.mu.Lock()
	told := n.leaving
	n.leaving = true
	n.mu.Unlock()
	if !told {
		n.say(hello{ID: n.id, Bye: true})
		_ = n.nc.FlushTimeout(grace) // if it fails, they notice its silence
	}
}

func (n *Node) say(what hello) {
	data, _ := json.Marshal(what) // has nothing that cannot be encoded
	_ = n.nc.Publish(n.subject("hello"), data)
}

// heard handles the hello of a node.
func (n *Node) heard(ctx context.Context, m *nats.Msg) {
	var what hello
	if json.Unmarshal(m.Data, &what) != nil || !validID(what.ID) || what.ID == n.id {
		return
	}
	n.mu.Lock()
	p := n.peers[what.ID]
	switch {
	case what.Bye && p != nil:
		n.mu.Unlock()
		n.log.Info().Str("peer", p.id).Msg("a node goes away")
		n.drop(p)
		return
	case what.Bye || p == nil && len(n.peers) >= maxNodes || p != nil && p.gone:
		n.mu.Unlock()
		return
	case p != nil:
		p.heard = time.Now()
		n.mu.Unlock()
		n.host.CountsOf(p.id, what.Counts)
		return
	}
	asking, end := context.WithCancel(ctx)
	p = &peer{id: what.ID, heard: time.Now(), end: end, ended: make(chan struct{})}
	n.peers[p.id] = p
	n.mu.Unlock()
	n.log.Info().Str("peer", p.id).Msg("a node is there")
	n.say(hello{ID: n.id}) // so that it need not wait for our next hello
	n.spawn(func() {
		defer close(p.ended)
		var requests sync.WaitGroup
		requests.Go(func() { n.followList(asking, p) })
		requests.Go(func() { n.host.Callers().Follow(asking, p.id) })
		requests.Wait()
	})
}

// validID reports whether an id can be part of a subject.
func validID(id string) bool {
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(id) >= 4 && len(id) <= 32
}

// dropSilent drops nodes that were not heard for silentAfter.
func (n *Node) dropSilent() {
	n.mu.Lock()
	var gone []*peer
	for _, p := range n.peers {
		if time.Since(p.heard) > silentAfter {
			gone = append(gone, p)
		}
	}
	n.mu.Unlock()
	for _, p := range gone {
		n.log.Warn().Str("peer", p.id).Msg("a node is silent: its machines are shown as away")
		n.drop(p)
	}
}

// drop ends the requests to a node and then marks its terminals as away. The host must
// not handle an answer of the node after that, because the answer would list the
// terminals as if the node were still there. Until drop returns, hellos of the node are
// ignored.
func (n *Node) drop(p *peer) {
	n.mu.Lock()
	was := p.gone
	p.gone = true
	n.mu.Unlock()
	if was {
		return
	}
	p.end()
	select {
	case <-p.ended:
	case <-n.ctx.Done():
	}
	n.endConns(p.id, sessions.ErrNoNode)
	n.host.NodeSilent(p.id)
	n.mu.Lock()
	delete(n.peers, p.id)
	n.mu.Unlock()
}

func (n *Node) dropAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, p := range n.peers {
		p.end()
		delete(n.peers, id)
	}
}

// listRequest asks for changes of a node's catalogue.
type listRequest struct {
	Since int64 `json:"since"`
	Hold  int64 `json:"hold"` // ms
}

// answerList answers with changes of the catalogue here, once there are any.
func (n *Node) answerList(ctx context.Context, m *nats.Msg) {
	var r listRequest
	if json.Unmarshal(m.Data, &r) != nil {
		return
	}
	n.spawn(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(min(max(r.Hold, 0), 10_000))*time.Millisecond)
		defer cancel()
		data := n.changes(ctx, r.Since, int(n.nc.MaxPayload()))
		_ = m.Respond(data) // the other node asks again
	})
}

// changes encodes changes of the catalogue here, as many as fit into one message.
func (n *Node) changes(ctx context.Context, since int64, room int) []byte {
	for most := terminals.ChangesAtOnce; ; most /= 2 {
		data, _ := json.Marshal(n.host.Terminals().NodeChanges(ctx, since, most)) // has nothing that cannot be encoded
		if len(data) <= room || most == 1 {
			return data
		}
	}
}

// followList requests a node's catalogue, and then its changes, until ctx ends.
func (n *Node) followList(ctx context.Context, p *peer) {
	var since int64
	var whole map[string]bool // the node's terminals, while it sends the whole list
	for ctx.Err() == nil {
		data, _ := json.Marshal(listRequest{since, listHold.Milliseconds()})
		asking, cancel := context.WithTimeout(ctx, listHold+grace)
		m, err := n.nc.RequestWithContext(asking, n.subject("node."+p.id+".list"), data)
		cancel()
		var c terminals.NodeChanges
		if err == nil {
			err = json.Unmarshal(m.Data, &c)
		}
		if err != nil {
			n.unanswered.Add(1)
			retry.Wait(ctx, repeatAfter)
			continue
		}
		n.mu.Lock()
		p.heard = time.Now()
		n.mu.Unlock()
		if c.Whole {
			whole = map[string]bool{}
		}
		for _, e := range c.Entries {
			if err := n.host.Terminals().Mirror(p.id, c.On, e); err != nil {
				n.log.Warn().Str("peer", p.id).Err(err).Msg("a terminal of another node is not shown")
			}
			if whole != nil {
				whole[e.URI] = true
			}
		}
		for _, g := range c.Gone {
			n.host.Terminals().MirrorGone(p.id, g)
		}
		if whole != nil && !c.More {
			for _, uri := range n.host.Terminals().MirrorsOf(p.id) {
				if !whole[uri] {
					n.host.Terminals().MirrorGone(p.id, terminals.NodeGone{URI: uri, Moved: true})
				}
			}
			whole = nil
		}
		since = c.Version
	}
}
