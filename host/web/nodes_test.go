package web_test

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tether/host"
	"tether/host/cluster"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
)

// nodesVariable is an environment variable. If it is set, as by make test-cluster, the
// tests open the page at another node than that of the machines.
const nodesVariable = "TETHER_TEST_NODES"

// startNodes starts two nodes of one host: machines come to the owner, browsers to the
// other one. Without nodesVariable both are one host.
func startNodes(t *testing.T, o host.Options) (owner, other *host.Host) {
	t.Helper()
	if os.Getenv(nodesVariable) == "" {
		h := host.New(o)
		return h, h
	}
	servers := testkit.StartJetStream(t, filepath.Join("..", "..", "bin", "tools"))
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	start := func() *host.Host {
		var n *cluster.Node
		testkit.Eventually(t, time.Minute, "a node joins", func() (ok bool) {
			var err error
			n, err = cluster.Join(t.Context(), cluster.Options{Servers: servers.URLs, Name: "page", HostKey: key})
			return err == nil
		})
		o := o
		o.Nodes = n
		h := host.New(o)
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		run.Go(func() {
			check.OK(t, n.Run(ctx, h))
		})
		t.Cleanup(func() { cancel(); run.Wait(); n.Close(); h.Close() })
		return h
	}
	return start(), start()
}

// oneNode skips a test that cannot run at two nodes.
func oneNode(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(nodesVariable) != "" {
		t.Skip(why)
	}
}
