package jsonrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// A gate is a channel whose Send waits until the test lets it continue, so that a test
// can fill the queues behind it. It records the sent messages; SendMore is marked with a
// plus.
type gate struct {
	jsonrpc.Channel // for Recv and Close
	let             chan struct{}
	sent            []string // read it after synctest.Wait only
	err             error    // returned by Send, if not nil
}

func newGate() *gate {
	a, _ := testkit.Channels()
	return &gate{Channel: a, let: make(chan struct{})}
}

func (g *gate) Send(ctx context.Context, msg []byte) error { return g.record(ctx, "", msg) }

func (g *gate) SendMore(ctx context.Context, msg []byte) error { return g.record(ctx, "+", msg) }

func (g *gate) Flush(ctx context.Context) error { return g.record(ctx, "flush", nil) }

func (g *gate) record(ctx context.Context, mark string, msg []byte) error {
	select {
	case <-g.let:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.sent = append(g.sent, mark+string(msg))
	return g.err
}

// start runs a peer on g. stop ends both.
func (g *gate) start(t *testing.T, o jsonrpc.Options) (p *jsonrpc.Peer, stop func()) {
	p = jsonrpc.NewPeer(g, o)
	return p, g.run(t, p)
}

// run is like start, for a peer that already has queued messages: its writer takes the
// first of them. Otherwise a sender would take it and wait at the gate.
func (g *gate) run(t *testing.T, p *jsonrpc.Peer) (stop func()) {
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	return func() {
		p.Close()
		select {
		case <-g.let: // it may be open already
		default:
			close(g.let)
		}
		if err := <-ended; err == nil {
			t.Error("Run returned nil")
		}
	}
}

func TestControlBeforeBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := jsonrpc.NewPeer(g, jsonrpc.Options{})
		bulk := func(s string) {
			t.Helper()
			must.Do(t, p.SendRaw(t.Context(), []byte(s)))
		}
		bulk("b1") // the writer takes it and waits at the gate
		defer g.run(t, p)()
		synctest.Wait()
		bulk("b2")
		bulk("b3")
		for _, m := range []string{"c1", "c2"} {
			must.Do(t, p.Notify(t.Context(), m, nil))
		}
		g.let <- struct{}{}
		g.let <- struct{}{}
		synctest.Wait()
		bulk("b4")
		must.Do(t, p.Notify(t.Context(), "c3", rawParams(`{}`)))
		for range 5 {
			g.let <- struct{}{}
		}
		synctest.Wait()
		want := []string{
			"b1", `+{"jsonrpc":"2.0","method":"c1"}`, `+{"jsonrpc":"2.0","method":"c2"}`,
			`+{"jsonrpc":"2.0","method":"c3","params":{}}`, "+b2", "+b3", "b4",
		}
		check.Equal(t, "sent", want, g.sent)
	})
}

// Messages that Drop removes are not sent, whether they were queued or waited for room.
// The order of the others stays, and the message being written is sent.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 6
		g := newGate()
		p, stop := g.start(t, jsonrpc.Options{QueueBytes: room * (100 + 64)})
		defer stop()
		synctest.Wait()
		var returned atomic.Int32
		for i := range 12 {
			msg := fmt.Sprintf("%c%02d%s", "ab"[i%2], i, strings.Repeat("x", 97))
			go func() {
				check.OK(t, p.SendRaw(t.Context(), []byte(msg)))
				returned.Add(1)
			}()
			synctest.Wait()
		}
		if returned.Load() != room {
			t.Errorf("%d sends have returned, want %d", returned.Load(), room)
		}
		p.Drop(func(msg []byte) bool { return msg[0] == 'a' })
		synctest.Wait()
		if returned.Load() != 11 { // except for the first, which is being written
			t.Errorf("%d sends have returned, want 11", returned.Load())
		}
		if got := p.Stats().QueuedBulk; got != 7*(100+64) {
			t.Errorf("%d bytes are queued, want those of 7 messages", got)
		}
		for range 7 {
			g.let <- struct{}{}
		}
		check.OK(t, p.Flush(t.Context()))
		var got []string
		for _, m := range g.sent {
			got = append(got, strings.TrimLeft(m, "+")[:3])
		}
		check.Equal(t, "sent", []string{"a00", "b01", "b03", "b05", "b07", "b09", "b11"}, got)
		p.Drop(func([]byte) bool { return true })
		if got := p.Stats().QueuedBulk; got != 0 {
			t.Errorf("%d bytes are queued of nothing", got)
		}
	})
}

func TestSendRawBlocksWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, room = 1000, 5
		g := newGate()
		p, stop := g.start(t, jsonrpc.Options{QueueBytes: room * (size + 64)})
		defer stop()
		synctest.Wait()
		var returned atomic.Int32
		var want []string
		for i := range 12 {
			msg := fmt.Sprintf("%02d%s", i, strings.Repeat("x", size-2))
			want = append(want, msg)
			go func() {
				buf := []byte(msg)
				check.OK(t, p.SendRaw(t.Context(), buf))
				clear(buf) // it was copied
				returned.Add(1)
			}()
			synctest.Wait()
		}
		if returned.Load() != room {
			t.Errorf("%d sends returned, want %d", returned.Load(), room)
		}
		if got := p.Stats().QueuedBulk; got != (room+1)*(size+64) { // the first is being written by its sender
			t.Errorf("%d bytes queued, want %d", got, (room+1)*(size+64))
		}
		for i := range want {
			g.let <- struct{}{}
			synctest.Wait()
			if most := room + i + 1; int(returned.Load()) > most {
				t.Fatalf("%d sends returned after %d messages, want at most %d", returned.Load(), i+1, most)
			}
		}
		for i := range g.sent {
			g.sent[i] = strings.TrimPrefix(g.sent[i], "+")
		}
		check.Equal(t, "sent", want, g.sent)
		if got := p.Stats(); got.QueuedBulk != 0 {
			t.Errorf("afterwards: %+v", got)
		}
	})
}

// TestSendRawGivesUp checks that a sender that gives up makes room for a smaller one
// behind it, and that no part of its message is sent.
func TestSendRawGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := jsonrpc.NewPeer(g, jsonrpc.Options{QueueBytes: 1000})
		must.Do(t, p.SendRaw(t.Context(), make([]byte, 700)))
		defer g.run(t, p)()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		large, small := make(chan error, 1), make(chan error, 1)
		go func() { large <- p.SendRaw(ctx, make([]byte, 600)) }()
		synctest.Wait()
		go func() { small <- p.SendRaw(t.Context(), []byte("small")) }()
		synctest.Wait()
		if len(small) != 0 {
			t.Error("the small message overtook the large one")
		}
		start := time.Now()
		if err := <-large; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != timeout {
			t.Errorf("SendRaw = %v after %v, want %v", err, time.Since(start), context.DeadlineExceeded)
		}
		check.OK(t, <-small)
		g.let <- struct{}{}
		g.let <- struct{}{}
		synctest.Wait()
		if len(g.sent) != 2 || g.sent[1] != "small" {
			t.Errorf("sent %d messages, want the first and the small one", len(g.sent))
		}
	})
}

func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		close(g.let)
		// A message larger than the queue goes out alone.
		p, stop := g.start(t, jsonrpc.Options{MaxMessage: 200_000, QueueBytes: 100})
		defer stop()
		check.OK(t, p.SendRaw(t.Context(), make([]byte, 200_000)))
		for name, err := range map[string]error{
			"SendRaw": p.SendRaw(t.Context(), make([]byte, 200_001)),
			"Notify":  p.Notify(t.Context(), "x", strings.Repeat("x", 200_000)),
			"Call":    p.Call(t.Context(), "x", strings.Repeat("x", 200_000), nil),
		} {
			if !errors.Is(err, jsonrpc.ErrTooLarge) {
				t.Errorf("%s = %v, want %v", name, err, jsonrpc.ErrTooLarge)
			}
		}
		if err := p.Notify(t.Context(), "x", func() {}); err == nil {
			t.Error("a function was sent")
		}
		synctest.Wait()
		if len(g.sent) != 1 {
			t.Errorf("%d messages sent, want 1", len(g.sent))
		}
	})
}

// TestNothingStaysHeldBack has a source that announces another message and then has none.
func TestNothingStaysHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		close(g.let)
		msgs := []string{"s1", "s2"}
		p, stop := g.start(t, jsonrpc.Options{Source: func() ([]byte, bool) {
			if len(msgs) == 0 {
				return nil, false
			}
			msg := msgs[0]
			msgs = msgs[1:]
			return []byte(msg), true
		}})
		defer stop()
		synctest.Wait()
		check.OK(t, p.Flush(t.Context()))
		check.Equal(t, "sent", []string{"+s1", "+s2", "flush"}, g.sent)
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := jsonrpc.NewPeer(g, jsonrpc.Options{})
		if err := p.Flush(t.Context()); err != nil {
			t.Errorf("Flush of nothing = %v", err)
		}
		for range 3 {
			must.Do(t, p.SendRaw(t.Context(), []byte("x")))
		}
		defer g.run(t, p)()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v, want %v", err, context.DeadlineExceeded)
		}
		flushed := make(chan error, 1)
		go func() { flushed <- p.Flush(t.Context()) }()
		for range 3 {
			if synctest.Wait(); len(flushed) != 0 {
				t.Error("Flush returned early")
			}
			g.let <- struct{}{}
		}
		if err := <-flushed; err != nil || len(g.sent) != 3 {
			t.Errorf("Flush = %v with %d of 3 sent", err, len(g.sent))
		}
	})
}

func TestFailedWriteEndsPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.err = errors.New("no route")
		close(g.let)
		p := jsonrpc.NewPeer(g, jsonrpc.Options{})
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		if err := p.Call(t.Context(), "x", nil, nil); !errors.Is(err, g.err) || !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("Call = %v, want %v and %v", err, jsonrpc.ErrClosed, g.err)
		}
		if err := <-ended; !errors.Is(err, g.err) {
			t.Errorf("Run = %v, want %v", err, g.err)
		}
	})
}

// TestUnreadRepliesStopReading checks that a peer that asks and never listens is not read
// from without bound.
func TestUnreadRepliesStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		handled := 0
		p := jsonrpc.NewPeer(a, jsonrpc.Options{ControlBytes: 1000, Handler: jsonrpc.HandlerFunc(
			func(_ context.Context, r *jsonrpc.Request) {
				handled++
				_ = r.Reply(strings.Repeat("x", 100))
			},
		)})
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		sent := 0
		for b.Send(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`)) == nil {
			sent++
		}
		synctest.Wait()
		if handled > 10 || sent > handled+2 {
			t.Errorf("%d requests were handled and %d taken with nobody reading the replies", handled, sent)
		}
		for range handled { // reading continues as soon as they are read
			must.Get(b.Recv(t.Context()))(t)
		}
		synctest.Wait()
		if handled != sent {
			t.Errorf("%d of %d requests were handled after the replies were read", handled, sent)
		}
		p.Close()
		<-ended
	})
}

func TestCloseBeforeRun(t *testing.T) {
	a, b := testkit.Channels()
	p := jsonrpc.NewPeer(a, jsonrpc.Options{})
	check.OK(t, p.SendRaw(t.Context(), []byte("x")))
	p.Close()
	if err := p.Run(t.Context()); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Run = %v, want %v", err, jsonrpc.ErrClosed)
	}
	if _, err := b.Recv(t.Context()); err == nil {
		t.Error("a closed peer sent something")
	}
}

func TestCallBulkIsABarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Channels()
		seen := 0
		server := jsonrpc.NewPeer(b, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
			if r.IsNotification() {
				seen++
				return
			}
			r.Reply(seen)
		})})
		client := jsonrpc.NewPeer(a, jsonrpc.Options{})
		go server.Run(t.Context())
		defer server.Close()
		for i := range 100 { // queued before anything is written
			must.Do(t, client.SendRaw(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"n","params":{"i":%d}}`, i)))
		}
		go client.Run(t.Context())
		defer client.Close()
		var before int
		if err := client.CallBulk(t.Context(), "count", nil, &before); err != nil || before != 100 {
			t.Errorf("CallBulk was answered after %d of 100 messages (%v)", before, err)
		}
	})
}
