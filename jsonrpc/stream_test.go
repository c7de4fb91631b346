package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

const takenMethod = "taken"

// streamPair runs two peers; the second one accepts the streams of the first.
func streamPair(t *testing.T) (a, b *jsonrpc.Peer, accepted chan net.Conn) {
	t.Helper()
	x, y := testkit.Channels()
	accepted = make(chan net.Conn, 4)
	a = jsonrpc.NewPeer(x, jsonrpc.Options{Taken: takenMethod})
	b = jsonrpc.NewPeer(y, jsonrpc.Options{Taken: takenMethod, Accept: func(c net.Conn) { accepted <- c }})
	ended := make(chan struct{}, 2)
	for _, p := range []*jsonrpc.Peer{a, b} {
		go func() { _ = p.Run(t.Context()); ended <- struct{}{} }()
	}
	t.Cleanup(func() {
		a.Close()
		<-ended
		<-ended
	})
	return a, b, accepted
}

func takenMessage(n string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"bytes":%s}}`, takenMethod, n)
}

// bytesOf returns n bytes that differ from place to place.
func bytesOf(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return data
}

// Bytes arrive in both directions whole and in order, more than any buffer holds.
func TestStreamCarriesBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, accepted := streamPair(t)
		want := bytesOf(5 << 20)
		near := must.Get(a.Stream())(t)
		done := make(chan error, 2)
		go func() { _, err := near.Write(want); done <- err }()
		far := <-accepted
		go func() { // back, as it comes
			_, err := io.CopyBuffer(struct{ io.Writer }{far}, struct{ io.Reader }{far}, make([]byte, 1000))
			done <- err
		}()
		got := make([]byte, len(want))
		must.Get(io.ReadFull(near, got))(t)
		if !bytes.Equal(got, want) {
			t.Error("other bytes arrived")
		}
		must.Do(t, <-done)
		must.Do(t, near.Close())
		must.Do(t, <-done) // it reads io.EOF
	})
}

// A stream that has ended is followed by another one; what was on its way is not part of
// that.
func TestOneStreamAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, accepted := streamPair(t)
		for i := range 50 {
			near := must.Get(a.Stream())(t)
			if _, err := a.Stream(); err == nil {
				t.Fatal("two streams are open")
			}
			must.Get(near.Write([]byte{byte(i)}))(t)
			far := <-accepted
			got := make([]byte, 1)
			must.Get(io.ReadFull(far, got))(t)
			if got[0] != byte(i) {
				t.Errorf("stream %d begins with %d", i, got[0])
			}
			must.Get(far.Write(bytesOf(100_000)[:60_000]))(t) // is not read
			if i%2 == 0 {
				must.Do(t, far.Close())
				got := must.Get(io.ReadAll(near))(t)
				if len(got) != 60_000 {
					t.Errorf("read %d bytes before the end", len(got))
				}
			}
			must.Do(t, near.Close())
			if _, err := near.Read(got); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read after Close: %v", err)
			}
			if _, err := far.Write(got); err == nil && i%2 == 0 {
				t.Error("a closed stream was written")
			}
			must.Do(t, far.Close())
		}
	})
}

// The end of the connection ends its stream, with an error that says so.
func TestStreamEndsWithItsPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, accepted := streamPair(t)
		near := must.Get(a.Stream())(t)
		must.Get(near.Write([]byte("x")))(t)
		far := <-accepted
		errs := make(chan error, 3)
		go func() { _, err := near.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := near.Write(bytesOf(4 << 20)); errs <- err }() // nobody reads them
		synctest.Wait()
		b.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("ended with %v, want ErrClosed", err)
			}
		}
		synctest.Wait()
		if _, err := far.Write([]byte("x")); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("Write at the other side: %v", err)
		}
		if _, err := a.Stream(); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("Stream: %v", err)
		}
	})
}

// rawStream runs a peer that accepts streams, and returns the other end of its channel.
func rawStream(t *testing.T, o jsonrpc.Options) (far *testkit.ChannelEnd, p *jsonrpc.Peer, accepted chan net.Conn, ended chan error) {
	t.Helper()
	near, far := testkit.Channels()
	accepted, ended = make(chan net.Conn, 100), make(chan error, 1)
	if o.Taken != "" {
		o.Accept = func(c net.Conn) {
			select {
			case accepted <- c:
			default:
				_ = c.Close()
			}
		}
	}
	p = jsonrpc.NewPeer(near, o)
	go func() { ended <- p.Run(t.Context()) }()
	return far, p, accepted, ended
}

// Messages leave before the bytes of a stream that wait, and the stream does not wait for
// ever: also not behind senders that never pause.
func TestMessagesOvertakeAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := pullSource{}
		far, p, _, ended := rawStream(t, jsonrpc.Options{Taken: takenMethod, Source: source.pull})
		s := must.Get(p.Stream())(t)
		go func() { _, _ = s.Write(bytesOf(1 << 20)) }()
		synctest.Wait()
		for range 50 {
			must.Do(t, p.Notify(t.Context(), "n", nil))
			source.put(p, "from the source")
		}
		var kinds strings.Builder
		for taken := 0; kinds.Len() < 104; {
			msg := must.Get(far.Recv(t.Context()))(t)
			if !far.Binary() {
				kinds.WriteByte('t')
				continue
			}
			kinds.WriteByte('b')
			taken += len(msg)
			must.Do(t, far.Send(t.Context(), takenMessage(fmt.Sprint(taken))))
		}
		got := kinds.String()
		if texts := strings.Count(got, "t"); texts < 90 {
			t.Errorf("of 104 messages, with 100 of text waiting, %d were text: %s", texts, got)
		}
		if strings.Contains(got, strings.Repeat("t", 20)) {
			t.Errorf("the stream waited behind 20 messages: %s", got)
		}
		p.Close()
		<-ended
	})
}

// A stream that nobody reads takes a bounded part of the memory of both sides, and stops
// no message. When it is read, it goes on.
func TestASlowReaderStopsItsStreamOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, accepted := streamPair(t)
		near := must.Get(a.Stream())(t)
		var sent atomic.Int64
		go func() {
			for {
				n, err := near.Write(make([]byte, 1000))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		far := <-accepted
		synctest.Wait()
		if n := sent.Load(); n < 32<<10 || n > 2<<20 {
			t.Errorf("%d bytes were taken from the writer while nobody read", n)
		}
		for _, p := range []*jsonrpc.Peer{a, b} {
			if err := p.Call(t.Context(), "x", nil, nil); !strings.Contains(err.Error(), "unknown method") {
				t.Errorf("a call beside it: %v", err)
			}
		}
		before := sent.Load()
		must.Get(io.CopyN(io.Discard, far, 10<<20))(t)
		synctest.Wait()
		if after := sent.Load(); after < before+10<<20 {
			t.Errorf("%d bytes were sent, then %d", before, after)
		}
	})
}

// Pieces of one byte are taken like others.
func TestAStreamInSingleBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, p, accepted, ended := rawStream(t, jsonrpc.Options{Taken: takenMethod})
		for i := range 200_000 {
			must.Do(t, far.SendBinary(t.Context(), []byte{byte(i)}))
		}
		s := <-accepted
		got := make([]byte, 200_000)
		must.Get(io.ReadFull(s, got))(t)
		if got[1] != 1 || got[199_999] != byte(199_999&0xff) {
			t.Error("other bytes arrived")
		}
		var said struct {
			Method string
			Params struct{ Bytes int }
		}
		for said.Params.Bytes <= 200_000-16<<10 { // less than 16 KiB of what was read may be unsaid
			must.Do(t, json.Unmarshal(must.Get(far.Recv(t.Context()))(t), &said))
		}
		if said.Method != takenMethod || said.Params.Bytes > 200_000 {
			t.Errorf("then it says %+v", said)
		}
		p.Close()
		<-ended
	})
}

// What is no part of the protocol ends the connection, with the reason.
func TestWrongStreams(t *testing.T) {
	for name, c := range map[string]struct {
		o    jsonrpc.Options
		do   func(ctx context.Context, far *testkit.ChannelEnd) error
		want string
	}{
		"without a stream":    {do: func(ctx context.Context, far *testkit.ChannelEnd) error { return far.SendBinary(ctx, []byte("{}")) }, want: "binary"},
		"an end of no stream": {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error { return far.SendBinary(ctx, nil) }, want: "binary"},
		"without an end": {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error {
			for {
				if err := far.SendBinary(ctx, make([]byte, 15<<10)); err != nil {
					return nil
				}
			}
		}, want: "more of the stream than was allowed"},
		"streams without number": {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error {
			for {
				if far.SendBinary(ctx, []byte("x")) != nil || far.SendBinary(ctx, nil) != nil { // and reads nothing
					return nil
				}
			}
		}, want: "faster than it reads"},
		"one message too large": {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error {
			return far.SendBinary(ctx, make([]byte, 3<<20))
		}, want: "more of the stream than was allowed"},
		"more taken than sent": {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error { return far.Send(ctx, takenMessage("1")) }, want: "what was not sent"},
		"no number":            {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error { return far.Send(ctx, takenMessage(`"1"`)) }, want: "what was not sent"},
		"less than nothing":    {o: jsonrpc.Options{Taken: takenMethod}, do: func(ctx context.Context, far *testkit.ChannelEnd) error { return far.Send(ctx, takenMessage("-1")) }, want: "what was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, _, _, ended := rawStream(t, c.o)
				must.Do(t, c.do(t.Context(), far))
				if err := <-ended; !strings.Contains(err.Error(), c.want) {
					t.Errorf("the connection ended with %v, want %q", err, c.want)
				}
			})
		})
	}
}

// While somebody types, a stream leaves in small pieces with pauses.
func TestAStreamIsSlowWhileSomebodyTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var typing atomic.Bool
		near, far := testkit.Channels()
		accepted, ended := make(chan net.Conn, 1), make(chan error, 2)
		a := jsonrpc.NewPeer(near, jsonrpc.Options{Taken: takenMethod, Typing: typing.Load})
		b := jsonrpc.NewPeer(far, jsonrpc.Options{Taken: takenMethod, Accept: func(c net.Conn) { accepted <- c }})
		go func() { ended <- a.Run(t.Context()) }()
		go func() { ended <- b.Run(t.Context()) }()
		s := must.Get(a.Stream())(t)
		must.Get(s.Write([]byte("x")))(t)
		r := <-accepted
		must.Get(io.CopyN(io.Discard, r, 1))(t)
		took := func(n int) time.Duration {
			began := time.Now()
			go func() { _, _ = s.Write(make([]byte, n)) }()
			must.Get(io.CopyN(io.Discard, r, int64(n)))(t)
			return time.Since(began)
		}
		if d := took(3 << 20); d != 0 {
			t.Errorf("3 MiB took %v while nobody typed", d)
		}
		typing.Store(true)
		if d := took(3 << 20); d < 150*time.Millisecond || d > 300*time.Millisecond {
			t.Errorf("3 MiB took %v while somebody typed, want about 205 ms", d)
		}
		a.Close()
		<-ended
		<-ended
	})
}
