package channel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/host/channel"
)

// limits are small: a taker is far behind with more than 250 bytes.
var limits = channel.Limits{Bytes: 1000, Count: 100, HoldTime: 2 * time.Second}

// rig is an order with its lock, and connections.
type rig struct {
	mu sync.Mutex
	*channel.Order
}

func newRig() *rig {
	r := &rig{}
	r.Order = channel.NewOrder(&r.mu, 0, limits)
	return r
}

// add adds a message of a size to c.
func (r *rig) add(c *channel.Channel, size int, w *channel.Wakes) {
	seq := r.Next()
	c.Add(channel.Entry{Piece: channel.Piece{Seq: seq, Msg: []byte(fmt.Sprintf("%d%s", seq, strings.Repeat(" ", size-1)))}}, w)
}

// peer is a receiver that counts how it is woken.
type peer struct {
	out           *channel.Outbox
	sending       time.Duration
	takes         bool // it can send on the caller's goroutine
	woken, direct int
}

func (r *rig) peer() *peer {
	p := &peer{takes: true}
	p.out = channel.NewOutbox(p)
	p.out.Party = r.NewParty()
	return p
}

func (p *peer) Wake()                  { p.woken++ }
func (p *peer) Sending() time.Duration { return p.sending }
func (p *peer) Direct(int) bool {
	if p.takes {
		p.direct++
	}
	return p.takes
}

// next is the peer's next message, or what a subscription needs.
func (p *peer) next() string {
	msg, s, need := p.out.Next(1)
	if s != nil {
		return fmt.Sprint(need, s.Of)
	}
	return strings.TrimSpace(string(msg))
}

// subscribe starts subscriptions of p.
func (p *peer) subscribe(all ...*channel.Channel) (subs []*channel.Subscription) {
	for _, c := range all {
		s := c.Subscribe(p.out, c.URI())
		s.Judge(0, false, 1)
		s.Start(0)
		subs = append(subs, s)
	}
	return subs
}

// A connection gets the envelopes of all its channels by their numbers, with those for
// itself and its news between them.
func TestNextIsInOrder(t *testing.T) {
	r := newRig()
	p, a, b := r.peer(), r.NewChannel("a"), r.NewChannel("b")
	s := p.subscribe(a, b)
	r.add(b, 1, nil)
	r.add(a, 1, nil)
	p.out.Direct(channel.Piece{Seq: r.Next(), Msg: []byte("3")})
	s[1].News(r.Next())
	r.add(b, 1, nil)
	b.End()
	var got []string
	for msg := p.next(); msg != ""; msg = p.next() {
		if got = append(got, msg); msg == fmt.Sprint(channel.End, "b") {
			s[1].End()
		}
	}
	if want := fmt.Sprint([]string{"1", "2", "3", fmt.Sprint(channel.News, "b"), "5", fmt.Sprint(channel.End, "b")}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if p.out.More() || p.out.Unsent() {
		t.Error("there is more")
	}
}

// Subscriptions that fell behind are brought up to date one at a time, and one whose
// rights have changed is judged before it gets anything.
func TestOneCatchesUpAtATime(t *testing.T) {
	r := newRig()
	p, a, b := r.peer(), r.NewChannel("a"), r.NewChannel("b")
	subs := p.subscribe(a, b)
	for range 20 {
		r.add(a, 100, nil)
		r.add(b, 100, nil)
	}
	var got []string
	for range 6 {
		_, s, need := p.out.Next(1)
		if need != channel.CatchUp {
			got = append(got, "piece")
			continue
		}
		got = append(got, fmt.Sprint(s.Of))
		s.Restart([]channel.Piece{{Seq: r.Next(), Msg: []byte("x")}, {Seq: r.Next(), Msg: []byte("y")}}, 0)
	}
	if fmt.Sprint(got) != "[a piece piece b piece piece]" {
		t.Errorf("got %v", got)
	}
	if msg := p.next(); msg != "" {
		t.Errorf("then comes %s", msg)
	}
	r.add(a, 1, nil)
	if _, s, need := p.out.Next(2); need != channel.Judge || s != subs[0] {
		t.Errorf("after a change of rights %v is needed", need)
	}
}
