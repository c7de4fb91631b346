package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"tether/host/terminals"
	"tether/internal/retry"
)

// Headers of an answer with a terminal's text.
const (
	headNumber = "Number"
	headIndex  = "Index"
	headError  = "Error"
	notOwner   = "not the owner"
)

// endTries is how often a node repeats, without an answer, that it does not follow a
// terminal any more.
const endTries = 25

// mostFed is how many bytes of text a node requests at a time. A single entry may be
// longer.
const mostFed = 256 << 10

// feedSlack is how much longer a message may be than its text: for the terminal's state,
// sizes, a command line, and headers.
const feedSlack = 128 << 10

// Wanted implements host.Nodes.
func (n *Node) Wanted(uri string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wanted[uri] || n.host == nil || n.ctx.Err() != nil {
		return
	}
	n.wanted[uri] = true
	n.spawnLocked(func() { n.follow(n.ctx, uri) })
}

// follow requests the text of a terminal from the node that owns it, while somebody at
// this node follows the terminal.
func (n *Node) follow(ctx context.Context, uri string) {
	var was terminals.FeedRequest // the last request
	var at string                 // its destination
	var number, index int64
	last := time.Now()
	for ctx.Err() == nil {
		r, node, ok := n.host.Terminals().Wants(uri)
		if !ok {
			n.end(ctx, at, was)
			at = ""
			if n.unwanted(uri) {
				return
			}
			continue
		}
		if at != node || was.Epoch != r.Epoch { // the former owner no longer feeds it
			number, index = 0, 0
		}
		r.From, r.Most, r.Number, r.Index, r.Hold = n.id, mostFed, number, index, holdTime(last).Milliseconds()
		was, at = r, node
		a, err := n.ask(ctx, node, r)
		if err == nil && len(a.Items) > 0 {
			if err = n.host.Terminals().ApplyFeed(uri, node, r.Epoch, a.Items); err == nil {
				number, index, last = a.Number, a.Index, time.Now()
				n.host.Terminals().Pace(ctx, uri)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, terminals.ErrNotOwner), errors.Is(err, nats.ErrNoResponders): // the terminal has moved, or its node is gone
			retry.Wait(ctx, repeatAfter/4)
		case errors.Is(err, context.DeadlineExceeded): // the request or the answer was lost
			n.unanswered.Add(1)
		default:
			n.log.Debug().Str("terminal", uri).Str("peer", node).Err(err).Msg("following a terminal")
			number = 0
			retry.Wait(ctx, repeatAfter)
		}
	}
}

// holdTime returns how long the owner may hold a request for text while there is nothing
// new; last is when text last arrived. This node waits a little longer than that. The
// time is short after recent output, so that a message which NATS loses is soon requested
// again.
func holdTime(last time.Time) time.Duration {
	if time.Since(last) < 2*time.Second {
		return 200 * time.Millisecond
	}
	return 3 * time.Second
}

// unwanted removes a terminal from those that this node follows, unless somebody has
// begun to follow it meanwhile.
func (n *Node) unwanted(uri string) bool {
	n.mu.Lock()
	delete(n.wanted, uri)
	n.mu.Unlock()
	if _, _, ok := n.host.Terminals().Wants(uri); !ok {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wanted[uri] {
		return true // somebody follows it again
	}
	n.wanted[uri] = true
	return false
}

// end tells the owning node that nobody at this node follows the terminal any more,
// because the owner counts the watchers here. It repeats that until the owner answers, or
// somebody follows the terminal again.
func (n *Node) end(ctx context.Context, node string, r terminals.FeedRequest) {
	r.Most, r.Hold = 0, 0
	data, _ := json.Marshal(r) // cannot fail: it has only strings and numbers
	for range endTries {
		if _, _, ok := n.host.Terminals().Wants(r.URI); ok || node == "" || ctx.Err() != nil {
			return
		}
		asking, cancel := context.WithTimeout(ctx, repeatAfter)
		_, err := n.nc.RequestWithContext(asking, n.subject("node."+node+".feed"), data)
		cancel()
		if err == nil || errors.Is(err, nats.ErrNoResponders) {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			retry.Wait(ctx, repeatAfter)
		}
	}
}

// ask sends a node a request and returns the answer.
func (n *Node) ask(ctx context.Context, node string, r terminals.FeedRequest) (a terminals.FeedAnswer, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	hold := time.Duration(r.Hold) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, hold+min(grace, hold+grace/10))
	defer cancel()
	m, err := n.nc.RequestWithContext(ctx, n.subject("node."+node+".feed"), data)
	if err != nil {
		return a, err
	}
	if why := m.Header.Get(headError); why == notOwner {
		return a, terminals.ErrNotOwner
	}
	a.Items = m.Data
	a.Number, err = strconv.ParseInt(m.Header.Get(headNumber), 10, 64)
	if err == nil {
		a.Index, err = strconv.ParseInt(m.Header.Get(headIndex), 10, 64)
	}
	return a, err
}

// answerFeed answers a node that follows a terminal of this one.
func (n *Node) answerFeed(ctx context.Context, m *nats.Msg) {
	var r terminals.FeedRequest
	if json.Unmarshal(m.Data, &r) != nil || !validID(r.From) {
		return
	}
	r.Room = int(n.nc.MaxPayload()) - feedSlack
	n.spawn(func() {
		a, err := n.host.Terminals().Feed(ctx, r)
		out := nats.NewMsg(m.Reply)
		switch {
		case m.Reply == "":
			return
		case err != nil:
			out.Header.Set(headError, notOwner)
		default:
			out.Header.Set(headNumber, strconv.FormatInt(a.Number, 10))
			out.Header.Set(headIndex, strconv.FormatInt(a.Index, 10))
			out.Data = a.Items
		}
		if err := n.nc.PublishMsg(out); errors.Is(err, nats.ErrMaxPayload) {
			n.log.Error().Str("terminal", r.URI).Int("bytes", len(out.Data)).Msg("NATS takes no message as long as a terminal's text")
		} // the other node asks again
	})
}
