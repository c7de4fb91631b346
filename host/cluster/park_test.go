package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// listed is the only terminal in an agent's list, or nil.
func (a *agent) listed() map[string]any {
	a.t.Helper()
	if all, _ := a.call("list_terminals", nil)["terminals"].([]any); len(all) == 1 {
		one, _ := all[0].(map[string]any)
		return one
	}
	return nil
}

// A parked terminal is listed and read at every node, and goes on under its id at
// whichever node its machine comes to. When the node that kept it is gone, the others
// list it with the reason; one that has its text still shows that.
func TestParkedAtEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	var nodes []*node
	var agents []*agent
	for range 3 {
		n := start(t, servers.URLs, host.Options{Grace: time.Millisecond, Park: time.Hour})
		nodes, agents = append(nodes, n), append(agents, newAgent(t, n))
	}
	m := &machine{t: t, id: "laptop", uri: lent, park: true}
	m.lend(nodes[0])
	m.output("one\r\n")
	must.Do(t, m.conn.Barrier(t.Context()))
	var id string
	for i, a := range agents {
		testkit.Eventually(t, patience, fmt.Sprintf("node %d lists the terminal", i), func() bool { id, _ = a.listed()["id"].(string); return id != "" })
	}
	parked := func(when string) {
		t.Helper()
		m.conn.Close()
		for i, a := range agents {
			testkit.Eventually(t, patience, fmt.Sprintf("%s, node %d lists the terminal as parked", when, i), func() bool { return a.listed()["keptUntil"] != nil })
			if one := a.listed(); one["id"] != id || one["awaySince"] == nil || one["exited"] != nil {
				t.Errorf("%s, node %d lists %v", when, i, one)
			}
		}
	}
	read := func(a *agent) string {
		t.Helper()
		return fmt.Sprint(a.call("read_terminal", map[string]any{"terminalId": id})["history"])
	}
	parked("when the machine is away")
	for i, a := range agents[:2] {
		if got := read(a); got != "one\n" {
			t.Errorf("node %d reads %q", i, got)
		}
	}

	waits := make(chan map[string]any, 1)
	go func() {
		waits <- agents[1].call("wait_terminal", map[string]any{"terminalId": id, "pattern": "three", "timeoutMs": 60_000})
	}()
	m.former, m.uri = m.uri, strings.Replace(m.uri, "6d1e", "6d1f", 1)
	m.lend(nodes[2])
	m.output("one\r\ntwo\r\nthree\r\n"[m.sent:])
	if got := <-waits; got["reason"] != "pattern" || got["cursor"] != float64(len("one\r\ntwo\r\nthree\r\n")) {
		t.Errorf("a wait over the absence: %v", got)
	}
	for i, a := range agents {
		testkit.Eventually(t, patience, fmt.Sprintf("node %d reads what the machine brings", i), func() bool {
			one := a.listed()
			return one["id"] == id && one["awaySince"] == nil && strings.HasSuffix(read(a), "two\nthree\n")
		})
	}

	parked("when it is away again")
	nodes[2].end()
	agents = agents[:2]
	testkit.Eventually(t, patience, "the node that kept it is gone", func() bool { return agents[0].listed()["awayWhy"] != nil && agents[1].listed()["awayWhy"] != nil })
	for i, a := range agents {
		one := a.listed()
		if got := read(a); !strings.HasSuffix(got, "two\nthree\n") || one["dropped"] != nil {
			t.Errorf("node %d, which has read it, lists %v and reads %q", i, one, got)
		}
	}
	late := newAgent(t, start(t, servers.URLs, host.Options{Grace: time.Millisecond, Park: time.Hour}))
	m.former, m.uri = m.uri, strings.Replace(m.uri, "6d1f", "6d20", 1)
	m.lend(nodes[0])
	m.output("four\r\n")
	for i, a := range append(agents, late) {
		testkit.Eventually(t, patience, fmt.Sprintf("node %d lists it as it goes on", i), func() bool { one := a.listed(); return one != nil && one["awaySince"] == nil })
		if i < len(agents) && a.listed()["id"] != id {
			t.Errorf("node %d lists %v", i, a.listed())
		}
	}
	m.conn.Close()
	nodes[0].end()
	testkit.Eventually(t, patience, "who has not read it is told why there is no text", func() bool { return late.listed()["dropped"] != nil || late.listed()["awayWhy"] != nil })
}
