package events

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"tether/internal/testkit"
)

// heap is the size of the heap in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// quiet is an Out that says when it is active.
type quiet chan struct{}

func (q quiet) Active(string, bool) error { q <- struct{}{}; return nil }
func (q quiet) Event(Event) error         { return nil }
func (q quiet) Heartbeat(string) error    { return nil }

// A subscription takes at most 4 KiB of the heap besides its pattern, however much it
// follows.
func TestMemoryOfSubscriptions(t *testing.T) {
	const most, terminals = 4 << 10, 100
	streams := testkit.Load(1000, 200)
	f := &fakes{}
	for i := range terminals {
		f.add(fmt.Sprintf("pty-%03d", i)).print("ready\n")
	}
	before := heap()
	patterns := make([]*pattern, streams)
	for i := range patterns {
		patterns[i], _ = newPattern(`match \d+`)
	}
	ofPattern := (heap() - before) / int64(streams)
	runtime.KeepAlive(patterns)
	e := New(Options{Terminals: f, Streams: streams})
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(quiet), make(chan error, streams)
	before = heap()
	for i := range streams {
		go func() {
			ended <- e.Stream(ctx, request(Line, args{"pattern": `match \d+`, "terminalId": fmt.Sprintf("pty-%03d", i%terminals)}, ""), began)
		}()
		<-began
	}
	each := (heap()-before)/int64(streams) - ofPattern
	t.Logf("a subscription takes %d bytes, and its pattern %d", each, ofPattern)
	if each > most {
		t.Errorf("a subscription takes %d bytes beside its pattern, want at most %d", each, most)
	}
	cancel()
	for range streams {
		<-ended
	}
	e.Close()
}
