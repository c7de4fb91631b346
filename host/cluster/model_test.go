package cluster_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"tether/ahp"
	"tether/host"
	"tether/host/cluster"
	"tether/host/terminals"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// bucket is one of NATS in memory: changes are compared and set, and all revisions of a
// value are kept.
type bucket struct {
	jetstream.KeyValue // what is not used

	mu       sync.Mutex
	all      []entry // by revision, from 1
	appended chan struct{}
	random   *rand.Rand
}

// entry is a revision of a value.
type entry struct {
	jetstream.KeyValueEntry // what is not used

	key      string
	data     []byte
	revision uint64
}

func (e entry) Key() string                     { return e.key }
func (e entry) Value() []byte                   { return e.data }
func (e entry) Revision() uint64                { return e.revision }
func (e entry) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }

func newBucket(seed uint64) *bucket {
	return &bucket{appended: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 0))}
}

// set appends a revision, if the value has the former one.
func (b *bucket) set(key string, data []byte, former uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := uint64(0)
	for _, e := range b.all {
		if e.key == key {
			last = e.revision
		}
	}
	if last != former {
		return 0, &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}
	}
	b.all = append(b.all, entry{key: key, data: data, revision: uint64(len(b.all) + 1)})
	close(b.appended)
	b.appended = make(chan struct{})
	return uint64(len(b.all)), nil
}

// draw is a random number below n.
func (b *bucket) draw(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.IntN(n)
}

// view is the bucket as a node reaches it.
type view struct {
	*bucket

	mu    sync.Mutex
	loses bool          // of what it asks and is answered, half
	late  time.Duration // of what it watches
}

func (v *view) is() (loses bool, late time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.loses, v.late
}

func (v *view) become(loses bool, late time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.loses, v.late = loses, late
}

// way is one way of a question or answer: it takes time, or what goes it is lost, which
// who waits learns by ctx; or, where the node stands still meanwhile, much more time than
// who waits has.
func (v *view) way(ctx context.Context) error {
	<-time.After(time.Duration(v.draw(200)) * time.Millisecond) // in a bubble
	switch loses, _ := v.is(); {
	case !loses || v.draw(2) == 0:
		return nil
	case v.draw(4) == 0:
		<-time.After(time.Duration(v.draw(60)) * time.Second)
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (v *view) Create(ctx context.Context, key string, data []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	return v.Update(ctx, key, data, 0)
}

func (v *view) Update(ctx context.Context, key string, data []byte, former uint64) (revision uint64, err error) {
	if err := v.way(ctx); err != nil {
		return 0, err
	}
	revision, err = v.set(key, data, former)
	if lost := v.way(ctx); lost != nil {
		return 0, lost
	}
	return revision, err
}

// Get answers with any revision, as a replica does that lags behind.
func (v *view) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := v.way(ctx); err != nil {
		return nil, err
	}
	v.bucket.mu.Lock()
	var have []entry
	for _, e := range v.all {
		if e.key == key {
			have = append(have, e)
		}
	}
	v.bucket.mu.Unlock()
	if err := v.way(ctx); err != nil {
		return nil, err
	}
	if len(have) == 0 {
		return nil, jetstream.ErrKeyNotFound
	}
	return have[max(0, len(have)-1-v.draw(3))], nil
}

// follower is a watch of a view.
type follower struct {
	updates chan jetstream.KeyValueEntry
	stop    context.CancelFunc
}

func (f *follower) Updates() <-chan jetstream.KeyValueEntry { return f.updates }
func (f *follower) Error() <-chan error                     { return nil }
func (f *follower) Stop() error                             { f.stop(); return nil }

func (v *view) WatchAll(ctx context.Context, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	ctx, stop := context.WithCancel(ctx)
	f := &follower{make(chan jetstream.KeyValueEntry), stop}
	go func() {
		send := func(e jetstream.KeyValueEntry) {
			select {
			case f.updates <- e:
			case <-ctx.Done():
			}
		}
		send(nil)
		for next := 0; ctx.Err() == nil; {
			v.bucket.mu.Lock()
			appended := v.appended
			due := v.all[next:]
			v.bucket.mu.Unlock()
			next += len(due)
			for _, e := range due {
				_, late := v.is()
				<-time.After(late + time.Duration(v.draw(200))*time.Millisecond)
				send(e)
			}
			select {
			case <-appended:
			case <-ctx.Done():
			}
		}
	}()
	return f, nil
}

// silentServer is a connection to a NATS server that says how long messages may be, and
// nothing more.
func silentServer(t *testing.T) *nats.Conn {
	t.Helper()
	listener := testkit.NewPipes()
	t.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, `INFO {"server_id":"s","version":"2.15.2","max_payload":1048576,"headers":true}`+"\r\n")
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "PING") {
				fmt.Fprint(c, "PONG\r\n")
			}
		}
	}()
	nc := must.Get(nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer{listener}), nats.NoReconnect()))(t)
	t.Cleanup(nc.Close)
	return nc
}

type dialer struct{ *testkit.Pipes }

func (d dialer) Dial(_, _ string) (net.Conn, error) { return d.Pipes.Dial() }

// leaseWorld is nodes over one bucket, and machines that come to them.
type leaseWorld struct {
	t      *testing.T
	bucket *bucket
	nodes  []*host.Host
	views  []*view
	peers  []*jsonrpc.Peer // of machines, former ones too
	owners map[string]string
	log    []string
	comes  sync.WaitGroup
}

const (
	modelNodes    = 3
	modelMachines = 2
)

func newLeaseWorld(t *testing.T, seed uint64) *leaseWorld {
	w := &leaseWorld{t: t, bucket: newBucket(seed), owners: map[string]string{}}
	for i := range modelNodes {
		v := &view{bucket: w.bucket}
		n := must.Get(cluster.Over(t.Context(), fmt.Sprint("node", i), silentServer(t), v))(t)
		h := host.New(host.Options{Nodes: n, SilenceTime: 24 * time.Hour})
		n.Serve(h)
		t.Cleanup(n.Close)
		t.Cleanup(h.Close)
		w.nodes, w.views = append(w.nodes, h), append(w.views, v)
	}
	return w
}

// come connects a machine to a node and lends a terminal, beside connections that it has
// left and nobody has closed. It does not wait.
func (w *leaseWorld) come(machine, node int) {
	near, far := testkit.Channels()
	w.comes.Go(func() { _ = w.nodes[node].ServeChannel(context.Background(), far) })
	p := jsonrpc.NewPeer(near, jsonrpc.Options{})
	w.peers = append(w.peers, p)
	w.comes.Go(func() { _ = p.Run(context.Background()) })
	w.comes.Go(func() {
		id := fmt.Sprint("machine", machine)
		var r ahp.InitializeResult
		err := p.Call(context.Background(), ahp.MethodInitialize, ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: id, Meta: ahp.NewClientMeta()}, &r)
		if err != nil {
			return // a later connection has taken its place
		}
		uri := "ahp-terminal:/" + id
		_ = p.Call(context.Background(), ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(id), ExecutionTarget: ahp.TargetClient}, nil) // likewise
	})
}

// check sees that no epoch has two owners, and returns the machines' owners of this
// moment, as each node sees itself.
func (w *leaseWorld) check() map[string][]string {
	w.t.Helper()
	now := map[string][]string{}
	for i, h := range w.nodes {
		for _, e := range h.Terminals().NodeChanges(w.t.Context(), 0, terminals.ChangesAtOnce).Entries {
			node, at := fmt.Sprint("node", i), fmt.Sprintf("%s in epoch %d", e.Client, e.Epoch)
			if was := w.owners[at]; was != "" && was != node {
				w.t.Errorf("%s has two owners, %s and %s; after %s", at, was, node, strings.Join(w.log, "; "))
			}
			w.owners[at] = node
			now[e.Client] = append(now[e.Client], fmt.Sprintf("%s %d", node, e.Epoch))
		}
	}
	return now
}

// leaseStep is one step of a schedule.
type leaseStep struct{ do, n int }

func (w *leaseWorld) step(s leaseStep) {
	node, machine := s.n%modelNodes, s.n/modelNodes%modelMachines
	v := w.views[node]
	switch s.do {
	case 0, 1, 2:
		w.log = append(w.log, fmt.Sprintf("machine%d comes to node%d", machine, node))
		w.come(machine, node)
	case 3:
		w.log = append(w.log, fmt.Sprintf("node%d loses half", node))
		v.become(true, 0)
	case 4:
		w.log = append(w.log, fmt.Sprintf("node%d sees changes late", node))
		v.become(false, 20*time.Second)
	case 5:
		w.log = append(w.log, fmt.Sprintf("node%d is well", node))
		v.become(false, 0)
	case 6:
		if len(w.peers) > 0 {
			w.log = append(w.log, "a connection ends")
			_ = w.peers[s.n%len(w.peers)].Close()
		}
	default:
		d := time.Duration(s.n) * time.Millisecond
		w.log = append(w.log, d.String())
		time.Sleep(d)
	}
	synctest.Wait()
	w.check()
}

// settle lets everything come to rest, and the machines come once more, as those do that
// are refused. Then each is at one node, which has the lease.
func (w *leaseWorld) settle() {
	for _, v := range w.views {
		v.become(false, 0)
	}
	rest := func() {
		for range 40 { // what was lost on its way ends, and late changes arrive
			time.Sleep(5 * time.Second)
			synctest.Wait()
			w.check()
		}
	}
	rest()
	for machine := range modelMachines {
		w.come(machine, w.bucket.draw(modelNodes))
	}
	rest()
	at := w.check()
	for machine := range modelMachines {
		id := fmt.Sprint("machine", machine)
		var lease string
		for _, e := range w.bucket.all {
			if strings.Contains(string(e.data), id) {
				lease = string(e.data)
			}
		}
		var node string
		var epoch int64
		if len(at[id]) == 1 {
			_, _ = fmt.Sscanf(at[id][0], "%s %d", &node, &epoch)
		}
		if !strings.Contains(lease, fmt.Sprintf(`"node":%q,"epoch":%d}`, node, epoch)) {
			w.t.Errorf("%s is owned by %v, and the lease is %s; after %s", id, at[id], lease, strings.Join(w.log, "; "))
		}
	}
	for _, p := range w.peers {
		_ = p.Close()
	}
	w.comes.Wait()
}

// Whatever happens, no two nodes own a machine's terminals in one epoch: the bucket may
// be slow, lose questions and answers, and tell of changes late, and machines may come to
// other nodes at any time and leave connections open.
func TestLeasesInAnyOrder(t *testing.T) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": fmt.Sprint(testkit.Load(60, 20)), "rapid.shrinktime": "10s"} {
		must.Do(t, flag.Set(name, value))
	}
	one := rapid.Custom(func(r *rapid.T) leaseStep {
		return leaseStep{rapid.IntRange(0, 9).Draw(r, "do"), rapid.IntRange(0, 8000).Draw(r, "n")}
	})
	for round := range testkit.Rounds(t, 1, 200) {
		must.Do(t, flag.Set("rapid.seed", fmt.Sprint(1+round)))
		rapid.Check(t, func(r *rapid.T) {
			seed, steps := rapid.Uint64().Draw(r, "seed"), rapid.SliceOfN(one, 1, 40).Draw(r, "steps")
			if !t.Run("", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newLeaseWorld(t, seed)
					for _, s := range steps {
						w.step(s)
					}
					w.settle()
				})
			}) {
				r.Fatal("two owners")
			}
		})
	}
}
