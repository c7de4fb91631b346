package cluster_test

import (
	"fmt"
	"testing"

	"tether/host"
	"tether/internal/testkit"
)

// A terminal that a machine lends to one node is listed, read and followed at every
// other, each byte once; also by late observers, and during a flood.
func TestObserverAtAnotherNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a := start(t, servers.URLs, host.Options{Scrollback: 8 << 20})
	b := start(t, servers.URLs, host.Options{Scrollback: 8 << 20})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a)
	early := watch(t, b, lent)
	m.flood(1 << 10)
	early.await(t, m.sent, "the first lines are at the other node")
	m.flood(4 << 20)
	early.await(t, m.sent, "the flood is at the other node")
	late := watch(t, b, lent)
	late.await(t, m.sent, "who comes late has all of it")
	m.conn.Close()
}

// A machine may move to another node at any time: followers of its terminal at any node
// have each byte once, and the former owner releases it.
func TestMachineMoves(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	nodes := []*node{}
	for range 3 {
		nodes = append(nodes, start(t, servers.URLs, host.Options{Scrollback: 16 << 20}))
	}
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(nodes[0])
	var all []*watcher
	for _, n := range nodes {
		all = append(all, watch(t, n, lent))
	}
	for move := range 5 {
		m.flood(int64(move+1) << 19)
		for i, w := range all {
			w.await(t, m.sent, fmt.Sprintf("move %d: all of it is at node %d", move, i))
		}
		former, printed := m.conn, m.sent
		m.conn = nil
		m.lend(nodes[(move+1)%3])
		testkit.Eventually(t, patience, "the former owner ends its connection", func() bool { return former.Err() != nil })
		m.flood(printed)
	}
	m.exit(0)
	for i, w := range all {
		testkit.Eventually(t, patience, fmt.Sprintf("node %d tells the exit", i), w.over)
		if w.resyncs > 1 {
			t.Errorf("who watches at node %d was sent all of it again: %d times", i, w.resyncs-1)
		}
	}
	m.conn.Close()
}

// A node that dies takes nothing with it: its machine goes on at another one, and who
// follows the terminal elsewhere has each byte once.
func TestOwnerDies(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	observed := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	owner := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(owner)
	w := watch(t, observed, lent)
	for round := range 3 {
		m.flood(m.sent + 1<<18) // it is on its way when the node dies
		printed := m.sent
		next := start(t, servers.URLs, host.Options{Scrollback: 16 << 20})
		owner.end()
		owner = next
		m.lend(owner)
		m.flood(printed + 1<<10)
		w.await(t, m.sent, fmt.Sprintf("round %d: all of it is at the node that lives", round))
	}
	if w.resyncs > 1 {
		t.Errorf("who watches was sent all of it again: %d times", w.resyncs-1)
	}
	m.conn.Close()
}
