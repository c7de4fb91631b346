package cluster_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"tether/host"
	"tether/host/terminals"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// otherNode is a node of another version: it says what it is told to say.
type otherNode struct {
	t  *testing.T
	nc *nats.Conn
	id string
}

func newOtherNode(t *testing.T, servers *testkit.NATS, id string) *otherNode {
	t.Helper()
	nc := must.Get(nats.Connect(servers.URLs))(t)
	t.Cleanup(nc.Close)
	return &otherNode{t, nc, id}
}

func (o *otherNode) answers(subject string, answer func(*nats.Msg) *nats.Msg) {
	o.t.Helper()
	_, err := o.nc.Subscribe("tether.test.node."+o.id+"."+subject, func(m *nats.Msg) { _ = m.RespondMsg(answer(m)) })
	if err == nil {
		err = o.nc.Flush()
	}
	must.Do(o.t, err)
}

// say publishes a hello of the other node, with further members.
func (o *otherNode) say(more string) {
	o.t.Helper()
	must.Do(o.t, o.nc.Publish("tether.test.hello", fmt.Appendf(nil, `{"id":%q%s}`, o.id, more)))
}

// ask asks a node until it answers.
func (o *otherNode) ask(subject, request string) (m *nats.Msg) {
	o.t.Helper()
	testkit.Eventually(o.t, patience, "the node answers", func() bool {
		var err error
		m, err = o.nc.Request(subject, []byte(request), patience)
		return err == nil
	})
	return m
}

func item(kind byte, end int, data string) []byte {
	b := binary.AppendUvarint([]byte{kind}, uint64(end))
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// Nodes of two versions work side by side: what a newer one says in addition is ignored,
// and what an older one does not say is not needed.
func TestNodesOfTwoVersions(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	n := start(t, servers.URLs, host.Options{})
	for version, c := range map[string]struct{ hello, list, entry, reset, state string }{
		"newer": {hello: `,"future":{"a":1}`, list: `,"future":[1]`, entry: `,"cols":80,"rows":24,"start":0,"end":5,"commands":0,"holds":true,"future":"x","role":"machine"`,
			reset: `,"future":1`, state: `,"cols":80,"rows":24,"future":[]`},
		"older": {},
	} {
		t.Run(version, func(t *testing.T) {
			o := newOtherNode(t, servers, version)
			uri := "ahp-terminal:/6d1e0000-0000-4000-8000-00000000000" + fmt.Sprint(len(c.hello)%9)
			sent := false
			o.answers("list", func(m *nats.Msg) *nats.Msg {
				var r struct{ Since int64 }
				_ = json.Unmarshal(m.Data, &r) // 0 otherwise
				out := nats.NewMsg(m.Reply)
				out.Header.Set("Future", "1")
				out.Data = fmt.Appendf(nil, `{"version":1,"whole":%t%s,"entries":[{"uri":%q,"client":"of-%s","epoch":7,"name":"n","title":"from the %s","lifecycle":{"status":"running"},"created":"2026-01-02T03:04:05Z"%s}]}`,
					r.Since == 0, c.list, uri, version, version, c.entry)
				return out
			})
			o.answers("feed", func(m *nats.Msg) *nats.Msg {
				out := nats.NewMsg(m.Reply)
				out.Header.Set("Number", "1")
				out.Header.Set("Index", "1")
				if !sent {
					out.Data = append(out.Data, item('R', 0, `{"offset":0,"commands":0,"count":0,"cols":80,"rows":24`+c.reset+`}`)...)
					if version == "newer" {
						out.Data = append(out.Data, item('Z', 0, `what comes`)...)
					}
					out.Data = append(out.Data, item('T', 5, `"hello"`)...)
					out.Data = append(out.Data, item('S', 5, `{"title":"t","lifecycle":{"status":"running"}`+c.state+`}`)...)
					sent = true
				}
				return out
			})
			testkit.Eventually(t, patience, "its terminal is listed", func() bool {
				o.say(c.hello)
				return strings.Contains(firstEvent(t, n), "from the "+version)
			})
			w := watch(t, n, uri)
			testkit.Eventually(t, patience, "its text is here", func() bool { return w.has() == "hello" })
			if err := o.nc.Publish("tether.test.node."+n.of.ID()+".future", []byte("x")); err != nil { // nobody knows it
				t.Fatal(err)
			}
		})
	}
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(n)
	m.output("here\r\n")
	must.Do(t, m.conn.Barrier(t.Context()))
	asker := newOtherNode(t, servers, "asker")
	var list terminals.NodeChanges
	if got := asker.ask("tether.test.node."+n.of.ID()+".list", `{"since":0,"future":1}`); json.Unmarshal(got.Data, &list) != nil || len(list.Entries) != 1 || list.Entries[0].URI != lent {
		t.Fatalf("a request of a newer node: %s", got.Data)
	}
	feed := fmt.Sprintf(`{"from":"asker","uri":%q,"epoch":%d,"offset":-1,"most":100000,"future":{}}`, lent, list.Entries[0].Epoch)
	if got := asker.ask("tether.test.node."+n.of.ID()+".feed", feed); !strings.Contains(string(got.Data), "here") {
		t.Errorf("a newer node follows: %q, %v", got.Data, got.Header)
	}
	m.conn.Close()
}
