package uplink_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/platform/pty"
)

// world is a laptop and a host in one bubble, joined by pipes.
type world struct {
	t    *testing.T
	ctx  context.Context
	pool *term.Pool
	opts uplink.Options // of links
	link *uplink.Link
	// endLink ends the link and waits for that.
	endLink func()

	mu       sync.Mutex
	child    *testkit.Child                        // of the last spawn
	wrap     func(*testkit.Child) term.PTY         // the terminal's view of it, nil = itself
	host     *host.Host                            // nil while it is down
	wires    []jsonrpc.Channel                     // of the link, open ones last
	wrapWire func(jsonrpc.Channel) jsonrpc.Channel // the link's view of one, nil = itself
	down     bool
	serve    func(context.Context, jsonrpc.Channel) // instead of host, for fakes
}

// newWorld starts a link called "lab" to a host with these options.
func newWorld(t *testing.T, ho host.Options, change func(*uplink.Options)) *world {
	return newWorldOf(t, ho, term.Options{}, change)
}

// newWorldOf is newWorld with options of the pool.
func newWorldOf(t *testing.T, ho host.Options, to term.Options, change func(*uplink.Options)) *world {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{t: t, ctx: ctx, host: host.New(ho)}
	to.LogBytes, to.KeepExited, to.KeepFor = 64<<10, 1000, 100*time.Hour
	to.Start = func(term.ID, pty.Command) (term.PTY, error) {
		c := testkit.NewChild()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.child = c
		if w.wrap != nil {
			return w.wrap(c), nil
		}
		return c, nil
	}
	w.pool = term.NewPool(to)
	o := uplink.Options{
		Name: "lab", Endpoint: client.Endpoint{URL: "ws://lab"}, ClientID: "laptop",
		Terminals: w.pool.As(term.Host("lab")), Connect: w.connect,
	}
	if change != nil {
		change(&o)
	}
	w.opts = o
	w.newLink()
	t.Cleanup(func() {
		w.pool.Close(context.Background())
		cancel()
		w.endLink()
		w.stopHost()
		synctest.Wait()
	})
	return w
}

// newLink starts a link, as another daemon would that has the same terminals.
func (w *world) newLink() {
	ctx, cancel := context.WithCancel(w.ctx)
	link, ended := uplink.New(w.opts), make(chan struct{})
	go func() { defer close(ended); link.Run(ctx) }()
	w.link, w.endLink = link, func() { cancel(); <-ended }
}

var errDown = fmt.Errorf("%w: no route to host", client.ErrUnreachable)

// dial opens a pipe to the host.
func (w *world) dial() (jsonrpc.Channel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down || w.host == nil && w.serve == nil {
		return nil, errDown
	}
	near, far := testkit.Channels()
	if w.serve != nil {
		go w.serve(w.ctx, far)
	} else {
		go w.host.ServeChannel(context.Background(), far)
	}
	return near, nil
}

// connect is the link's way to the host.
func (w *world) connect(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	ch, err := w.dial()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	if w.wrapWire != nil {
		ch = w.wrapWire(ch)
	}
	w.wires = append(w.wires, ch)
	w.mu.Unlock()
	return client.ConnectChannel(ctx, ch, o)
}

// cut breaks the link's connection; down keeps new ones from being made.
func (w *world) cut(down bool) {
	w.mu.Lock()
	w.down = down
	wires := w.wires
	w.wires = nil
	w.mu.Unlock()
	for _, ch := range wires {
		ch.Close()
	}
	synctest.Wait()
}

// mend lets the link reach the host again.
func (w *world) mend() { locked(&w.mu, func() { w.down = false }) }

// prints has a child print, and returns when everybody has done what follows from that.
func prints(child *testkit.Child, text string) {
	child.Print(text)
	synctest.Wait()
}

func locked(mu *sync.Mutex, do func()) {
	mu.Lock()
	defer mu.Unlock()
	do()
}

func (w *world) stopHost() {
	w.mu.Lock()
	h := w.host
	w.host = nil
	w.mu.Unlock()
	if h != nil {
		h.Close()
	}
}

// restartHost replaces the host by one that has forgotten everything.
func (w *world) restartHost(o host.Options) {
	w.stopHost()
	locked(&w.mu, func() { w.host = host.New(o) })
}

// spawn starts a terminal lent to the host.
func (w *world) spawn(s term.Spec) (term.Handle, *testkit.Child) {
	w.t.Helper()
	s.Command, s.Cwd = []string{"fake"}, cmp.Or(s.Cwd, testkit.Abs("/src"))
	if !s.Private {
		s.LendTo = append(s.LendTo, "lab")
	}
	h := must.Get(w.pool.As(term.User).Spawn(s))(w.t)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return h, w.child
}

// observe returns the catalogue and the states as an observer at the host sees them.
func (w *world) observe() map[string]ahp.TerminalState {
	w.t.Helper()
	ch := must.Get(w.dial())(w.t)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "viewer", Subscriptions: []string{ahp.RootURI}}))(w.t)
	defer c.Close()
	var root ahp.RootState
	must.Do(w.t, json.Unmarshal(c.Result().Snapshots[0].State, &root))
	states := map[string]ahp.TerminalState{}
	for _, i := range root.Terminals {
		r := must.Get(c.Subscribe(w.ctx, i.Resource))(w.t)
		var s ahp.TerminalState
		must.Do(w.t, json.Unmarshal(r.Snapshot.State, &s))
		states[i.Resource] = s
	}
	return states
}

// only is the state of the one terminal the host has.
func (w *world) only() ahp.TerminalState {
	w.t.Helper()
	states := w.observe()
	if len(states) != 1 {
		w.t.Fatalf("the host has %d terminals, want 1", len(states))
	}
	for _, s := range states {
		return s
	}
	panic("unreachable")
}

// text is the stream of a state.
func text(s ahp.TerminalState) string {
	var b strings.Builder
	for _, p := range s.Content {
		b.WriteString(p.Text())
	}
	return b.String()
}

// online waits, in fake time, until the link is up.
func (w *world) online() {
	w.t.Helper()
	for range 600 {
		synctest.Wait()
		if w.link.Status().State == uplink.StateOnline {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("the link is %+v after a minute", w.link.Status())
}

// observeWhileDown looks at the host although the link cannot reach it.
func (w *world) observeWhileDown() map[string]ahp.TerminalState {
	locked(&w.mu, func() { w.down = false })
	defer func() {
		locked(&w.mu, func() { w.down = true })
	}()
	return w.observe()
}

// dispose makes an observer at the host dispose of every terminal.
func (w *world) dispose() {
	w.t.Helper()
	ch := must.Get(w.dial())(w.t)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "somebody"}))(w.t)
	defer c.Close()
	for uri := range w.observe() {
		must.Do(w.t, c.DisposeTerminal(w.ctx, uri))
	}
}

// disposeOf makes an observer at the host dispose of one terminal.
func (w *world) disposeOf(uri string) {
	w.t.Helper()
	ch := must.Get(w.dial())(w.t)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "somebody"}))(w.t)
	defer c.Close()
	must.Do(w.t, c.DisposeTerminal(w.ctx, uri))
}
