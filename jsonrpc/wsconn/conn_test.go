package wsconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// transfer sends messages of many sizes from one end to the other.
func transfer(t *testing.T, from, to *wsconn.Conn) {
	t.Helper()
	sizes := []int{0, 1, 125, 126, 4083, 4084, 4096, 65535, 65536, 65537, 200_000, 1 << 20, 3}
	message := func(i int) string { return strings.Repeat(string(rune('a'+i)), sizes[i]) }
	go func() {
		for i := range sizes {
			send := from.Send
			if i%3 != 2 && i != len(sizes)-1 {
				send = from.SendMore // leaves with the next one
			}
			if err := send(t.Context(), []byte(message(i))); err != nil {
				t.Errorf("send %d: %v", i, err)
			}
		}
	}()
	for i := range sizes {
		got, err := to.Recv(t.Context())
		if err != nil || string(got) != message(i) {
			t.Fatalf("message %d: got %d bytes, %v, want %d", i, len(got), err, sizes[i])
		}
	}
}

func TestTransfer(t *testing.T) {
	for name, o := range map[string]wsconn.Options{"plain": {}, "compressed": {Compress: true}} {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, o, o)
			transfer(t, client, server)
			transfer(t, server, client)
		})
	}
	t.Run("in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server, _ := pipe(t, wsconn.Options{})
			transfer(t, client, server)
			transfer(t, server, client)
		})
	})
}

func TestBinaryIsAccepted(t *testing.T) {
	url, accepted := serve(t, wsconn.Options{})
	raw, _, err := websocket.Dial(t.Context(), url, nil)
	must.Do(t, err)
	defer raw.CloseNow()
	server := <-accepted
	defer server.Close()
	must.Do(t, raw.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)))
	if got, err := server.Recv(t.Context()); err != nil || string(got) != `{}` {
		t.Errorf("Recv = %q, %v", got, err)
	}
	must.Do(t, server.Send(t.Context(), []byte(`{}`)))
	if typ, _, err := raw.Read(t.Context()); typ != websocket.MessageText {
		t.Errorf("sent a %v frame, %v, want text", typ, err)
	}
}

func TestClose(t *testing.T) {
	long := strings.Repeat("ü", 100)
	tests := []struct {
		name  string
		close func(c *wsconn.Conn) error
		want  wsconn.CloseError
		clean bool
	}{
		{"normal", func(c *wsconn.Conn) error { return c.CloseReason(wsconn.CloseNormal, "done") },
			wsconn.CloseError{Code: wsconn.CloseNormal, Reason: "done"}, true},
		{"going away", func(c *wsconn.Conn) error { return c.CloseReason(wsconn.CloseGoingAway, "") },
			wsconn.CloseError{Code: wsconn.CloseGoingAway}, true},
		{"no status", func(c *wsconn.Conn) error { return c.CloseReason(wsconn.CloseNoStatus, "") },
			wsconn.CloseError{Code: wsconn.CloseNoStatus}, true},
		{"policy", func(c *wsconn.Conn) error { return c.CloseReason(wsconn.ClosePolicy, "too slow") },
			wsconn.CloseError{Code: wsconn.ClosePolicy, Reason: "too slow"}, false},
		{"own code", func(c *wsconn.Conn) error { return c.CloseReason(4001, "") },
			wsconn.CloseError{Code: 4001}, false},
		{"long reason", func(c *wsconn.Conn) error { return c.CloseReason(wsconn.CloseInternal, long) },
			wsconn.CloseError{Code: wsconn.CloseInternal, Reason: long[:122]}, false},
		{"without a word", func(c *wsconn.Conn) error { return c.Close() },
			wsconn.CloseError{Code: wsconn.CloseAbnormal}, false},
	}
	for _, tt := range tests {
		for _, who := range []string{"client", "server"} {
			t.Run(tt.name+" by "+who, func(t *testing.T) {
				closer, other := connect(t, wsconn.Options{}, wsconn.Options{})
				if who == "server" {
					closer, other = other, closer
				}
				own := make(chan error, 1)
				go func() { _, err := closer.Recv(t.Context()); own <- err }()
				// The last message is held back; closing must not lose it.
				must.Do(t, closer.Send(t.Context(), []byte("last")))
				closed := make(chan error, 1)
				go func() { closed <- tt.close(closer) }()

				var err error
				for err == nil {
					_, err = other.Recv(t.Context())
				}
				got, ok := errors.AsType[*wsconn.CloseError](err)
				if !ok || got.Code != tt.want.Code || got.Reason != tt.want.Reason {
					t.Errorf("Recv = %v, want %v", err, &tt.want)
				}
				if errors.Is(err, io.EOF) != tt.clean {
					t.Errorf("%v is io.EOF: %v, want %v", err, !tt.clean, tt.clean)
				}
				if err := <-closed; err != nil {
					t.Errorf("close: %v", err)
				}
				if err := <-own; !errors.Is(err, net.ErrClosed) {
					t.Errorf("own Recv = %v, want %v", err, net.ErrClosed)
				}
				if _, err := closer.Recv(t.Context()); !errors.Is(err, net.ErrClosed) {
					t.Errorf("own Recv after closing = %v, want %v", err, net.ErrClosed)
				}
				if err := closer.Send(t.Context(), []byte("x")); err == nil {
					t.Error("Send after closing succeeded")
				}
				if err := closer.CloseReason(wsconn.CloseNormal, ""); err != nil {
					t.Errorf("second close: %v", err)
				}
			})
		}
	}
}

func TestFlushSendsHeldMessages(t *testing.T) {
	client, server := connect(t, wsconn.Options{}, wsconn.Options{})
	must.Do(t, client.SendMore(t.Context(), []byte("held")))
	must.Do(t, client.Flush(t.Context()))
	if got, err := server.Recv(t.Context()); err != nil || string(got) != "held" {
		t.Errorf("Recv = %q, %v", got, err)
	}
	client.Close()
	if err := client.Flush(t.Context()); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("Flush after Close = %v", err)
	}
}

func TestCloseDeliversHeldMessages(t *testing.T) {
	client, server := connect(t, wsconn.Options{}, wsconn.Options{})
	must.Do(t, client.SendMore(t.Context(), []byte("last")))
	closed := make(chan error, 1)
	go func() { closed <- client.CloseReason(wsconn.CloseNormal, "") }()
	if got, err := server.Recv(t.Context()); err != nil || string(got) != "last" {
		t.Errorf("Recv = %q, %v", got, err)
	}
	if _, err := server.Recv(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("Recv = %v, want a clean close", err)
	}
	check.OK(t, <-closed)
}

func TestCloseDoesNotWaitLongForASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, _ := pipe(t, wsconn.Options{}) // the server does not read
		start := time.Now()
		_ = client.CloseReason(wsconn.CloseNormal, "")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("CloseReason took %v, want at most 2s", took)
		}
	})
}

func TestReadLimit(t *testing.T) {
	const limit = 1000
	for _, size := range []int{limit, limit + 1, 50 * limit, 2000 * limit} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			client, server := connect(t, wsconn.Options{}, wsconn.Options{ReadLimit: limit})
			sent := make(chan error, 1)
			go func() { sent <- client.Send(t.Context(), make([]byte, size)) }()
			own := make(chan error, 1)
			go func() { _, err := client.Recv(t.Context()); own <- err }()

			got, err := server.Recv(t.Context())
			if size <= limit {
				if err != nil || len(got) != size {
					t.Errorf("Recv = %d bytes, %v, want %d", len(got), err, size)
				}
				return
			}
			if err == nil || err.Error() != "wsconn: received a message of more than 1000 bytes" {
				t.Errorf("Recv = %d bytes, %v", len(got), err)
			}
			if ce, ok := errors.AsType[*wsconn.CloseError](<-own); !ok || ce.Code != wsconn.CloseTooBig {
				t.Errorf("the sender's Recv = %v, want code %d", ce, wsconn.CloseTooBig)
			}
			<-sent
		})
	}
}

func TestCompressedBombIsLimited(t *testing.T) {
	o := wsconn.Options{Compress: true}
	client, server := connect(t, o, o)
	go func() { _ = client.Send(t.Context(), make([]byte, 64<<20)) }()
	go func() { _, _ = client.Recv(context.Background()) }() // answers the close frame
	if got, err := server.Recv(t.Context()); err == nil {
		t.Errorf("received %d bytes", len(got))
	}
}

func TestContextEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := pipe(t, wsconn.Options{WriteTimeout: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv = %v, want %v", err, context.DeadlineExceeded)
		}
		if _, err := server.Recv(t.Context()); err == nil {
			t.Error("the other side did not notice")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _, _ := pipe(t, wsconn.Options{WriteTimeout: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.Send(ctx, make([]byte, 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3 * time.Second
		client, _, _ := pipe(t, wsconn.Options{WriteTimeout: limit}) // nobody reads
		start := time.Now()
		err := client.Send(t.Context(), []byte("x"))
		if took := time.Since(start); err == nil || took != limit {
			t.Errorf("Send = %v after %v, want a time-out after %v", err, took, limit)
		}
		if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
			t.Errorf("%v is not a time-out", err)
		}
		if _, err := client.Recv(t.Context()); err == nil {
			t.Error("Recv succeeded after a time-out")
		}
	})
}

// A slow reader of a large message stays as long as it takes 64 KiB in time; the limit
// counts from the last of them.
func TestWriteTimeoutCountsFromTheLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, step = 3 * time.Second, 64 << 10
		client, server, below := pipe(t, wsconn.Options{WriteTimeout: limit})
		_ = server // nobody receives; the test reads below
		go func() {
			buf := make([]byte, step)
			for range 4 {
				time.Sleep(2 * time.Second)
				_, _ = io.ReadFull(below[1], buf)
			}
		}()
		start := time.Now()
		err := client.Send(t.Context(), make([]byte, 1<<20))
		if took := time.Since(start); err == nil || took != 8*time.Second+limit {
			t.Errorf("Send = %v after %v, want a time-out %v after the last step", err, took, limit)
		}
		if n := client.Written(); n < 4*step || n > 5*step {
			t.Errorf("%d bytes were taken, want four steps", n)
		}
	})
}

// TestPongAfterLongSilence guards against a write deadline that is left over from an
// earlier message.
func TestPongAfterLongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := pipe(t, wsconn.Options{WriteTimeout: time.Second})
		for _, c := range []*wsconn.Conn{client, server} {
			go func() {
				for {
					if _, err := c.Recv(context.Background()); err != nil {
						return
					}
				}
			}()
		}
		for range 3 {
			must.Do(t, client.Send(t.Context(), []byte("x")))
			time.Sleep(time.Minute) // fake
			must.Do(t, server.Ping(t.Context()))
		}
	})
}

func TestPingFindsHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The server is there but never reads, so no pong comes.
		client, _, _ := pipe(t, wsconn.Options{WriteTimeout: time.Minute})
		received := make(chan error, 1)
		go func() { _, err := client.Recv(t.Context()); received <- err }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := client.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("Ping = %v after %v", err, time.Since(start))
		}
		client.Close()
		<-received
		if err := client.Ping(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Ping after Close = %v, want %v", err, net.ErrClosed)
		}
	})
}

func TestConnectionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, below := pipe(t, wsconn.Options{})
		below[1].Close()
		_, err := client.Recv(t.Context())
		ce, ok := errors.AsType[*wsconn.CloseError](err)
		if !ok || ce.Code != wsconn.CloseAbnormal || errors.Is(err, io.EOF) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Recv = %v, want code %d and %v", err, wsconn.CloseAbnormal, io.ErrUnexpectedEOF)
		}
	})
}

// TestCloseUnblocksSender closes while a Send is stuck in the socket.
func TestCloseUnblocksSender(t *testing.T) {
	for name, end := range map[string]func(c *wsconn.Conn) error{
		"Close":       func(c *wsconn.Conn) error { return c.Close() },
		"CloseReason": func(c *wsconn.Conn) error { _ = c.CloseReason(wsconn.ClosePolicy, "slow"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _, _ := pipe(t, wsconn.Options{WriteTimeout: time.Hour})
				sent := make(chan error, 1)
				go func() { sent <- client.Send(t.Context(), make([]byte, 300_000)) }()
				synctest.Wait()
				start := time.Now()
				check.OK(t, end(client))
				if err := <-sent; err == nil {
					t.Error("Send succeeded")
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestPeersOverWebSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := pipe(t, wsconn.Options{})
		client := jsonrpc.NewPeer(a, jsonrpc.Options{})
		server := jsonrpc.NewPeer(b, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(
			func(_ context.Context, r *jsonrpc.Request) { _ = r.Reply(r.Method) },
		)})
		ended := make(chan error, 2)
		go func() { ended <- client.Run(t.Context()) }()
		go func() { ended <- server.Run(t.Context()) }()
		for i := range 100 {
			must.Do(t, client.SendRaw(t.Context(), []byte(`{"jsonrpc":"2.0","method":"note"}`)))
			want, got := fmt.Sprint("method", i), ""
			if err := client.Call(t.Context(), want, nil, &got); err != nil || got != want {
				t.Fatalf("Call = %q, %v, want %q", got, err, want)
			}
		}
		check.OK(t, client.CloseReason(wsconn.CloseNormal, "bye"))
		for range 2 {
			if err := <-ended; !errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, io.EOF) {
				t.Errorf("Run = %v", err)
			}
		}
	})
}

func TestSendAndRecvDoNotAllocate(t *testing.T) {
	client, server := connect(t, wsconn.Options{}, wsconn.Options{})
	ctx := context.Background()
	msg := make([]byte, frameLen)
	allocs := testing.AllocsPerRun(200, func() {
		must.Do(t, client.Send(ctx, msg))
		must.Get(server.Recv(ctx))(t)
	})
	// sync.Pool may lose a buffer to the collector, or on purpose under -race.
	if allocs > 2 {
		t.Errorf("%v allocations per message", allocs)
	}
}
