package jsonrpc_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

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
