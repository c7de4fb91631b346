package webhook_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/events"
	"tether/host"
	"tether/host/access"
	"tether/host/webhook"
	"tether/mcp"
)

// nodes are several nodes. The test chooses the leader.
type nodes struct {
	t      *testing.T
	mu     sync.Mutex
	leads  string
	shared map[string]*webhook.Shared
}

func (n *nodes) lead(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads = name
}

// node is one of them.
type node struct {
	*nodes
	name string
}

func (n node) ID() string { return n.name }

func (n node) Leader(string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads
}

func (n node) Ask(ctx context.Context, of, about string, question []byte) ([]byte, error) {
	if of != "a" && of != "b" || about != webhook.AboutWebhooks {
		return nil, host.ErrNoNode
	}
	if strings.Contains(string(question), "example.com") {
		n.t.Errorf("the question can be read: %s", question)
	}
	return n.shared[of].Answer(ctx, question), nil
}

// Clients subscribe at any node; the leader delivers, and the next one goes on where it has stopped. A former leader changes nothing any more.
func TestWebhooksOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.stop()
		place := access.File(filepath.Join(t.TempDir(), "state", "webhooks"))
		key := []byte(strings.Repeat("k", 32))
		all := &nodes{t: t, shared: map[string]*webhook.Shared{}}
		for _, name := range []string{"a", "b"} {
			all.shared[name] = webhook.NewShared(node{all, name}, key, r.opts.Find, func(epoch int64) (*webhook.Hub, error) {
				o := r.opts
				o.Place, o.Key, o.Epoch = place, key, epoch
				hub, err := webhook.New(o)
				if err == nil {
					hub.SetTransport(r.receiver)
				}
				return hub, err
			})
		}
		lead := func(name string, epoch int64) (stop func()) {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- all.shared[name].Lead(ctx, epoch) }()
			synctest.Wait()
			all.lead(name)
			return func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		request := mcp.Webhook{Request: events.Request{Name: "terminal.line", Arguments: json.RawMessage(`{"pattern":"x"}`)}, URL: target, Secret: secretOf("a")}
		wrong := request
		wrong.URL = "ftp://example.com"
		if _, err := all.shared["b"].Subscribe(t.Context(), r.ann, request); err == nil || !strings.Contains(err.Error(), "no node") {
			t.Errorf("while no node leads: %v", err)
		}
		stopA := lead("a", 1)
		at, err := all.shared["b"].Subscribe(t.Context(), r.ann, request)
		if err != nil || !strings.HasPrefix(at.ID, "sub_") {
			t.Fatalf("at the node that does not lead: %+v, %v", at, err)
		}
		if _, err := all.shared["b"].Subscribe(t.Context(), r.ann, wrong); err == nil || !strings.Contains(err.Error(), "delivery.url") {
			t.Errorf("a wrong request at that node: %v", err)
		}
		mallory := host.Principal{Name: "mallory", Role: host.RoleAgent}
		if _, err := all.shared["b"].Subscribe(t.Context(), mallory, request); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("a principal that the leader does not know: %v", err)
		}
		r.journal.add(2)
		time.Sleep(5 * time.Second) // the leader keeps its progress at most once a second
		synctest.Wait()
		if kept, err := place.Read(); err != nil || strings.Contains(string(kept), "example.com") || len(kept) < 100 {
			t.Errorf("what is kept can be read: %.100q, %v", kept, err)
		}
		stopB := lead("b", 2) // while a does not know yet
		stopA()
		r.journal.add(2)
		if got := r.receiver.taken(); got != "verification e-1 e-2 e-3 e-4" {
			t.Errorf("taken: %s", got)
		}
		if answer := string(all.shared["b"].Answer(t.Context(), []byte(`{"name":"ann","role":"agent"}`))); !strings.Contains(answer, "cannot be read") {
			t.Errorf("a question of somebody without the key is answered %s", answer)
		}
		if err := all.shared["a"].Unsubscribe(r.ann, request); err != nil {
			t.Errorf("unsubscribing at the other node: %v", err)
		}
		r.journal.add(1)
		if got := r.receiver.taken(); !strings.HasSuffix(got, "e-4") {
			t.Errorf("taken after the end: %s", got)
		}
		stopB()
		if err := all.shared["a"].Lead(t.Context(), 1); err == nil {
			t.Error("a former leader leads again")
		}
	})
}
