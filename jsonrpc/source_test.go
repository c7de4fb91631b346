package jsonrpc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// pullSource is a Source that returns the messages put into it.
type pullSource struct {
	mu   sync.Mutex
	msgs []string
}

func (s *pullSource) put(peer *jsonrpc.Peer, msgs ...string) {
	s.add(msgs...)
	peer.Wake()
}

func (s *pullSource) add(msgs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.msgs = append(s.msgs, msgs...)
}

func (s *pullSource) pull() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.msgs) == 0 {
		return nil, false
	}
	msg := s.msgs[0]
	s.msgs = s.msgs[1:]
	return []byte(msg), len(s.msgs) > 0
}

func TestSourceIsAskedOnlyWhenTheOtherSideReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		var s pullSource
		peer := jsonrpc.NewPeer(a, jsonrpc.Options{Source: s.pull})
		ended := make(chan struct{})
		go func() { defer close(ended); _ = peer.Run(t.Context()) }()
		synctest.Wait()
		for i := range 10 {
			s.put(peer, fmt.Sprint(i))
		}
		synctest.Wait()
		if n := len(s.msgs); n < 8 {
			t.Errorf("%d of 10 messages are left at the source while nobody reads, want at least 8", n)
		}
		// A notification overtakes the source's messages.
		must.Do(t, peer.Notify(t.Context(), "urgent", nil))
		var got []string
		for range 11 {
			msg := must.Get(b.Recv(t.Context()))(t)
			got = append(got, string(msg))
		}
		if last := got[10]; last != "9" || got[10-1] != "8" {
			t.Errorf("received %q, want the source's messages in order", got)
		}
		if got[2] != `{"jsonrpc":"2.0","method":"urgent"}` {
			t.Errorf("received %q, want the notification third, after what was on its way", got)
		}
		peer.Close()
		<-ended
	})
}

func TestSourceMayReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		var pending *jsonrpc.Request
		arrived := make(chan *jsonrpc.Request, 1)
		peer := jsonrpc.NewPeer(a, jsonrpc.Options{
			Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) { arrived <- r }),
			Source: func() ([]byte, bool) {
				if pending == nil {
					return nil, false
				}
				r := pending
				pending = nil
				return nil, r.Reply("late") == nil
			},
		})
		ended := make(chan struct{})
		go func() { defer close(ended); _ = peer.Run(t.Context()) }()
		must.Do(t, b.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`)))
		r := <-arrived
		synctest.Wait() // the writer waits, so pending can be set
		pending = r
		peer.Wake()
		msg, err := b.Recv(t.Context())
		if want := `{"jsonrpc":"2.0","id":1,"result":"late"}`; err != nil || string(msg) != want {
			t.Errorf("received %s, %v, want %s", msg, err, want)
		}
		peer.Close()
		<-ended
	})
}
