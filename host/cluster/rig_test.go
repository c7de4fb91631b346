package cluster_test

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/cluster"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

const (
	tools    = "../../bin/tools"
	patience = testkit.Patience
	own      = "test-only_7Qh2mXw9Zk4vR1tB6nE3"
)

// hostKey is the same for all nodes of a test.
var hostKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)

// join joins a node. The first may come before the servers have agreed on who leads.
func join(t testing.TB, servers string) *cluster.Node { return joinFor(t, servers, 0) }

// joinFor is join with a time to serve without the engine.
func joinFor(t testing.TB, servers string, grace time.Duration) *cluster.Node {
	t.Helper()
	var n *cluster.Node
	testkit.Eventually(t, patience, "a node joins", func() bool {
		var err error
		n, err = cluster.Join(t.Context(), cluster.Options{Servers: servers, Name: "test", HostKey: hostKey, RightsGrace: grace})
		if why, ok := errors.AsType[*cluster.JoinError](err); ok && strings.Contains(why.Message, "replicas") {
			t.Fatal(err)
		}
		return err == nil
	})
	return n
}

// node is a host that is a node, with a listener.
type node struct {
	*host.Host
	of   *cluster.Node
	url  string
	http *httptest.Server
	end  func() // as a kill does: nobody is told
}

// start starts a node, which ends with the test.
func start(t testing.TB, servers string, o host.Options) *node {
	t.Helper()
	return startWith(t, servers, func(_ *node, options *host.Options) { *options = o })
}

// startWith is start with options that need the node.
func startWith(t testing.TB, servers string, set func(*node, *host.Options)) *node {
	t.Helper()
	return startAs(t, join(t, servers), set)
}

// startAs is startWith for a node that has joined.
func startAs(t testing.TB, of *cluster.Node, set func(*node, *host.Options)) *node {
	t.Helper()
	n := &node{of: of}
	var o host.Options
	set(n, &o)
	o.Nodes, o.Token = n.of, own
	n.Host = host.New(o)
	n.http = httptest.NewServer(n.Host)
	n.url = strings.Replace(n.http.URL, "http", "ws", 1)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		check.OK(t, n.of.Run(ctx, n.Host))
	})
	n.end = sync.OnceFunc(func() {
		cancel()
		n.of.Close()
		n.Host.Close()
		n.http.Close()
		run.Wait()
	})
	t.Cleanup(n.end)
	return n
}

// machine is one that lends a terminal, as plainly as the protocol allows.
type machine struct {
	t    testing.TB
	id   string
	uri  string
	conn *client.Conn

	token  string // empty: the host's own
	former string // URI that the terminal had before
	park   bool   // hosts may keep it for an hour
	sent   int64  // bytes of the flood

	mu       sync.Mutex
	turn     int // counts connections
	acked    int64
	moved    chan struct{} // 1 slot: there was an acknowledgement
	watching int64
}

const lent = "ahp-terminal:/6d1e0000-0000-4000-8000-000000000001"

// lend connects to a node and announces the terminal, whose flood continues where the
// node's text ends.
func (m *machine) lend(n *node) {
	m.t.Helper()
	must.Do(m.t, m.tryLend(n))
}

// tryLend is lend at a node that may not take it.
func (m *machine) tryLend(n *node) error {
	m.t.Helper()
	if m.conn != nil {
		m.conn.Close()
	}
	m.mu.Lock()
	m.acked, m.turn = -1, m.turn+1
	if m.moved == nil {
		m.moved = make(chan struct{}, 1)
	}
	turn := m.turn
	m.mu.Unlock()
	var err error
	m.conn, err = client.Connect(m.t.Context(), client.Endpoint{URL: n.url, Token: cmp.Or(m.token, own)}, client.Options{ClientID: m.id, Meta: ahp.NewClientMeta(),
		OnNotification: func(method string, params []byte) {
			m.mu.Lock()
			defer m.mu.Unlock()
			var ack ahp.AckParams
			var count ahp.ObserversParams
			switch {
			case m.turn != turn: // it is a former connection
			case method == ahp.MethodAck && ahp.DecodeParams(params, &ack) == nil:
				m.acked = ack.Applied
				select {
				case m.moved <- struct{}{}:
				default:
				}
			case method == ahp.MethodObservers && ahp.DecodeParams(params, &count) == nil:
				m.watching = count.Count
			}
		}})
	if err != nil {
		return err
	}
	err = m.conn.CreateTerminal(m.t.Context(), ahp.CreateTerminalParams{Channel: m.uri, Name: "dev", Claim: ahp.ClientClaim(m.id), ExecutionTarget: ahp.TargetClient,
		Meta: m.meta()})
	if err != nil {
		return err
	}
	testkit.Eventually(m.t, patience, "the node says what it has", func() bool { return m.has() >= 0 })
	m.sent = m.has()
	return nil
}

func (m *machine) meta() ahp.Meta {
	meta := ahp.NewTerminalMeta(m.former, true)
	if m.park {
		meta = ahp.AddPark(meta, ahp.NewPark(time.Hour, -1))
	}
	return meta
}

// watched is how many watch, as the node says.
func (m *machine) watched() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.watching
}

func (m *machine) has() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.acked
}

// flood sends lines of the flood up to a place or a little more, waiting for
// acknowledgements as tether does.
func (m *machine) flood(until int64) {
	m.t.Helper()
	var f testkit.Flood
	f.Skip(m.sent)
	for m.sent < until {
		var lines strings.Builder
		for lines.Len() < 8<<10 && m.sent+int64(lines.Len()) < until {
			lines.WriteString(f.Next(64 << 10)) // a line
		}
		m.output(lines.String())
		for late := time.After(patience); m.sent-m.has() > 64<<10; {
			select {
			case <-m.moved:
			case <-late:
				m.t.Fatalf("the node has acknowledged %d of %d", m.has(), m.sent)
			}
		}
	}
}

func (m *machine) output(text string) {
	m.t.Helper()
	at := m.sent
	a := ahp.TerminalOutput{Data: text, Offset: &at}
	must.Get(m.conn.Dispatch(m.t.Context(), m.uri, a))(m.t)
	m.sent += int64(len(text))
}

// exit ends the terminal.
func (m *machine) exit(code int64) {
	m.t.Helper()
	must.Get(m.conn.Dispatch(m.t.Context(), m.uri, ahp.TerminalExited{ExitCode: &code}))(m.t)
}

// watcher is an observer of one terminal at a node.
type watcher struct {
	mu      sync.Mutex
	text    strings.Builder
	seen    bool
	resyncs int
	exited  bool
	listed  []ahp.TerminalInfo
}

// watch follows the terminal until the test ends.
func watch(t testing.TB, n *node, uri string) *watcher { return watchAs(t, n, uri, own) }

// watchAs is watch with a token.
func watchAs(t testing.TB, n *node, uri, token string) *watcher {
	w := &watcher{}
	ctx, cancel := context.WithCancel(context.Background())
	o := client.NewObserver(client.ObserverOptions{Endpoint: client.Endpoint{URL: n.url, Token: token}, ClientID: client.NewID(), ContentLimit: 16 << 20, QueueLimit: 16 << 20})
	var all sync.WaitGroup
	all.Go(func() { _ = o.Run(ctx) }) // until the test ends
	all.Go(func() {
		for {
			ev, err := o.Next(ctx)
			if err != nil {
				return
			}
			for _, one := range ev.Terminals {
				if one.Resource == uri {
					o.Follow(uri)
				}
			}
			w.take(ev, uri)
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
	return w
}

func (w *watcher) take(ev client.Event, uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ev.Terminals != nil {
		w.listed = ev.Terminals
	}
	if ev.Terminal != uri {
		return
	}
	switch ev.Kind {
	case client.Resync:
		w.text.Reset()
		w.text.WriteString(ev.State.Text())
		w.resyncs, w.seen, w.exited = w.resyncs+1, true, ev.State.Lifecycle.Exited()
	case client.Data:
		w.text.Write(ev.Data)
	case client.Action:
		switch ev.Action.(type) {
		case ahp.TerminalCleared:
			w.text.Reset()
		case ahp.TerminalExited:
			w.exited = true
		}
	}
}

// has returns the received text.
func (w *watcher) has() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// over reports whether it was told of the exit.
func (w *watcher) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exited
}

// await waits until it has the flood up to a place, each byte once.
func (w *watcher) await(t testing.TB, until int64, what string) {
	t.Helper()
	var text string
	testkit.Eventually(t, patience, what, func() bool {
		text = w.has()
		return int64(len(text)) >= until
	})
	gaps, end, err := testkit.CheckFlood(text)
	if err != nil || len(gaps) > 0 || end != until {
		t.Fatalf("%s: it ends at %d, want %d; gaps %v, %v", what, end, until, gaps, err)
	}
}
