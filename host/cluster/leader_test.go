package cluster_test

import (
	"context"
	"sync"
	"testing"

	"tether/host"
	"tether/internal/testkit"
)

// One node at a time does what one does for all: another one takes over when it stops,
// and when it dies, with a higher epoch.
func TestLeader(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	var mu sync.Mutex
	epochs, leading := map[int64]int{}, -1
	var nodes []*node
	var stops []func()
	for i := range 3 {
		n := start(t, servers.URLs, host.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			n.of.Lead(ctx, "test", func(ctx context.Context, epoch int64) {
				mu.Lock()
				if who, there := epochs[epoch]; there && who != i {
					t.Errorf("nodes %d and %d lead in epoch %d", who, i, epoch)
				}
				epochs[epoch], leading = i, i
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				if leading == i {
					leading = -1
				}
			})
		})
		stop := sync.OnceFunc(func() { cancel(); run.Wait() })
		t.Cleanup(stop)
		nodes, stops = append(nodes, n), append(stops, stop)
	}
	var last int
	leads := func(what string, not int) {
		t.Helper()
		testkit.Eventually(t, patience, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			last = leading
			return leading >= 0 && leading != not
		})
		for _, n := range nodes {
			testkit.Eventually(t, patience, "all nodes know who leads", func() bool { leads, _ := n.of.Leader("test"); return leads == nodes[last].of.ID() })
		}
	}
	leads("a node leads", -1)
	first := last
	stops[first]()
	leads("another one leads when the first stops", first)
	second := last
	nodes[second].end()
	nodes = append(nodes[:second:second], nodes[second+1:]...)
	testkit.Eventually(t, patience, "the third one leads when the second has died", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return leading >= 0 && leading != first && leading != second
	})
	mu.Lock()
	defer mu.Unlock()
	if len(epochs) != 3 {
		t.Errorf("epochs: %v", epochs)
	}
}
