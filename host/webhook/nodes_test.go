package webhook_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/events"
	"tether/host/access"
	"tether/host/leader"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// sharedBy starts the webhooks of the nodes a and b, of which none leads yet. It is
// called in a bubble.
func sharedBy(t *testing.T, r *rig, nodes *testkit.Nodes, place access.Place) map[string]*webhook.Shared {
	t.Helper()
	shared := map[string]*webhook.Shared{}
	for _, name := range []string{"a", "b"} {
		one := leader.Shared{Nodes: testkit.Node{Nodes: nodes, Name: name}, Place: place, Key: []byte(strings.Repeat("k", 32))}
		all := must.Get(webhook.NewShared(one, r.opts.Find, func(kept access.Place) (*webhook.Hub, error) {
			o := r.opts
			o.Place = kept
			hub, err := webhook.New(o)
			if err == nil {
				hub.SetTransport(r.receiver)
			}
			return hub, err
		}))(t)
		shared[name] = all
		ctx, cancel := context.WithCancel(t.Context())
		go all.Run(ctx)
		t.Cleanup(func() { cancel(); synctest.Wait() })
	}
	synctest.Wait()
	return shared
}

// Whoever can publish to the nodes can repeat what was sent: an ended webhook stays
// ended, and a replaced secret signs nothing again.
func TestRepeatedSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.stop()
		nodes := testkit.NewNodes(t, "example.com")
		shared := sharedBy(t, r, nodes, access.File(filepath.Join(t.TempDir(), "state", "webhooks")))
		var sent [][]byte
		var answer func(context.Context, []byte) []byte
		nodes.Between("a", func(by func(context.Context, []byte) []byte) func(context.Context, []byte) []byte {
			answer = by
			return func(ctx context.Context, q []byte) []byte { sent = append(sent, q); return by(ctx, q) }
		})
		nodes.Lead("a")
		synctest.Wait()
		repeat := func() {
			t.Helper()
			for i, q := range sent {
				if answer(t.Context(), q) != nil {
					t.Errorf("question %d is answered again", i)
				}
			}
		}
		request := mcp.Webhook{Request: events.Request{Name: "terminal.line", Arguments: json.RawMessage(`{"pattern":"x"}`)}, URL: target, Secret: secretOf("a")}
		for _, secret := range []string{"a", "b"} {
			request.Secret = secretOf(secret)
			must.Get(shared["b"].Subscribe(t.Context(), r.ann, request))(t)
			repeat()
		}
		must.Do(t, shared["b"].Unsubscribe(r.ann, request))
		repeat()
		r.journal.add(2)
		time.Sleep(5 * time.Minute)
		repeat()
		r.journal.add(2)
		synctest.Wait()
		if got := r.receiver.taken(); strings.Contains(got, "e-") || len(sent) != 3 {
			t.Errorf("after the end, and %d questions, the receiver has got: %s", len(sent), got)
		}
	})
}

// Clients subscribe at any node; the leader delivers, and the next one goes on where it
// has stopped. A former leader changes nothing any more.
func TestWebhooksOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.stop()
		place := access.File(filepath.Join(t.TempDir(), "state", "webhooks"))
		nodes := testkit.NewNodes(t, "example.com")
		shared := sharedBy(t, r, nodes, place)
		request := mcp.Webhook{Request: events.Request{Name: "terminal.line", Arguments: json.RawMessage(`{"pattern":"x"}`)}, URL: target, Secret: secretOf("a")}
		wrong := request
		wrong.URL = "ftp://example.com"
		if _, err := shared["b"].Subscribe(t.Context(), r.ann, request); err == nil || !strings.Contains(err.Error(), "no node") {
			t.Errorf("while no node leads: %v", err)
		}
		nodes.Lead("a")
		at, err := shared["b"].Subscribe(t.Context(), r.ann, request)
		if err != nil || !strings.HasPrefix(at.ID, "sub_") {
			t.Fatalf("at the node that does not lead: %+v, %v", at, err)
		}
		if _, err := shared["b"].Subscribe(t.Context(), r.ann, wrong); err == nil || !strings.Contains(err.Error(), "delivery.url") {
			t.Errorf("a wrong request at that node: %v", err)
		}
		mallory := rights.Principal{Name: "mallory", Role: rights.RoleAgent}
		if _, err := shared["b"].Subscribe(t.Context(), mallory, request); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("a principal that the leader does not know: %v", err)
		}
		r.journal.add(2)
		time.Sleep(5 * time.Second) // the leader keeps its progress at most once a second
		synctest.Wait()
		if kept, err := place.Read(); err != nil || strings.Contains(string(kept), "example.com") || len(kept) < 100 {
			t.Errorf("what is kept can be read: %.100q, %v", kept, err)
		}
		nodes.Lead("b") // while a does not know yet
		synctest.Wait()
		nodes.Stop("a")
		r.journal.add(2)
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3 e-4" {
			t.Errorf("taken: %s", got)
		}
		if err := shared["a"].Unsubscribe(r.ann, request); err != nil {
			t.Errorf("unsubscribing at the other node: %v", err)
		}
		r.journal.add(1)
		if got := r.receiver.taken(); !strings.HasSuffix(got, "e-4") {
			t.Errorf("taken after the end: %s", got)
		}
	})
}
