package uplink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/jsonspan"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
	"tether/platform/pty"
)

// road is a laptop and a real host with WebSockets between them, through a proxy that
// breaks them. A writer floods a lent terminal and an observer at the host, behind no
// proxy, compares received and written output.
type road struct {
	t      *testing.T
	ctx    context.Context
	pool   *term.Pool
	link   *uplink.Link
	host   *host.Host
	proxy  *testkit.Proxy
	calm   atomic.Bool // new connections have no faults
	random *rand.Rand  // of the writer
	lossy  bool        // gaps may come; set before the terminal is lent

	mu    sync.Mutex
	moved chan struct{} // closed and replaced when seen has changed
	seen  testkit.FloodCheck
	wrong error
	exits []int64 // exit codes that the observer saw
	gaps  int     // that it was told of
	lost  int64   // bytes in them

	child    *testkit.Child
	flood    testkit.Flood
	commands int // written so far
}

// roadLog is the bound of a terminal's log. The writer stays within half of it, so that
// nothing may be lost.
const roadLog = 256 << 10

// newRoad connects both over loopback, or in memory for a bubble.
func newRoad(t *testing.T, seed uint64, inMemory bool, change func(*uplink.Options), fate func(n int) testkit.Fault) *road {
	return newRoadTo(t, host.Options{}, seed, inMemory, change, fate)
}

// newRoadTo is newRoad to a host with some options of its own.
func newRoadTo(t *testing.T, at host.Options, seed uint64, inMemory bool, change func(*uplink.Options), fate func(n int) testkit.Fault) *road {
	ctx, cancel := context.WithCancel(context.Background())
	r := &road{t: t, ctx: ctx, moved: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1)), child: testkit.NewChild()}
	// The observer is not to lag behind the whole log, and everything is compared at the
	// end.
	at.Grace, at.LogBytes, at.LogCount, at.Scrollback = time.Hour, 8<<20, 1<<20, 512<<10
	r.host = host.New(at)
	server := &http.Server{Handler: r.host}
	listener := listen(t, inMemory)
	var work sync.WaitGroup
	work.Go(func() { server.Serve(listener) })

	r.proxy = testkit.NewProxy(t, listener.dial, func(n int) testkit.Fault {
		if r.calm.Load() {
			return testkit.Fault{}
		}
		return fate(n)
	})
	r.pool = term.NewPool(term.Options{LogBytes: roadLog, Start: func(term.ID, pty.Command) (term.PTY, error) { return r.child, nil }})
	o := uplink.Options{Name: "lab", ClientID: "laptop", Terminals: r.pool.As(term.Host("lab"))}
	if inMemory {
		o.Connect = r.connectInMemory
	} else {
		o.Endpoint = client.Endpoint{URL: "ws://" + r.proxy.Listen(t)}
	}
	if change != nil {
		change(&o)
	}
	r.link = uplink.New(o)
	work.Go(func() { r.link.Run(ctx) })
	t.Cleanup(func() {
		r.pool.Close(context.Background())
		cancel()
		r.proxy.Close()
		r.host.Close()
		server.Close()
		work.Wait()
	})
	return r
}

func (r *road) connectInMemory(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	ch, err := wsconn.Dial(ctx, "ws://localhost/", wsconn.Options{ReadLimit: client.DefaultReadLimit,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return r.proxy.Dial() }})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrUnreachable, err)
	}
	return client.ConnectChannel(ctx, ch, o)
}

// pairListener is a listener on loopback, or in memory.
type pairListener struct {
	net.Listener
	conns chan net.Conn // nil on loopback
	done  chan struct{}
	once  sync.Once
}

func listen(t *testing.T, inMemory bool) *pairListener {
	l := &pairListener{done: make(chan struct{})}
	if inMemory {
		l.conns = make(chan net.Conn)
		return l
	}
	var err error
	if l.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *pairListener) dial() (net.Conn, error) {
	if l.conns == nil {
		return net.Dial("tcp", l.Addr().String())
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pairListener) Accept() (net.Conn, error) {
	if l.conns == nil {
		return l.Listener.Accept()
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pairListener) Close() error {
	l.once.Do(func() { close(l.done) })
	if l.conns == nil {
		return l.Listener.Close()
	}
	return nil
}

func (l *pairListener) Addr() net.Addr {
	if l.conns == nil {
		return l.Listener.Addr()
	}
	return &net.UnixAddr{Name: "pipe", Net: "unix"}
}

// watch observes the one terminal that the host has, from its begin.
func (r *road) watch(find func() (uri string)) {
	r.t.Helper()
	near, far := testkit.Channels()
	go r.host.ServeChannel(r.ctx, far)
	uri := find()
	conn := must.Get(client.ConnectChannel(r.ctx, near, client.Options{ClientID: "viewer", OnEnvelope: func(v ahp.EnvelopeView) {
		if v.Channel == uri && !v.Rejected {
			r.see(v)
		}
	}}))(r.t)
	r.t.Cleanup(conn.Close)
	must.Get(conn.Subscribe(r.ctx, uri))(r.t)
}

// see takes the observer's messages.
func (r *road) see(v ahp.EnvelopeView) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch v.Kind {
	case ahp.ActionTerminalData:
		var a struct {
			Meta map[string]int64 `json:"_meta"`
		}
		text, err := jsonspan.AppendUnquote(nil, v.Data)
		if err == nil {
			err = json.Unmarshal(v.Action, &a)
		}
		switch gap := a.Meta[ahp.MissingKey]; {
		case gap > 0 && r.lossy:
			r.gaps, r.lost = r.gaps+1, r.lost+gap
			r.seen.Skip(gap)
		case err == nil:
			_, err = r.seen.Write(text)
		}
		r.wrong = errors.Join(r.wrong, err)
	case ahp.ActionTerminalExited:
		a, _ := ahp.DecodeAction(v.Action)
		if code := a.(ahp.TerminalExited).ExitCode; code != nil {
			r.exits = append(r.exits, *code)
		}
	}
	close(r.moved)
	r.moved = make(chan struct{})
}

// await waits until cond holds for the observer's output, or an error occurs, or ctx
// ends.
func (r *road) await(ctx context.Context, cond func() bool) error {
	for {
		r.mu.Lock()
		ok, wrong, moved, came := cond(), r.wrong, r.moved, r.seen.Offset()
		r.mu.Unlock()
		if ok || wrong != nil {
			return wrong
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d bytes arrived, link %+v", ctx.Err(), came, r.flood.Offset(), r.link.Status())
		}
	}
}

// write has the child print about n bytes: commands with lines of the flood as their
// output, in reads of any size.
func (r *road) write(ctx context.Context, n int64) error {
	for end := r.flood.Offset() + n; r.flood.Offset() < end; {
		err := r.await(ctx, func() bool { return r.flood.Offset()-r.seen.Offset() < roadLog/2 })
		if err != nil {
			return err
		}
		r.commands++
		out := fmt.Sprintf("\x1b]633;E;make %d;n0\a\x1b]633;C;n0\a", r.commands)
		for range 5 + r.random.IntN(60) { // marks count against the bound of the log too
			out += r.flood.Next(1 << 20)
		}
		out += fmt.Sprintf("\x1b]633;D;%d;n0\a", r.commands%256)
		for out != "" {
			k := min(len(out), 1+r.random.IntN(3000))
			r.child.Print(out[:k])
			out = out[k:]
		}
	}
	return nil
}

// only is the one terminal at the host.
func (r *road) only() (uri string, state ahp.TerminalState, err error) {
	near, far := testkit.Channels()
	go r.host.ServeChannel(r.ctx, far)
	conn, err := client.ConnectChannel(r.ctx, near, client.Options{ClientID: "looker", Subscriptions: []string{ahp.RootURI}})
	if err != nil {
		return "", state, err
	}
	defer conn.Close()
	var root ahp.RootState
	if err := json.Unmarshal(conn.Result().Snapshots[0].State, &root); err != nil || len(root.Terminals) != 1 {
		return "", state, fmt.Errorf("%d terminals at the host: %w", len(root.Terminals), err)
	}
	uri = root.Terminals[0].Resource
	snap, err := conn.Subscribe(r.ctx, uri)
	if err == nil {
		err = json.Unmarshal(snap.Snapshot.State, &state)
	}
	return uri, state, err
}

// lend starts the terminal.
func (r *road) lend() {
	r.t.Helper()
	must.Get(r.pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), Nonce: "n0", LendTo: []string{"lab"}}))(r.t)
}

// drive floods until so many connections have been broken, then lets everything arrive
// and compares.
func (r *road) drive(ctx context.Context, faults int) {
	t := r.t
	t.Helper()
	r.lend()
	r.watch(r.announced)
	for r.proxy.Faults() < faults {
		must.Do(t, r.write(ctx, 8<<10))
	}
	r.calm.Store(true)
	r.proxy.Cut()
	r.child.End(3)
	must.Do(t, r.await(ctx, func() bool { return len(r.exits) > 0 }))
	if got := r.seen.Offset(); got != r.flood.Offset() || !slices.Equal(r.exits, []int64{3}) {
		t.Errorf("%d of %d bytes had arrived at the exit, exits %v; want all and one, 3", got, r.flood.Offset(), r.exits)
	}
	r.compare()
	t.Logf("%d bytes, %d commands, faults: %v", r.flood.Offset(), r.commands, r.proxy.Struck())
}

// announced waits for the terminal to be at the host.
func (r *road) announced() (uri string) {
	testkit.Eventually(r.t, 10*time.Minute, "the terminal is at the host", func() bool {
		r.link.Nudge()
		var err error
		uri, _, err = r.only()
		return err == nil
	})
	return uri
}

// compare checks the state at the host: the text is the end of the written output, and
// contains every command in it once and whole.
func (r *road) compare() {
	r.t.Helper()
	_, state, err := r.only()
	must.Do(r.t, err)
	kept := state.Text()
	var all testkit.Flood
	all.Skip(r.flood.Offset() - int64(len(kept)))
	for rest := kept; rest != ""; {
		want := all.Next(len(rest))
		if !strings.HasPrefix(rest, want) {
			r.t.Fatalf("the host keeps %.60q where the child wrote %.60q", rest, want)
		}
		rest = rest[len(want):]
	}
	next := 0
	for i, p := range state.Content {
		if p.Type != ahp.PartCommand {
			if i > 0 {
				r.t.Errorf("%d bytes belong to no command: %.60q", len(p.Text()), p.Text())
			}
			continue
		}
		var n int
		fmt.Sscanf(p.CommandLine, "make %d", &n)
		if next != 0 && n != next || !p.IsComplete || p.ExitCode == nil || *p.ExitCode != int64(n%256) {
			r.t.Errorf("command %d, %+v, follows %d", n, p, next-1)
		}
		next = n + 1
	}
	if next != r.commands+1 || len(kept) == 0 {
		r.t.Errorf("%d commands were run, the last at the host is %d; it keeps %d bytes", r.commands, next-1, len(kept))
	}
}

// A network that has gone says nothing. The link finds out by two heartbeats at most and
// is back at once when there is a way again.
func TestASilentNetworkIsNoticedInTime(t *testing.T) {
	for _, kind := range []testkit.FaultKind{testkit.BlackHole, testkit.HalfOpenNear} {
		synctest.Test(t, func(t *testing.T) {
			fate := func(n int) testkit.Fault {
				if n == 0 {
					return testkit.Fault{Kind: kind, After: 20 << 10}
				}
				return testkit.Fault{}
			}
			r := newRoad(t, 1, true, nil, fate)
			r.lend()
			r.watch(r.announced)
			must.Do(t, r.write(t.Context(), 64<<10))
			for r.proxy.Faults() == 0 {
				time.Sleep(time.Millisecond)
			}
			began := time.Now()
			must.Do(t, r.await(t.Context(), func() bool { return r.seen.Offset() == r.flood.Offset() }))
			if took := time.Since(began); took > 31*time.Second {
				t.Errorf("%v: everything had arrived after %v, want two heartbeats of 15 s and the first back-off", kind, took)
			}
		})
	}
}

func TestNothingIsLostOverBrokenConnections(t *testing.T) {
	each := testkit.Load(50, 25) // connections broken in a round
	for round := range testkit.Rounds(t, testkit.Load(2, 1), 40) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			newRoad(t, uint64(round), true, nil, testkit.SeededFaults(uint64(round), 256<<10)).drive(ctx, each)
		})
	}
}

// A child that cares for nobody prints more than the log holds while the link is down.
// All that is missing is counted, at its place.
func TestGapsOverBrokenConnectionsAreExact(t *testing.T) {
	each := testkit.Load(30, 15)
	for round := range testkit.Rounds(t, 1, 40) {
		synctest.Test(t, func(t *testing.T) {
			seed := uint64(5000 + round)
			quick := func(o *uplink.Options) { o.Heartbeat, o.DialTimeout = 400*time.Millisecond, time.Second }
			r := newRoad(t, seed, true, quick, testkit.SeededFaults(seed, 256<<10))
			r.lossy = true
			r.lend()
			r.watch(r.announced)
			for r.proxy.Faults() < each {
				for n := r.flood.Offset() + 30<<10; r.flood.Offset() < n; {
					r.child.Print(r.flood.Next(1 + r.random.IntN(3000)))
				}
				time.Sleep(time.Duration(r.random.IntN(100)) * time.Millisecond)
				r.link.Nudge()
			}
			r.calm.Store(true)
			r.proxy.Cut()
			r.child.End(3)
			must.Do(t, r.await(t.Context(), func() bool { return len(r.exits) > 0 }))
			_, state, err := r.only()
			if err != nil || r.seen.Offset() != r.flood.Offset() || state.Meta.Missing != r.lost || r.gaps == 0 || !slices.Equal(r.exits, []int64{3}) {
				t.Errorf("%v; %d of %d bytes accounted for, %d gaps of %d bytes, the state says %d; exits %v",
					err, r.seen.Offset(), r.flood.Offset(), r.gaps, r.lost, state.Meta.Missing, r.exits)
			}
			t.Logf("%d bytes, %d of them in %d gaps, faults: %v", r.flood.Offset(), r.lost, r.gaps, r.proxy.Struck())
		})
	}
}

func TestNothingIsLostOverBrokenSockets(t *testing.T) {
	each := testkit.Load(50, 25) // connections broken in a round
	for round := range testkit.Rounds(t, 1, 20) {
		t.Run("", func(t *testing.T) {
			testkit.Leaks(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
			defer cancel()
			seed := uint64(1000 + round)
			quick := func(o *uplink.Options) { o.Heartbeat, o.DialTimeout = 150*time.Millisecond, 500*time.Millisecond }
			r := newRoad(t, seed, false, quick, testkit.SeededFaults(seed, 256<<10))
			hasty := make(chan struct{})
			go func() { // back-off would take most of the time
				defer close(hasty)
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for ctx.Err() == nil {
					r.link.Nudge()
					select {
					case <-tick.C:
					case <-ctx.Done():
					}
				}
			}()
			r.drive(ctx, each)
			cancel()
			<-hasty
		})
	}
}
