package host_test

import (
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// The owner is told how many watch, whenever that changes and when it comes back, and
// nobody else is.
func TestObserversAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		want := func(o *viewer, n int64) {
			t.Helper()
			o.await("the number of observers", func() bool { got, told := o.observers[uri]; return told && got == n })
		}
		want(owner, 0)
		if err := owner.subscribe(uri); err != nil { // its own does not count
			t.Fatal(err)
		}
		one, two := connect(t, h, "one", viewOptions{resume: true}), connect(t, h, "two", viewOptions{})
		for n, v := range []*viewer{one, two} {
			must.Do(t, v.subscribe(uri))
			want(owner, int64(n+1))
		}
		if err := one.subscribe(uri); err != nil { // again
			t.Fatal(err)
		}
		owner.ping()
		want(owner, 2)
		must.Do(t, one.peer.Notify(t.Context(), ahp.MethodUnsubscribe, ahp.UnsubscribeParams{Channel: uri}))
		want(owner, 1)
		again, _, err := reconnect(t, h, owner)
		must.Do(t, err)
		again.create(uri)
		want(again, 1)
		two.close()
		want(again, 0)
		one.ping()
		one.mu.Lock()
		defer one.mu.Unlock()
		if len(one.observers) > 0 {
			t.Error("an observer is told who watches")
		}
	})
}

// Agents that wait for a terminal, or follow it as a resource, watch it meanwhile; one
// that has only read available output does not.
func TestAgentsAreCountedAsObservers(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot", "observer-ann")})
			owner := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
			owner.create(uri)
			owner.output(uri, "starting\r\n", 0)
			owner.ping()
			want := func(what string, n int64) {
				t.Helper()
				owner.await(what, func() bool { got, told := owner.observers[uri]; return told && got == n })
			}
			want("nobody watches", 0)
			agent := must.Get(connect(t, url, "agent-bot", nil))(t)
			var all []listed
			use(t, agent, "list_terminals", nil, &all)
			use(t, agent, "read_terminal", map[string]any{"terminalId": all[0].ID}, &struct{}{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				use(t, agent, "wait_terminal", map[string]any{"terminalId": all[0].ID, "pattern": "ready", "timeoutMs": 600000}, &waited{})
			}()
			want("the agent waits", 1)
			owner.output(uri, "ready\r\n", 10)
			<-ended
			want("the agent has what it waited for", 0)
			must.Do(t, agent.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "terminal:///" + all[0].ID}))
			want("the agent follows it", 1)
			ann := as(t, url, "observer-ann", "ann", viewOptions{subs: []string{uri}})
			want("a person, too", 2)
			agent.Close()
			want("the agent has gone", 1)
			ann.close()
			want("the person, too", 0)
		})
	}
}

// A client without our marker is sent nothing that it may not know.
func TestObserverCountsNeedTheMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "other", viewOptions{})
		owner.create(uri)
		must.Do(t, connect(t, h, "one", viewOptions{}).subscribe(uri))
		owner.ping()
		synctest.Wait()
		owner.mu.Lock()
		defer owner.mu.Unlock()
		if len(owner.observers) > 0 {
			t.Error("it was told who watches")
		}
	})
}
