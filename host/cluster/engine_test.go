package cluster_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tether/host"
	"tether/host/terminals"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The engine may lose servers, and be away altogether: a machine that is there goes on,
// and nobody who follows its terminal loses or doubles a byte.
func TestServersDie(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	b := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a)
	here, there := watch(t, a, lent), watch(t, b, lent)
	for i := range 3 {
		m.flood(m.sent + 1<<18)
		servers.Kill(i)
		m.flood(m.sent + 1<<18)
		there.await(t, m.sent, "all of it is at the other node after a server was killed")
		servers.Start(i)
	}
	for i := range 3 {
		servers.Kill(i)
	}
	m.flood(m.sent + 1<<18)
	here.await(t, m.sent, "all of it is at the owner while the engine is away")
	for i := range 3 {
		servers.Start(i)
	}
	m.flood(m.sent + 1<<10)
	there.await(t, m.sent, "all of it is at the other node when the engine is back")
	m.conn.Close()
}

// A node whose connection to the engine breaks again and again, in each way in which
// connections break, loses and doubles nothing.
func TestBrokenConnectionsToTheEngine(t *testing.T) {
	for round := range testkit.Rounds(t, 1, 50) {
		testkit.Leaks(t)
		seed := uint64(round) + 1
		servers := testkit.StartNATS(t, tools, 3, "-js", "-sd", t.TempDir()+"/"+testkit.ServerNumber, "--no_advertise")
		var broken []string
		for i := range 3 {
			to := strings.TrimPrefix(servers.URL(i), "nats://")
			p := testkit.NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", to) }, testkit.SeededFaults(seed*3+uint64(i), 512<<10))
			broken = append(broken, "nats://"+p.Listen(t))
		}
		a := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
		b := start(t, strings.Join(broken, ","), host.Options{Scrollback: 16 << 20})
		m := &machine{t: t, id: "laptop", uri: lent}
		m.lend(a)
		w := watch(t, b, lent)
		for range 2 {
			m.flood(m.sent + 1<<18)
			w.await(t, m.sent, "all of it is at the node whose connection breaks")
		}
		m.conn.Close()
	}
}

// bad is how a node reaches the engine through proxies.
type bad []*testkit.NATSProxy

func badly(t *testing.T, servers *testkit.NATS, f testkit.NATSFaults) (b bad, urls string) {
	t.Helper()
	var all []string
	for i := range 3 {
		f.Seed = f.Seed*3 + uint64(i)
		p := testkit.NewNATSProxy(t, strings.TrimPrefix(servers.URL(i), "nats://"), f)
		b, all = append(b, p), append(all, p.URL)
	}
	return b, strings.Join(all, ",")
}

func (b bad) each(do func(*testkit.NATSProxy)) {
	for _, p := range b {
		do(p)
	}
}

// An engine that loses one message in a hundred, delays all of them, cuts connections and
// leaves nodes alone for a while takes nothing from anybody: who watches at any node has
// each byte once, wherever the machine is.
func TestEngineLosesMessages(t *testing.T) {
	for round := range testkit.Rounds(t, 1, 50) {
		testkit.Leaks(t)
		servers := testkit.StartNATS(t, tools, 3, "-js", "-sd", t.TempDir()+"/"+testkit.ServerNumber, "--no_advertise")
		var nodes []*node
		var all []*watcher
		var ways []bad
		for n := range 3 {
			b, urls := badly(t, servers, testkit.NATSFaults{Seed: uint64(round*3 + n + 1), Delay: 500 * time.Microsecond})
			ways = append(ways, b)
			nodes = append(nodes, start(t, urls, host.Options{Scrollback: 16 << 20}))
			b.each(func(p *testkit.NATSProxy) { p.Lose(0.01) })
		}
		m := &machine{t: t, id: "laptop", uri: lent}
		move := func(n *node) {
			t.Helper()
			testkit.Eventually(t, patience, "a node takes the machine", func() bool { return m.tryLend(n) == nil })
		}
		move(nodes[0])
		for _, n := range nodes {
			all = append(all, watch(t, n, lent))
		}
		arrives := func(what string) {
			t.Helper()
			for i, w := range all {
				w.await(t, m.sent, fmt.Sprintf("round %d: %s at node %d", round, what, i))
			}
		}
		for turn := range 2 {
			owner, other := turn%3, (turn+1)%3
			m.flood(m.sent + 1<<18)
			arrives("all of it is")
			ways[other].each((*testkit.NATSProxy).Cut)
			m.flood(m.sent + 1<<17)
			for _, n := range []int{other, owner} {
				ways[n].each(func(p *testkit.NATSProxy) { p.Partition(true) })
				m.flood(m.sent + 1<<17)
				ways[n].each(func(p *testkit.NATSProxy) { p.Partition(false) })
			}
			arrives("all of it is, after its node or the owner was alone,")
			printed := m.sent
			move(nodes[other])
			m.flood(printed + 1<<10)
			arrives("all of it is, after the machine has moved,")
		}
		m.conn.Close()
		lost := 0
		for _, b := range ways {
			b.each(func(p *testkit.NATSProxy) { lost += p.Lost() })
		}
		t.Logf("round %d: %d messages were lost", round, lost)
		if lost == 0 {
			t.Error("the engine has lost nothing")
		}
	}
}

// A node that follows a terminal no more says so until the owner has heard it: otherwise
// its watchers would be counted for as long as it lives.
func TestEndOfFollowingIsHeard(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartNATS(t, tools, 3, "-js", "-sd", t.TempDir()+"/"+testkit.ServerNumber, "--no_advertise")
	ways, urls := badly(t, servers, testkit.NATSFaults{Seed: 1})
	n := start(t, urls, host.Options{})
	nc := must.Get(nats.Connect(servers.URLs))(t)
	defer nc.Close()
	heard := make(chan string, 1)
	must.Get(nc.Subscribe("tether.test.node.owner.feed", func(m *nats.Msg) {
		_ = m.Respond(nil)
		select {
		case heard <- string(m.Data):
		default:
		}
	}))(t)
	must.Do(t, nc.Flush())
	ways.each(func(p *testkit.NATSProxy) { p.Lose(1) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.of.End(t.Context(), "owner", terminals.FeedRequest{From: n.of.ID(), URI: lent, Most: 1})
	}()
	testkit.Eventually(t, patience, "messages are lost", func() bool {
		lost := 0
		ways.each(func(p *testkit.NATSProxy) { lost += p.Lost() })
		return lost > 1
	})
	ways.each(func(p *testkit.NATSProxy) { p.Lose(0) })
	select {
	case r := <-heard:
		if !strings.Contains(r, `"most":0`) || !strings.Contains(r, lent) {
			t.Error(r)
		}
	case <-time.After(patience):
		t.Error("the owner is not told")
	}
	<-ended
}
