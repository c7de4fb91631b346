package jsonrpc_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/jsonrpc"
)

// single is a channel that finds out whether two goroutines send at once.
type single struct {
	jsonrpc.Channel
	t    *testing.T
	busy atomic.Bool
	took func(msg string)
}

func (s *single) Send(_ context.Context, msg []byte) error {
	if !s.busy.CompareAndSwap(false, true) {
		s.t.Error("two goroutines send at once")
	}
	s.took(string(msg))
	s.busy.Store(false)
	return nil
}

// Senders that find nobody writing write themselves, the write goroutine does
// the rest: one at a time, and each sender's messages in order.
func TestSendersAndWriterTakeTurns(t *testing.T) {
	const senders, each = 8, 500
	a, b := jsonrpc.Pipe()
	defer b.Close()
	next := make([]int, senders)
	notes := 0
	ch := &single{Channel: a, t: t, took: func(msg string) {
		var from, n int
		if _, err := fmt.Sscanf(msg, `{"from":%d,"n":%d}`, &from, &n); err != nil {
			notes++
			return
		}
		if n != next[from] {
			t.Errorf("sender %d: message %d came when %d was due", from, n, next[from])
		}
		next[from] = n + 1
	}}
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{QueueBytes: 2 << 10})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	var all sync.WaitGroup
	for from := range senders {
		all.Go(func() {
			for n := range each {
				if err := p.SendRaw(t.Context(), fmt.Appendf(nil, `{"from":%d,"n":%d}`, from, n)); err != nil {
					t.Error(err)
				}
				if n%50 == 0 {
					if err := p.Notify(t.Context(), "note", nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Close()
	<-ended
	if notes != senders*each/50 {
		t.Errorf("%d of %d notifications were sent", notes, senders*each/50)
	}
	for from, n := range next {
		if n != each {
			t.Errorf("sender %d: %d of %d messages were sent", from, n, each)
		}
	}
}

// What is queued while a sender writes goes out behind it, Flush waits for
// both, and Close frees a sender that the channel holds.
func TestDirectSendIsPartOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		p := jsonrpc.NewPeer(a, jsonrpc.Options{})
		go p.Run(t.Context())
		synctest.Wait()
		p.SendRaw(t.Context(), []byte(`{"n":0}`)) // fills the pipe
		go p.SendRaw(t.Context(), []byte(`{"n":1}`))
		synctest.Wait()
		if err := p.Notify(t.Context(), "later", nil); err != nil {
			t.Fatal(err)
		}
		flushed := make(chan error, 1)
		go func() { flushed <- p.Flush(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-flushed:
			t.Fatalf("flushed while a message was still being handed over: %v", err)
		default:
		}
		for _, want := range []string{`{"n":0}`, `{"n":1}`, `{"jsonrpc":"2.0","method":"later"}`} {
			if got, err := b.Recv(t.Context()); err != nil || string(got) != want {
				t.Fatalf("got %s (%v), want %s", got, err, want)
			}
		}
		if err := <-flushed; err != nil {
			t.Error(err)
		}

		if err := p.SendRaw(t.Context(), []byte(`{"n":2}`)); err != nil { // fills the pipe
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() { sent <- p.SendRaw(t.Context(), []byte(`{"n":3}`)) }()
		synctest.Wait()
		p.Close()
		select {
		case err := <-sent:
			if err == nil {
				t.Error("a message that nobody has read counts as sent")
			}
		case <-time.After(time.Minute):
			t.Error("Close does not free a sender")
		}
	})
}
