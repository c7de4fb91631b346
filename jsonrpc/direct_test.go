package jsonrpc_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
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

// A sender that finds the writer idle writes its own message; the write goroutine writes
// the rest. Only one writes at a time, and each sender's messages stay in order.
func TestSendersAndWriterTakeTurns(t *testing.T) {
	const senders, each = 8, 500
	a, b := testkit.Channels()
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
				check.OK(t, p.SendRaw(t.Context(), fmt.Appendf(nil, `{"from":%d,"n":%d}`, from, n)))
				if n%50 == 0 {
					check.OK(t, p.Notify(t.Context(), "note", nil))
				}
			}
		})
	}
	all.Wait()
	must.Do(t, p.Flush(t.Context()))
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

// Messages queued while a sender writes go out after its message, Flush waits for both,
// and Close frees a sender that the channel holds.
func TestDirectSendIsPartOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		p := jsonrpc.NewPeer(a, jsonrpc.Options{})
		go p.Run(t.Context())
		synctest.Wait()
		p.SendRaw(t.Context(), []byte(`{"n":0}`)) // fills the pipe
		go p.SendRaw(t.Context(), []byte(`{"n":1}`))
		synctest.Wait()
		must.Do(t, p.Notify(t.Context(), "later", nil))
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
		check.OK(t, <-flushed)

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

// The write goroutine and callers of PullDirectly send the source's messages: one of them
// at a time, in order, even if a message is too long for the caller.
func TestSourceIsSentInOrderByAnyWriter(t *testing.T) {
	const n = 5000
	a, b := testkit.Channels()
	defer b.Close()
	next, done := 0, make(chan struct{})
	ch := &single{Channel: a, t: t, took: func(msg string) {
		var k int
		if _, err := fmt.Sscanf(msg, `{"n":%d`, &k); err != nil || k != next {
			t.Errorf("%.20s came when %d was due", msg, next)
		}
		if next++; next == n {
			close(done)
		}
	}}
	var s pullSource
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Source: s.pull})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	for k := range n {
		msg := fmt.Sprintf(`{"n":%d}`, k)
		if k%7 == 0 {
			msg = fmt.Sprintf(`{"n":%d,"pad":"%064d"}`, k, 0)
		}
		s.add(msg)
		if !p.PullDirectly(t.Context(), 64) {
			p.Wake()
		}
	}
	<-done
	p.Close()
	<-ended
}

// counted counts what was sent.
type counted struct {
	jsonrpc.Channel
	sent atomic.Int64
}

func (c *counted) Send(ctx context.Context, data []byte) error {
	err := c.Channel.Send(ctx, data)
	if err == nil {
		c.sent.Add(1)
	}
	return err
}

// PullDirectly sends on the goroutine of its caller, leaves a long message to the write
// goroutine, and does nothing while something is written or queued.
func TestPullDirectly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		s := pullSource{}
		ch := &counted{Channel: a}
		p := jsonrpc.NewPeer(ch, jsonrpc.Options{Source: s.pull})
		if p.PullDirectly(t.Context(), 100) {
			t.Error("a peer that does not run has sent something")
		}
		go p.Run(t.Context())
		defer p.Close()
		synctest.Wait()
		s.add(`{"n":0}`, `{"n":1}`)
		if !p.PullDirectly(t.Context(), 10) || ch.sent.Load() == 0 {
			t.Error("nothing was sent")
		}
		synctest.Wait() // the write goroutine is held by the second one: the pipe takes one message
		if p.PullDirectly(t.Context(), 100) {
			t.Error("a caller sent while the write goroutine did")
		}
		for _, want := range []string{`{"n":0}`, `{"n":1}`} {
			if got, err := b.Recv(t.Context()); err != nil || string(got) != want {
				t.Fatalf("got %s (%v), want %s", got, err, want)
			}
		}
		synctest.Wait()
		s.add(`{"long":1}`)
		if !p.PullDirectly(t.Context(), 5) || ch.sent.Load() != 2 {
			t.Error("a message beyond the limit was sent by the caller, or not taken")
		}
		if got, err := b.Recv(t.Context()); err != nil || string(got) != `{"long":1}` {
			t.Fatalf("got %s (%v)", got, err)
		}
	})
}

// After a message that was sent directly the write goroutine does not look at a source
// that has nothing: waking it costs an echo a switch of threads. If the source got a
// message meanwhile, it does.
func TestPullDirectlyWakesOnlyForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		defer b.Close()
		s := pullSource{}
		var p *jsonrpc.Peer
		asked, late := 0, ""
		p = jsonrpc.NewPeer(a, jsonrpc.Options{Source: func() ([]byte, bool) {
			asked++
			msg, more := s.pull()
			if msg == nil && late != "" {
				s.put(p, late)
				late = ""
				synctest.Wait() // the write goroutine has been told and waits for its turn
			}
			return msg, more
		}})
		go p.Run(t.Context())
		defer p.Close()
		synctest.Wait()
		for _, c := range []struct {
			late string
			want int
		}{{"", 2}, {`{"late":1}`, 4}} {
			s.add(`{"n":1}`)
			asked, late = 0, c.late
			if !p.PullDirectly(t.Context(), 100) {
				t.Error("nothing was sent")
			}
			for _, want := range []string{`{"n":1}`, c.late} {
				if want == "" {
					continue
				}
				if got, err := b.Recv(t.Context()); err != nil || string(got) != want {
					t.Fatalf("got %s (%v), want %s", got, err, want)
				}
			}
			synctest.Wait()
			if asked != c.want {
				t.Errorf("the source was asked %d times, want %d", asked, c.want)
			}
		}
	})
}
