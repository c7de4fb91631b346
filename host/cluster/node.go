package cluster

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"tether/host"
	"tether/host/admission"
	"tether/internal/lazyregexp"
	"tether/internal/metrics"
	"tether/internal/retry"
	"tether/pairing"
)

const (
	// replicas is the number of the bucket's replicas. With three, no data is lost when
	// two servers are, and the cluster continues without one of them.
	replicas = 3
	// bucketVersion is the version of the bucket's contents.
	bucketVersion = "1"
	// oldestServer is the oldest version of NATS with which this package works.
	oldestServer = "2.11"
	// leastPayload is the least max_payload of a server, in bytes: one entry of a
	// terminal's log may have six times 128 KiB.
	leastPayload = 1 << 20
	// joinTime bounds each request to the servers when a node joins.
	joinTime  = 15 * time.Second
	pingEvery = 2 * time.Second
	// startTime is how long it may take until a server answers, and peersTime until that
	// server knows the others: they may have just been started.
	startTime = 3 * time.Second
	peersTime = 5 * time.Second
	// readyTime bounds the request that asks whether the servers are ready; it is then
	// repeated.
	readyTime = 500 * time.Millisecond
	// askTime bounds a change in the bucket. Within this time another server takes over
	// for a lost one.
	askTime = 5 * time.Second
)

// Options are the settings of a Node. Servers, Name and HostKey are required.
type Options struct {
	Servers string // URLs, divided by commas
	Creds   string // file with credentials; empty: none
	CA      string // file with certificates; empty: the system's
	Name    string // of the cluster: several may share the servers
	// HostKey is the public key of the host, which all nodes share. It is nil for a
	// command that is not a node.
	HostKey ed25519.PublicKey
	// RightsGrace is how long a node that does not reach NATS continues to serve the
	// connected clients, with the rights that it knows; 0 means a minute.
	RightsGrace time.Duration
	Logger      *zerolog.Logger // nil means silence
}

// JoinError says why a node does not join, for the person who starts it.
type JoinError struct{ Message, Hint string }

// Error returns the message.
func (e *JoinError) Error() string { return e.Message }

func refused(hint, format string, args ...any) error {
	return &JoinError{fmt.Sprintf(format, args...), hint}
}

var clusterName = lazyregexp.New(`^[A-Za-z0-9_-]{1,32}$`)

// Node is this process in the cluster. It is safe for concurrent use, and implements
// host.Nodes.
type Node struct {
	opts Options
	log  zerolog.Logger
	id   string
	nc   *nats.Conn
	kv   jetstream.KeyValue
	ctx  context.Context // until Close
	stop context.CancelFunc
	work sync.WaitGroup

	answers    map[string]Answerer // by subject, see Answer; set before Run
	unanswered atomic.Int64        // requests that were repeated

	mu      sync.Mutex
	kept    map[string]value                // the copy of the bucket
	host    *host.Host                      // nil before Run
	streams func(context.Context, net.Conn) // serves what other nodes open; set before Run or by it
	peers   map[string]*peer
	wanted  map[string]bool // terminals that are followed, by URI
	conns   map[string]*conn
	checked time.Time // when it was last certain that kept has all changes of the bucket
	rights  admission.Age
	leaving bool
	closed  bool
}

// value is a value of the bucket.
type value struct {
	data     []byte // nil: it was deleted
	revision uint64
}

// Join connects to the servers and opens the bucket; the first node makes it. A
// *JoinError has a remedy. The caller must Close the node.
func Join(ctx context.Context, o Options) (*Node, error) {
	if !clusterName().MatchString(o.Name) {
		return nil, refused("use 1 to 32 letters, digits, - and _", "--cluster: %.40q is no name", o.Name)
	}
	n := &Node{opts: o, log: zerolog.Nop(), id: strings.ToLower(rand.Text()[:10]), answers: map[string]Answerer{}, kept: map[string]value{}, peers: map[string]*peer{}, wanted: map[string]bool{}, conns: map[string]*conn{}}
	if o.Logger != nil {
		n.log = o.Logger.With().Str("node", n.id).Logger()
	}
	if err := n.connect(ctx); err != nil {
		return nil, err
	}
	n.ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.open(ctx); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// ID names the node in logs, and to the others. Each start of a process is another node.
func (n *Node) ID() string { return n.id }

// connect opens the connection, which then reconnects by itself.
func (n *Node) connect(ctx context.Context) error {
	opts := []nats.Option{nats.Name("tether-host " + n.id), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(joinTime),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), // a silent connection counts as dead within six seconds
		nats.NoCallbacksAfterClientClose(), // Close must not be logged as a lost connection
		nats.ReconnectBufSize(-1),          // requests without a connection fail at once, and are repeated
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			n.log.Warn().Err(err).Msg("the connection to NATS is lost")
			n.endConns("", errConnOver)
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			n.log.Warn().Str("server", nc.ConnectedUrlRedacted()).Msg("connected to NATS again")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { n.log.Warn().Err(err).Msg("NATS") }),
	}
	if n.opts.Creds != "" {
		opts = append(opts, nats.UserCredentials(n.opts.Creds))
	}
	if n.opts.CA != "" {
		opts = append(opts, nats.RootCAs(n.opts.CA))
	}
	nc, err := nats.Connect(n.opts.Servers, opts...)
	for began := time.Now(); nobodyThere(err) && time.Since(began) < startTime; { // the servers may have just been started
		retry.Wait(ctx, repeatAfter)
		nc, err = nats.Connect(n.opts.Servers, opts...)
	}
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization"):
		return refused("give the right file with --nats-creds", "the NATS servers refuse the credentials")
	case nobodyThere(err):
		return refused("check that the servers run and --nats names them", "no NATS server answers at %s", n.opts.Servers)
	case err != nil:
		return refused("check --nats, --nats-creds and --nats-ca", "NATS: %v", err)
	}
	n.nc = nc
	version := nc.ConnectedServerVersion()
	switch {
	case older(version, oldestServer):
		return n.leave(refused("upgrade it", "the NATS server at %s has version %s, %s or newer is needed", nc.ConnectedUrlRedacted(), version, oldestServer))
	case nc.MaxPayload() < leastPayload:
		return n.leave(refused("set max_payload there", "the NATS server at %s takes messages of %d bytes, %d are needed", nc.ConnectedUrlRedacted(), nc.MaxPayload(), leastPayload))
	}
	return nil
}

// nobodyThere reports whether no server accepted a connection. On Windows the NATS client
// returns the system's error for that.
func nobodyThere(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, nats.ErrNoServers) || ok && dial.Op == "dial"
}

func (n *Node) leave(err error) error {
	n.nc.Close()
	return err
}

// older reports whether a version such as 2.10.4 is older than another one.
func older(version, than string) bool {
	var a, b [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &a[0], &a[1]) // an invalid version counts as an old one
	_, _ = fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) < 0
}

// open opens the bucket and reads it.
func (n *Node) open(ctx context.Context) error {
	js, err := jetstream.New(n.nc)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	if err := n.ready(bounded, js); err != nil {
		return err
	}
	if n.kv, err = n.bucket(bounded, js); err != nil {
		return err
	}
	if err := n.check(bounded, "version", bucketVersion, func(has string) error {
		return refused("use the release that wrote it, or another --cluster", "the bucket of the cluster %s has version %s, this program knows version %s", n.opts.Name, has, bucketVersion)
	}); err != nil {
		return err
	}
	n.opts.RightsGrace = cmp.Or(n.opts.RightsGrace, defaultGrace)
	if n.opts.HostKey != nil {
		if err := n.check(bounded, "hostkey", pairing.Fingerprint(n.opts.HostKey), func(has string) error {
			return refused("copy host-key.pem from another node to beside this one's tokens",
				"this node has another host key than the cluster %s, whose is %s", n.opts.Name, has)
		}); err != nil {
			return err
		}
	}
	if err := n.watch(bounded); err != nil || n.opts.HostKey == nil {
		return err
	}
	n.checked = time.Now()
	n.spawn(n.checkRights)
	n.spawn(n.judgeRights)
	return nil
}

// ready waits until the servers have elected a leader, which takes some seconds after
// their start.
func (n *Node) ready(ctx context.Context, js jetstream.JetStream) error {
	for {
		asking, cancel := context.WithTimeout(ctx, readyTime)
		_, err := js.AccountInfo(asking)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
			return refused("switch it on: nats-server -js, or jetstream { … } in its configuration", "the NATS servers, or this account there, have no JetStream")
		case ctx.Err() != nil:
			return refused("start a majority of them, and see their logs", "the NATS servers at %s do not agree on who leads: %v", n.opts.Servers, err)
		}
	}
}

// bucket opens the bucket, or makes it.
func (n *Node) bucket(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	name := "tether-" + n.opts.Name
	kv, err := js.KeyValue(ctx, name)
	for began := time.Now(); errors.Is(err, jetstream.ErrBucketNotFound) || noPeers(err) && time.Since(began) < peersTime; { // as in connect
		if noPeers(err) {
			retry.Wait(ctx, repeatAfter)
		}
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Description: "tether-host", Replicas: replicas})
		if errors.Is(err, jetstream.ErrBucketExists) { // another node was quicker
			kv, err = js.KeyValue(ctx, name)
		}
	}
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	few := func(why string) error {
		return refused("run three servers with JetStream as one cluster, and name them all with --nats", "the bucket of the cluster %s needs %d replicas: %s", n.opts.Name, replicas, why)
	}
	switch {
	case isAPI && (strings.Contains(api.Description, "replicas") || strings.Contains(api.Description, "peers") || strings.Contains(api.Description, "resources")):
		return nil, few(api.Description)
	case err != nil:
		return nil, refused("see the log of the servers; the account needs the rights that docs/HOST.md names", "the bucket of the cluster %s cannot be opened: %v", n.opts.Name, err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, refused("see the log of the servers", "the bucket of the cluster %s cannot be read: %v", n.opts.Name, err)
	}
	if has := status.Config().Replicas; has < replicas {
		return nil, few(fmt.Sprintf("it has %d", has))
	}
	return kv, nil
}

// noPeers reports whether a server does not know enough others to keep replicas.
func noPeers(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && strings.Contains(api.Description, "no suitable peers")
}

// check checks that a key has the value that it must have for all nodes. The first node
// sets it.
func (n *Node) check(ctx context.Context, key, want string, differs func(has string) error) error {
	if n.opts.HostKey == nil && key == "version" {
		has, err := n.kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return refused("start a node first: tether-host --nats URLS", "there is no cluster %s at these NATS servers", n.opts.Name)
		}
		if err == nil && string(has.Value()) != want {
			return differs(string(has.Value()))
		}
		return err
	}
	for {
		_, err := n.kv.Create(ctx, key, []byte(want))
		if err == nil {
			return nil
		}
		if !conflicts(err) {
			return refused("see the log of the servers", "the bucket of the cluster %s cannot be written: %v", n.opts.Name, err)
		}
		has, err := n.kv.Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound): // the replica that answered does not have it yet
			continue
		case err != nil:
			return refused("see the log of the servers", "the bucket of the cluster %s cannot be read: %v", n.opts.Name, err)
		case string(has.Value()) != want:
			return differs(string(has.Value()))
		}
		return nil
	}
}

// conflicts reports whether a change was refused because another change came first.
func conflicts(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// spawn runs do on a goroutine for which Close waits; after Close it does nothing.
func (n *Node) spawn(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spawnLocked(do)
}

func (n *Node) spawnLocked(do func()) {
	if !n.closed {
		n.work.Go(do)
	}
}

// Close leaves the cluster and returns when nothing of the node runs any more.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	if n.stop != nil {
		n.stop()
	}
	n.work.Wait()
	n.nc.Close()
}

// Metrics appends the node's metrics to those of its host.
func (n *Node) Metrics(m *metrics.Text) {
	n.mu.Lock()
	peers := len(n.peers)
	n.mu.Unlock()
	s := n.nc.Stats()
	m.Gauge("tether_node_nats_up", "Whether NATS is reached.", metrics.Yes(n.Reached()))
	m.Gauge("tether_node_peers", "Other nodes that are heard.", float64(peers))
	m.Counter("tether_node_sent_bytes_total", "Bytes of messages to other nodes, and to the bucket.", float64(s.OutBytes))
	m.Counter("tether_node_received_bytes_total", "Bytes of messages of other nodes, and of the bucket.", float64(s.InBytes))
	m.Counter("tether_node_unanswered_total", "Requests to other nodes that were repeated, because no answer came in time.", float64(n.unanswered.Load()))
}
