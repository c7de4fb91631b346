package host_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/sessions"
	"tether/host/terminals"
	"tether/internal/testkit/must"
)

// engine is a cluster in which this node owns whatever comes.
type engine struct{ epochs atomic.Int64 }

// Own implements host.Nodes.
func (e *engine) Own(_ context.Context, _ string, least int64) (int64, error) {
	return max(e.epochs.Add(1), least+1), nil
}

// ID implements host.Nodes.
func (e *engine) ID() string { return "this" }

// Ask implements host.Nodes.
func (e *engine) Ask(context.Context, string, string, []byte) ([]byte, error) {
	return nil, sessions.ErrNoNode
}

// Dial implements host.Nodes.
func (e *engine) Dial(context.Context, string) (net.Conn, error) { return nil, sessions.ErrNoNode }

// Others implements host.Nodes.
func (e *engine) Others() []string { return nil }

// Wanted implements host.Nodes.
func (e *engine) Wanted(string) {}

// A machine is told who watches at other nodes, also when one takes the place of another,
// and when a node goes.
func TestWatchersAtOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaff(true, "machine.laptop.ann")
		h := testHost(t, host.Options{Access: s, People: s, Nodes: &engine{}})
		laptop := joined(t, h, s.of["machine.laptop.ann"], viewOptions{resume: true})
		const uri = "ahp-terminal:/web"
		laptop.create(uri)
		must.Do(t, laptop.audience(uri, to()))
		epoch := h.Terminals().NodeChanges(t.Context(), 0, 1).Entries[0].Epoch
		watching := func() (who string) {
			time.Sleep(time.Minute)
			synctest.Wait()
			laptop.mu.Lock()
			defer laptop.mu.Unlock()
			if all := laptop.watchers[uri]; len(all) > 0 {
				for _, w := range all[len(all)-1].Watching {
					who += w.Who
				}
			}
			return who
		}
		for _, who := range []string{"bob", "cyd"} {
			r := terminals.FeedRequest{From: "other", URI: uri, Epoch: epoch, Offset: -1, Most: 1000, Watching: 1, Watchers: []ahp.Watcher{{Who: who, Kind: ahp.WatcherPerson}}}
			must.Get(h.Terminals().Feed(t.Context(), r))(t)
			if got := watching(); got != who {
				t.Errorf("%q watches, want %q", got, who)
			}
		}
		h.NodeSilent("other")
		if got := watching(); got != "" {
			t.Errorf("%q watches at a node that is gone", got)
		}
	})
}

// The catalogue comes in as small parts as it is asked for in, each terminal once.
func TestNodeChangesInParts(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann")
	h := testHost(t, host.Options{Access: s, People: s, Nodes: &engine{}})
	laptop := joined(t, h, s.of["machine.laptop.ann"], viewOptions{resume: true})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		laptop.create("ahp-terminal:/" + name)
	}
	seen := map[string]int{}
	for since, more := int64(0), true; more; {
		c := h.Terminals().NodeChanges(t.Context(), since, 2)
		if len(c.Entries) > 2 {
			t.Errorf("%d entries at once", len(c.Entries))
		}
		for _, e := range c.Entries {
			seen[e.URI]++
		}
		since, more = c.Version, c.More
	}
	if len(seen) != 5 {
		t.Errorf("seen: %v", seen)
	}
	for uri, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", uri, n)
		}
	}
}

// A node that has nothing answers once, and then when there is something: other nodes ask
// again at once.
func TestNodeWithoutTerminalsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Nodes: &engine{}})
		began := time.Now()
		since := h.Terminals().NodeChanges(t.Context(), 0, 1).Version
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if c := h.Terminals().NodeChanges(ctx, since, 1); c.Whole || time.Since(began) < time.Minute {
			t.Errorf("answered after %v: %+v", time.Since(began), c)
		}
	})
}

// late is an engine that gives a former connection of a machine a later epoch than the
// one that has taken its place.
type late struct {
	engine
	asked atomic.Int64
}

// Own implements host.Nodes.
func (l *late) Own(context.Context, string, int64) (int64, error) {
	if l.asked.Add(1) == 1 {
		<-time.After(2 * time.Second) // in a bubble
		return 2, nil
	}
	<-time.After(time.Second)
	return 1, nil
}

// A node tells the others the epoch that the lease has, also where a connection took it
// that has ended meanwhile: with another one they would not believe it.
func TestEpochOfAConnectionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Nodes: &late{}})
		const uri = "ahp-terminal:/web"
		lend := func(v *viewer) error {
			return v.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("laptop"), ExecutionTarget: ahp.TargetClient}, nil)
		}
		former := connect(t, h, "laptop", viewOptions{resume: true})
		go func() { _ = lend(former) }() // its place is taken
		synctest.Wait()
		must.Do(t, lend(connect(t, h, "laptop", viewOptions{resume: true})))
		time.Sleep(time.Minute)
		if all := h.Terminals().NodeChanges(t.Context(), 0, 1).Entries; len(all) != 1 || all[0].Epoch != 2 {
			t.Errorf("%+v, want one in epoch 2", all)
		}
	})
}

// A node lets only those agents of another node find and call machines' tools of which
// that node has said that it has them, and whose role allows it.
func TestAgentsOfOtherNodes(t *testing.T) {
	h := testHost(t, host.Options{Sessions: true, Nodes: &engine{}})
	laptop := connect(t, h, "laptop", viewOptions{resume: true})
	must.Do(t, laptop.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI,
		ActiveClient: &ahp.ActiveClient{ClientID: "laptop", Tools: []ahp.ToolDefinition{{Name: "run"}}}}, nil))
	stated := h.Callers().AnswerTools(t.Context(), []byte(`{"from":"other","agents":[{"name":"bot","role":"operator"},{"name":"ann","role":"observer"}]}`))
	if got := string(stated); !strings.Contains(got, `"agent":{"name":"bot","role":"operator"},"client":"laptop"`) || strings.Contains(got, "ann") {
		t.Errorf("offered %s", got)
	}
	call := func(from, agent string) string {
		return string(h.Callers().AnswerCall(t.Context(), []byte(`{"from":"`+from+`","id":"1","client":"laptop","tool":"run","agent":`+agent+`}`)))
	}
	const bot = `{"name":"bot","role":"operator"}`
	for _, who := range [][2]string{{"other", `{"name":"ann","role":"observer"}`}, {"other", `{"name":"bot","role":"admin"}`}, {"other", `{"name":"eve","role":"operator"}`}, {"third", bot}} {
		if got := call(who[0], who[1]); !strings.HasPrefix(got, "F") {
			t.Errorf("%s at %s: %q", who[1], who[0], got)
		}
	}
	if got := call("other", bot); got != "R" {
		t.Errorf("the agent that the node has: %q", got)
	}
	h.Callers().AnswerTools(t.Context(), []byte(`{"from":"other"}`))
	if all := listSessions(t, laptop); len(all) != 1 {
		t.Errorf("sessions when the agent has gone: %+v", all)
	}
}

// A question that arrives after its call was given up does not run the tool again, and a
// node that states its agents no more has none.
func TestNodesThatAskNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Sessions: true, Nodes: &engine{}})
		laptop := connect(t, h, "laptop", viewOptions{resume: true})
		must.Do(t, laptop.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI,
			ActiveClient: &ahp.ActiveClient{ClientID: "laptop", Tools: []ahp.ToolDefinition{{Name: "run"}}}}, nil))
		state := func() {
			h.Callers().AnswerTools(t.Context(), []byte(`{"from":"other","agents":[{"name":"bot","role":"operator"}]}`))
		}
		call := func() string {
			return string(h.Callers().AnswerCall(t.Context(), []byte(`{"from":"other","id":"1","client":"laptop","tool":"run","hold":1000,"agent":{"name":"bot","role":"operator"}}`)))
		}
		state()
		if got := call(); got != "R" {
			t.Fatalf("the call: %q", got)
		}
		for range 2 { // nobody asks for it, and the agent stays
			time.Sleep(10 * time.Second)
			state()
		}
		if got := call(); !strings.HasPrefix(got, "F") {
			t.Errorf("a late question: %q", got)
		}
		if all := listSessions(t, laptop); len(all) != 2 {
			t.Errorf("sessions while the agent is there: %+v", all)
		}
		time.Sleep(20 * time.Second)
		if all := listSessions(t, laptop); len(all) != 1 {
			t.Errorf("sessions when the node states no agents any more: %+v", all)
		}
	})
}

// What is too long for one message of the engine comes to another node in parts: an entry
// of the log, and recorded text.
func TestLongEntriesComeInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaff(false, "machine.laptop.ann")
		h, other := testHost(t, host.Options{Access: s, People: s, Nodes: &engine{}}), testHost(t, host.Options{Access: s, People: s, Nodes: &engine{}})
		laptop := joined(t, h, s.of["machine.laptop.ann"], viewOptions{resume: true})
		const uri = "ahp-terminal:/web"
		laptop.create(uri)
		e := h.Terminals().NodeChanges(t.Context(), 0, 1).Entries[0]
		must.Do(t, other.Terminals().Mirror("owner", false, e))
		const room = 256 << 10
		r := terminals.FeedRequest{}
		follow := func() {
			t.Helper()
			for range 50 {
				next, node, ok := other.Terminals().Wants(uri)
				if !ok {
					t.Fatal("nobody follows it")
				}
				next.From, next.Most, next.Room, next.Number, next.Index = "other", room, room, r.Number, r.Index
				a := must.Get(h.Terminals().Feed(t.Context(), next))(t)
				if len(a.Items) > room+1<<10 {
					t.Errorf("%d bytes in one answer", len(a.Items))
				}
				if len(a.Items) == 0 {
					return
				}
				must.Do(t, other.Terminals().ApplyFeed(uri, node, e.Epoch, a.Items))
				r.Number, r.Index = a.Number, a.Index
			}
			t.Error("it is asked without end")
		}
		text := strings.Repeat("\x1b[m", 40_000) // an escape character takes six bytes
		laptop.output(uri, text, 0)
		laptop.ping()
		var watcher *viewer
		done := make(chan struct{})
		go func() {
			defer close(done)
			watcher = connect(t, other, "watcher", viewOptions{subs: []string{uri}})
		}()
		synctest.Wait()
		follow()
		<-done
		laptop.output(uri, text, int64(len(text)))
		laptop.ping()
		follow()
		synctest.Wait()
		if got := watcher.textOf(uri); got != text+text {
			t.Errorf("%d bytes have come, want %d", len(got), 2*len(text))
		}
	})
}

// Wrong tokens of an address, and connections of a name, count at all nodes together,
// until the other node is gone.
func TestLimitsCountAtAllNodes(t *testing.T) {
	synctest.Test(t, limitsCountAtAllNodes) // a guess is forgiven after 3 s
}

func limitsCountAtAllNodes(t *testing.T) {
	h := testHost(t, host.Options{Access: newUsers("observer-ann"), Nodes: &engine{}, MaxConnections: 64})
	ask := func(from, token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		r.RemoteAddr = from + ":4711"
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Upgrade", "websocket")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if got := ask("192.0.2.1", "wrong"); got != http.StatusForbidden {
		t.Fatalf("a wrong token: %d", got)
	}
	if got := h.NodeCounts().Wrong; got["192.0.2.1"] != 1 || len(got) != 1 {
		t.Errorf("others are told %v", got)
	}
	if got := h.NodeCounts().Wrong; len(got) != 0 {
		t.Errorf("others are told again %v", got)
	}
	h.CountsOf("other", host.NodeCounts{Conns: map[string]int{"ann": 16}, Wrong: map[string]int{"192.0.2.2": 10}})
	if got := ask("192.0.2.2", "wrong"); got != http.StatusTooManyRequests {
		t.Errorf("an address that has guessed at another node: %d", got)
	}
	if got := ask("192.0.2.3", "observer-ann"); got != http.StatusServiceUnavailable {
		t.Errorf("a name that has its part at another node: %d", got)
	}
	h.NodeSilent("other")
	if got := ask("192.0.2.3", "observer-ann"); got == http.StatusServiceUnavailable {
		t.Errorf("after the other node has gone: %d", got)
	}
}

// A terminal of a node that is not heard any more is away, and it is said that this is
// not the machine's doing.
func TestNodeThatIsNotReached(t *testing.T) {
	owner := testHost(t, host.Options{Nodes: &engine{}})
	connect(t, owner, "laptop", viewOptions{resume: true}).create("ahp-terminal:/web")
	other, url := serve(t, host.Options{Access: newUsers("agent-bot"), Nodes: &engine{}})
	c := owner.Terminals().NodeChanges(t.Context(), 0, 10)
	must.Do(t, other.Terminals().Mirror("owner", c.On, c.Entries[0]))
	agent, _ := overLines(t, url, "agent-bot", nil)
	listed := func() (all []struct {
		AwaySince int64
		AwayWhy   string
	}) {
		use(t, agent, "list_terminals", nil, &all)
		return all
	}
	if all := listed(); len(all) != 1 || all[0].AwaySince != 0 || all[0].AwayWhy != "" {
		t.Errorf("while its node is heard: %+v", all)
	}
	other.NodeSilent("owner")
	if all := listed(); len(all) != 1 || all[0].AwaySince == 0 || all[0].AwayWhy != "its node of the host is not reached" {
		t.Errorf("while its node is silent: %+v", all)
	}
}
