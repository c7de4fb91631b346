package host_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

// wire is a connection whose messages are looked at as the host hands them over.
type wire struct {
	jsonrpc.Channel

	mu   sync.Mutex
	data [][]byte // with output; kept, so that no other message gets their memory
}

// Send implements jsonrpc.Channel.
func (w *wire) Send(ctx context.Context, msg []byte) error {
	if bytes.Contains(msg, []byte(`"`+ahp.ActionTerminalData+`"`)) {
		w.mu.Lock()
		w.data = append(w.data, msg)
		w.mu.Unlock()
	}
	return w.Channel.Send(ctx, msg)
}

// A terminal's output is encoded once, for any number of watchers: all are sent the same
// bytes in the same memory.
func TestOutputIsEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		const observers, frames = 5, 40
		wires := make([]*wire, observers)
		viewers := make([]*viewer, observers)
		for n := range observers {
			near, far := testkit.Channels()
			wires[n] = &wire{Channel: far}
			served := make(chan struct{})
			go func() { defer close(served); _ = h.ServeChannel(context.Background(), wires[n]) }()
			viewers[n] = newViewer(t, near, fmt.Sprint("watcher ", n))
			t.Cleanup(func() { viewers[n].close(); <-served })
			viewers[n].initialize(viewOptions{subs: []string{uri}})
		}
		for n := range frames {
			owner.output(uri, strings.Repeat(fmt.Sprintf("line %d\r\n", n), 100), -1)
			owner.ping()
			synctest.Wait() // nobody falls behind
		}
		for n, v := range viewers {
			v.awaitText(uri, fmt.Sprintf("line %d\r\n", frames-1))
			if len(wires[n].data) != frames {
				t.Fatalf("observer %d was sent %d messages, want %d", n, len(wires[n].data), frames)
			}
			for i, msg := range wires[n].data {
				if first := wires[0].data[i]; &msg[0] != &first[0] || len(msg) != len(first) {
					t.Fatalf("message %d was encoded for observer %d alone", i, n)
				}
			}
		}
	})
}
