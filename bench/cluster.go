package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"tether/ahp"
	"tether/ahp/client"
	"tether/platform/dirs"
)

// Floors of a host of several nodes.
const (
	floorNodeKey    = 1.0  // ms that another node adds to the p50 of a key
	floorNodeKeyTop = 2.0  // what another node adds to the p99 of a key, to the p99 of a bare publish and subscribe
	floorNodeFlood  = 0.45 // rate at another node, to the rate at the machine's node
	floorNodeBytes  = 1.1  // bytes between nodes, to one encoded stream
	floorNodesBack  = 10.0 // s until all terminals of a killed node are listed again
)

const (
	clusterNodes = 3
	clusterToken = "bench-only_7Qh2mXw9Zk4vR1tB6nE3"
	natsServer   = "bin/tools/nats-server"
)

// clusterRig is a cluster of NATS servers and a host with as many nodes; node i is
// connected to server i. The caller must close it.
type clusterRig struct {
	home    string
	servers []*exec.Cmd
	urls    []string // of the servers
	monitor []string // HOST:PORT of the servers' monitoring over HTTP
	nodes   []*rig
}

// newClusterRig starts servers and nodes. scripts/nats-server.sh installs nats-server.
func newClusterRig(ctx context.Context, p programs) (_ *clusterRig, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	c := &clusterRig{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.home, err = os.MkdirTemp(shortTemp(), "tc"); err != nil {
		return nil, err
	}
	if err := c.startServers(); err != nil {
		return nil, err
	}
	token := filepath.Join(c.home, "own.token")
	if err := os.WriteFile(token, []byte(clusterToken), 0o600); err != nil {
		return nil, err
	}
	argv := slices.DeleteFunc(slices.Clone(p.host), func(arg string) bool { return arg == "--without-token" })
	for i := range clusterNodes {
		n, err := poll(ctx, func() (*rig, error) {
			n, err := c.startNode(ctx, i, append(slices.Clip(argv), "--token-file", token, "--nats", c.urls[i]))
			if err != nil { // the servers may not have elected a leader yet
				return nil, errors.Join(errNotYet, err)
			}
			return n, nil
		})
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// startNode starts node i with the host key of node 0, which must be there.
func (c *clusterRig) startNode(ctx context.Context, i int, argv []string) (*rig, error) {
	dir := filepath.Join(c.home, fmt.Sprint("node", i))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if i > 0 {
		key, err := os.ReadFile(filepath.Join(c.home, "node0", "host-key.pem"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "host-key.pem"), key, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	n := &rig{home: dir, env: append(os.Environ(), dirs.HomeVar+"="+dir), host: client.Endpoint{Token: clusterToken}}
	if err := n.startHost(ctx, programs{host: append(argv, "--tokens", filepath.Join(dir, "tokens.json"))}); err != nil {
		n.close()
		return nil, n.said.explain(err)
	}
	return n, nil
}

// startServers starts the NATS servers, as one cluster.
func (c *clusterRig) startServers() error {
	var routes, own []string
	for range clusterNodes {
		var ports [3]string
		for i := range ports {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			ports[i] = l.Addr().String()
			l.Close()
		}
		c.urls, c.monitor = append(c.urls, "nats://"+ports[0]), append(c.monitor, ports[1])
		own, routes = append(own, ports[0]), append(routes, "nats://"+ports[2])
	}
	for i := range clusterNodes {
		_, port, _ := net.SplitHostPort(own[i])
		_, monitor, _ := net.SplitHostPort(c.monitor[i])
		s := exec.Command(natsServer, "-a", "127.0.0.1", "-p", port, "-m", monitor, "-n", fmt.Sprint("n", i), "-js", "-sd", filepath.Join(c.home, fmt.Sprint("nats", i)),
			"--no_advertise", "--cluster_name", "bench", "--cluster", routes[i], "--routes", strings.Join(routes, ","))
		if err := s.Start(); err != nil {
			return fmt.Errorf("%w; scripts/nats-server.sh installs it", err)
		}
		c.servers = append(c.servers, s)
	}
	return nil
}

func (c *clusterRig) close() {
	for _, n := range c.nodes {
		n.close()
	}
	for _, s := range c.servers {
		_ = s.Process.Kill() // it may have ended
		_ = s.Wait()         // likewise
	}
	_ = os.RemoveAll(c.home)
}

// sent returns the number of bytes that a node has sent to its NATS server.
func (c *clusterRig) sent(ctx context.Context, node int) (n int64, err error) {
	var all struct {
		Connections []struct {
			Name string `json:"name"`
			In   int64  `json:"in_bytes"`
		} `json:"connections"`
	}
	resp, err := get(ctx, "http://"+c.monitor[node]+"/connz")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return 0, err
	}
	for _, one := range all.Connections {
		if strings.HasPrefix(one.Name, "tether-host") {
			n += one.In
		}
	}
	return n, nil
}

func get(ctx context.Context, url string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	q.Close = true
	return http.DefaultClient.Do(q)
}

// list returns the list of terminals, as JSON, that a node sends to its page.
func (c *clusterRig) list(ctx context.Context, node int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := get(ctx, strings.Replace(c.nodes[node].host.URL, "ws", "http", 1)+"/events?tkn="+clusterToken)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadString('\n')
		if list, ok := strings.CutPrefix(line, "data:"); ok || err != nil {
			return list, err
		}
	}
}

// lists waits until ok accepts the list of a node.
func (c *clusterRig) lists(ctx context.Context, node int, ok func(list string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		list, err := c.list(ctx, node)
		if err != nil || ok(list) {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("node %d does not list what it should: %w", node, err)
		}
	}
}

// lendHolding makes machine n lend a terminal whose child waits for its readers.
func (m *fakeMachine) lendHolding(ctx context.Context, n int) error {
	uri := terminalURI(n, 0)
	m.uris = append(m.uris, uri)
	return m.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{Channel: uri, Name: "bench", Claim: ahp.ClientClaim(machineID(n)), ExecutionTarget: ahp.TargetClient,
		Meta: ahp.NewTerminalMeta("", true)})
}

// clusterPart measures one terminal with observers at another node than its machine's.
func clusterPart(ctx context.Context, s settings) ([]row, error) {
	c, err := newClusterRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer c.close()
	m, err := dialMachine(ctx, c.nodes[0].host, 0)
	if err != nil {
		return nil, err
	}
	defer m.conn.Close()
	if err := m.lendHolding(ctx, 0); err != nil {
		return nil, err
	}
	for n := range clusterNodes {
		if err := c.lists(ctx, n, func(list string) bool { return strings.Contains(list, `"state":`) }); err != nil {
			return nil, err
		}
	}
	rows, err := c.keys(ctx, s, m)
	if err != nil {
		return nil, err
	}
	more, err := c.floods(ctx, s, m)
	return append(rows, more...), err
}

// keys prints stamps, and measures how old they are at the machine's node, at another
// node, and after a bare publish and subscribe.
func (c *clusterRig) keys(ctx context.Context, s settings, m *fakeMachine) ([]row, error) {
	const part = "across nodes"
	var near, far gallery
	defer near.close()
	defer far.close()
	if err := errors.Join(near.join(ctx, c.nodes[0].host, 0, m.uris[0], true), far.join(ctx, c.nodes[2].host, 1, m.uris[0], true)); err != nil {
		return nil, err
	}
	if _, err := far.ticks(ctx, m, time.Second); err != nil { // drops stamps from before both had joined
		return nil, err
	}
	near.takeAges()
	across, err := far.ticks(ctx, m, time.Duration(s.keys/2)*tickEvery)
	if err != nil {
		return nil, err
	}
	here := near.takeAges()
	bare, err := c.bare(ctx, s.keys/2)
	if err != nil {
		return nil, err
	}
	above, top, route := quantile(across, 0.5)-quantile(here, 0.5), quantile(across, 0.99)-quantile(here, 0.99), quantile(bare, 0.99)
	return slices.Concat(quantiles(part, "a key at the machine's node", here), quantiles(part, "a key at another node", across), quantiles(part, "bare publish and subscribe", bare), []row{
		row{Part: part, Name: "a key at another node, above one node, p50", Value: above, Unit: "ms"}.most(floorNodeKey),
		row{Part: part, Name: "the same, p99, times the bare one", Value: top / route, Note: fmt.Sprintf("%s ms and %s ms", digits(top), digits(route))}.most(floorNodeKeyTop),
	}), nil
}

// bare publishes stamps at one server and returns how old they are at another one, in ms.
func (c *clusterRig) bare(ctx context.Context, count int) ([]float64, error) {
	from, err := nats.Connect(c.urls[0])
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := nats.Connect(c.urls[2])
	if err != nil {
		return nil, err
	}
	defer to.Close()
	var mu sync.Mutex
	var ages []float64
	if _, err := to.Subscribe("bench", func(m *nats.Msg) {
		if age, ok := stampAge(m.Data); ok {
			mu.Lock()
			ages = append(ages, millis(age))
			mu.Unlock()
		}
	}); err != nil {
		return nil, err
	}
	taken := func() []float64 {
		mu.Lock()
		defer mu.Unlock()
		return ages
	}
	for n := 0; n < count || len(taken()) < count; n++ { // the first may be lost: the route does not know the subscription yet
		if err := errors.Join(from.Publish("bench", stamp()), sleep(ctx, tickEvery)); err != nil {
			return nil, err
		}
	}
	return taken(), nil
}

// floods compares the rate at another node with that at the machine's node, and the bytes
// between nodes for many observers with one stream.
func (c *clusterRig) floods(ctx context.Context, s settings, m *fakeMachine) ([]row, error) {
	const part = "across nodes"
	coloured, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	block := onTerminal(coloured.block())
	flood := func(stop <-chan struct{}) error { return m.flood(ctx, m.uris[0], block, stop) }
	rate := func(node int) (float64, error) {
		var g gallery
		defer g.close()
		if err := g.join(ctx, c.nodes[node].host, 10+node, m.uris[0], false); err != nil {
			return 0, err
		}
		r, _, err := g.rateOf(ctx, s.flow, flood)
		return r, errors.Join(err, m.await(ctx, m.uris[0], 0))
	}
	var one, other []float64
	for range s.rounds {
		for _, of := range []struct {
			node  int
			rates *[]float64
		}{{0, &one}, {2, &other}} {
			r, err := rate(of.node)
			if err != nil {
				return nil, err
			}
			*of.rates = append(*of.rates, r)
		}
	}
	rows := []row{row{Part: part, Name: "a flood to an observer at another node, of one node", Value: median(other) / median(one),
		Note: fmt.Sprintf("%s and %s MB/s", digits(median(other)), digits(median(one)))}.least(floorNodeFlood)}
	var g gallery
	defer g.close()
	for n := range s.viewers {
		if err := g.join(ctx, c.nodes[2].host, 20+n, m.uris[0], false); err != nil {
			return nil, err
		}
	}
	before, err := c.sent(ctx, 0)
	if err != nil {
		return nil, err
	}
	g.count()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- flood(stop) }()
	err = sleep(ctx, s.flow)
	close(stop)
	if err := errors.Join(err, <-ended, m.await(ctx, m.uris[0], 0)); err != nil {
		return nil, err
	}
	total := int64(0)
	for more := int64(1); more > 0; {
		if err := sleep(ctx, s.settle); err != nil {
			return nil, err
		}
		more, _ = g.count()
		total += more
	}
	after, err := c.sent(ctx, 0)
	if err != nil {
		return nil, err
	}
	stream := float64(total) / float64(s.viewers)
	return append(rows, row{Part: part, Name: fmt.Sprintf("%d observers at another node: bytes between nodes, times one encoded stream", s.viewers), Value: float64(after-before) / stream,
		Note: fmt.Sprintf("%s MB", digits(stream/1e6))}.most(floorNodeBytes)), nil
}

// nodesPart lets many machines lend to all nodes, changes all titles, and kills a node.
func nodesPart(ctx context.Context, s settings) ([]row, error) {
	const part = "many machines over three nodes"
	c, err := newClusterRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer c.close()
	terminals := s.machines * machineLends
	machines := make([]*fakeMachine, s.machines)
	defer func() { closeMachines(machines) }()
	lend := func(n, node int) (err error) {
		if machines[n], err = dialMachine(ctx, c.nodes[node].host, n); err == nil {
			err = machines[n].lend(ctx, n, machineLends)
		}
		return err
	}
	all := func(what string) func(string) bool {
		return func(list string) bool { return strings.Count(list, what) >= terminals }
	}
	began := time.Now()
	if err := errors.Join(eachOf(s.machines, func(n int) error { return lend(n, n%clusterNodes) }), c.lists(ctx, 2, all(`"state":`))); err != nil {
		return nil, err
	}
	rows := []row{{Part: part, Name: fmt.Sprintf("announced until another node lists them, of %d", terminals), Value: float64(terminals) / time.Since(began).Seconds(), Unit: "/s"}}
	began = time.Now()
	err = eachMachine(machines, func(_ int, m *fakeMachine) error {
		for _, uri := range m.uris {
			if _, err := m.conn.Dispatch(ctx, uri, ahp.TerminalTitleChanged{Title: "changed"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, c.lists(ctx, 2, all(`"title":"changed"`))); err != nil {
		return nil, err
	}
	rows = append(rows, row{Part: part, Name: "changed until another node lists it", Value: float64(terminals) / time.Since(began).Seconds(), Unit: "/s"})
	most := 0.0
	for _, n := range c.nodes {
		used, err := memoryOf(n.server.Process.Pid)
		if err != nil {
			return nil, err
		}
		most = max(most, mib(used.rss))
	}
	rows = append(rows, row{Part: part, Name: fmt.Sprintf("memory of the largest node, %d machines in all", s.machines), Value: most, Unit: "MiB"})
	began = time.Now()
	if err := c.nodes[0].server.Process.Kill(); err != nil {
		return nil, err
	}
	err = eachOf((s.machines+clusterNodes-1)/clusterNodes, func(i int) error {
		n := i * clusterNodes
		machines[n].conn.Close()
		return lend(n, 1+i%2)
	})
	if err := errors.Join(err, c.lists(ctx, 2, func(list string) bool { return !strings.Contains(list, `"state":"away"`) }), c.lists(ctx, 2, all(`"state":`))); err != nil {
		return nil, err
	}
	return append(rows, row{Part: part, Name: "a node is killed until all its terminals are listed again", Value: time.Since(began).Seconds(), Unit: "s"}.most(floorNodesBack)), nil
}
