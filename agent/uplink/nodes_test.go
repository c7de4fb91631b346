package uplink_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/uplink"
	"tether/host"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// farewell is a channel that the host's node ends.
type farewell struct {
	jsonrpc.Channel
	why   error
	once  sync.Once
	ended chan struct{}
}

func (f *farewell) say() { f.once.Do(func() { close(f.ended) }) }

func (f *farewell) Recv(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	p, err := f.Channel.Recv(ctx)
	select {
	case <-f.ended:
		return nil, f.why
	default:
		return p, err
	}
}

// A machine that a stopping node sends away, or whose node dies, is at another one at
// once, also soon after the last time, as in an upgrade of all nodes. It is not sent
// around for ever.
func TestNodesThatGoAwayOneAfterTheOther(t *testing.T) {
	for name, why := range map[string]error{"stops": &wsconn.CloseError{Code: wsconn.CloseGoingAway, Reason: "the host is going away"}, "dies": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) { nodesThatGoAway(t, why) })
	}
}

func nodesThatGoAway(t *testing.T, why error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, func(o *uplink.Options) {
			o.Endpoint.Also = []string{"ws://second", "ws://third"}
		})
		var last *farewell
		w.mu.Lock()
		w.wrapWire = func(ch jsonrpc.Channel) jsonrpc.Channel {
			last = &farewell{Channel: ch, why: why, ended: make(chan struct{})}
			return last
		}
		w.mu.Unlock()
		w.cut(false)
		w.online()
		time.Sleep(10 * time.Second) // so that the cut above is not one of a row
		var took []time.Duration
		for range 12 {
			time.Sleep(time.Second)
			last.say()
			synctest.Wait()
			began := time.Now()
			w.online()
			took = append(took, time.Since(began))
		}
		for _, d := range took[:8] {
			if d > 300*time.Millisecond {
				t.Errorf("at the other nodes after %v, want at once", took)
			}
		}
		if took[8]+took[9]+took[10]+took[11] < time.Second {
			t.Errorf("sent around for ever, it goes on after %v", took)
		}
	})
}
