package rawio_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/rawio"
)

// pair returns both ends of a wrapped connection. They are closed when the test ends.
func pair(t *testing.T, network string) (a, b net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(testkit.Home(t), "s")
	}
	inner, err := net.Listen(network, address)
	must.Do(t, err)
	l := rawio.Listener{Listener: inner}
	defer l.Close()
	dialled := must.Get(net.Dial(network, l.Addr().String()))(t)
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	a = rawio.Wrap(dialled)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func forEachNetwork(t *testing.T, test func(t *testing.T, network string)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			testkit.Leaks(t)
			test(t, network)
		})
	}
}

// Wrap returns a wrapped connection unchanged. Other tests use that to find out whether a
// connection is wrapped.
func TestWrapTwice(t *testing.T) {
	a, b := pair(t, "unix")
	if rawio.Wrap(a) != a || rawio.Wrap(b) != b {
		t.Error("a connection is wrapped twice")
	}
}

// Both directions carry data at once, in pieces that are larger than the system's
// buffers.
func TestContent(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		a, b := pair(t, network)
		random := rand.NewChaCha8([32]byte{1})
		sent := make([]byte, 5<<20)
		_, _ = random.Read(sent)
		want := sha256.Sum256(sent)
		var all sync.WaitGroup
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			all.Go(func() {
				if n, err := way[0].Write(sent); n != len(sent) || err != nil {
					t.Errorf("wrote %d of %d bytes: %v", n, len(sent), err)
				}
			})
			all.Go(func() {
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(way[1], got); err != nil || sha256.Sum256(got) != want {
					t.Errorf("read something else: %v", err)
				}
			})
		}
		all.Wait()
		if n, err := a.Write(nil); n != 0 || err != nil {
			t.Errorf("write nothing: %d, %v", n, err)
		}
		if n, err := a.Read(nil); n != 0 || err != nil {
			t.Errorf("read into nothing: %d, %v", n, err)
		}
	})
}

func TestEnd(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		a, b := pair(t, network)
		must.Get(a.Write([]byte("last")))(t)
		must.Do(t, a.(interface{ CloseWrite() error }).CloseWrite())
		if got, err := io.ReadAll(b); string(got) != "last" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		b.Close()
		testkit.Eventually(t, testkit.Patience, "a write fails", func() bool {
			_, err := a.Write([]byte("x")) // it must not end the process by SIGPIPE
			return err != nil
		})
	})
}

// Deadlines and Close end calls that wait. Errors are the same as those of an ordinary
// socket.
func TestWaitingCallsEnd(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		a, b := pair(t, network)
		check := func(op string, err, want error) {
			t.Helper()
			var e *net.OpError
			if !errors.As(err, &e) || e.Op != op || e.Net != network || !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v", op, err, want)
			}
		}
		must.Do(t, a.SetDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := a.Read(make([]byte, 1))
		check("read", err, os.ErrDeadlineExceeded)
		sent := bytes.Repeat([]byte("x"), 32<<20)
		must.Do(t, a.SetDeadline(time.Now().Add(100*time.Millisecond)))
		n, err := a.Write(sent)
		check("write", err, os.ErrDeadlineExceeded)
		if n <= 0 || n >= len(sent) {
			t.Errorf("%d bytes are written that nobody reads", n)
		}
		must.Do(t, a.SetDeadline(time.Time{}))
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := a.Read(make([]byte, 1))
				ended <- err
			}()
		}
		testkit.Eventually(t, testkit.Patience, "both wait", func() bool {
			stacks := make([]byte, 1<<20)
			return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("rawio.(*conn).Read(")) == 2
		})
		a.Close()
		for range 2 {
			check("read", <-ended, net.ErrClosed)
		}
		if got, err := io.Copy(io.Discard, b); got != int64(n) || err != nil {
			t.Errorf("read %d bytes, %v; want the %d that were written", got, err, n)
		}
	})
}
