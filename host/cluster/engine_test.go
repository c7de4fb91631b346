package cluster_test

import (
	"net"
	"strings"
	"testing"

	"tether/host"
	"tether/internal/testkit"
)

// The engine may lose servers, and be away altogether: a machine that is there goes on, and nobody who follows its terminal loses or doubles a byte.
func TestServersDie(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	b := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a)
	here, there := watch(t, a, lent), watch(t, b, lent)
	for i := range 3 {
		m.flood(m.sent + 1<<19)
		servers.Kill(i)
		m.flood(m.sent + 1<<19)
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

// A node whose connection to the engine breaks again and again, in each way in which connections break, loses and doubles nothing.
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
