package cluster_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// list answers requests for the other node's catalogue with count running terminals, and
// then calls after.
func (o *otherNode) list(count int, after func()) {
	o.t.Helper()
	entries := make([]string, count)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"uri":"ahp-terminal:/%s-%d","client":"of-%s","epoch":1,"name":"n","title":"from %s","lifecycle":{"status":"running"},"created":"2026-01-02T03:04:05Z"}`, o.id, i, o.id, o.id)
	}
	must.Get(o.nc.Subscribe("tether.test.node."+o.id+".list", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"version":1,"whole":true,"entries":[` + strings.Join(entries, ",") + `]}`))
		after()
	}))(o.t)
}

// The terminals of a node that goes away are listed as away, although its last answer
// still arrives.
func TestLastAnswerOfANodeThatLeaves(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	n := start(t, servers.URLs, host.Options{})
	for i := range 10 {
		leaver, later := newOtherNode(t, servers, fmt.Sprintf("leaver%d", i)), newOtherNode(t, servers, fmt.Sprintf("later%d", i))
		leaver.list(40, func() { _ = leaver.nc.Publish("tether.test.hello", []byte(`{"id":"`+leaver.id+`","bye":true}`)) }) // not say: another goroutine
		later.list(1, func() {})
		leaver.say("")
		testkit.Eventually(t, patience, "a node that comes later is listed", func() bool {
			later.say("")
			return strings.Contains(firstEvent(t, n), "from "+later.id)
		})
		testkit.Eventually(t, patience, "no terminal of the node that left runs", func() bool {
			var list struct {
				Rows []struct{ Title, State string }
			}
			must.Do(t, json.Unmarshal([]byte(firstEvent(t, n)), &list))
			for _, one := range list.Rows {
				if one.Title == "from "+leaver.id && one.State != "away" {
					return false
				}
			}
			return true
		})
	}
}
