package wsconn_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

const frameLen = 16 << 10 // bytes

// hop measures one frame from a to b; the receiver runs beside.
func hop(b *testing.B, from, to jsonrpc.Channel) {
	msg := bytes.Repeat([]byte("0123456789abcdef"), frameLen/16)
	received := make(chan int, 1)
	go func() {
		n := 0
		for {
			if _, err := to.Recv(context.Background()); err != nil {
				received <- n
				return
			}
			n++
		}
	}()
	b.SetBytes(frameLen)
	b.ReportAllocs()
	for b.Loop() {
		must.Do(b, from.Send(context.Background(), msg))
	}
	b.StopTimer()
	_ = from.(jsonrpc.ReasonCloser).CloseReason(wsconn.CloseNormal, "")
	if n := <-received; n != b.N {
		b.Fatalf("received %d of %d frames", n, b.N)
	}
}

func BenchmarkHopMasked(b *testing.B) {
	client, server := connect(b, wsconn.Options{}, wsconn.Options{})
	hop(b, client, server)
}

func BenchmarkHopUnmasked(b *testing.B) {
	client, server := connect(b, wsconn.Options{}, wsconn.Options{})
	hop(b, server, client)
}

// library is coder/websocket as it is, for comparison.
type library struct{ *websocket.Conn }

func (l library) Send(ctx context.Context, msg []byte) error {
	return l.Write(ctx, websocket.MessageText, msg)
}

func (l library) Recv(ctx context.Context) ([]byte, error) {
	_, msg, err := l.Read(ctx)
	return msg, err
}

func (l library) Close() error { return l.CloseNow() }

func (l library) CloseReason(code int, reason string) error {
	return l.Conn.Close(websocket.StatusCode(code), reason)
}

func libraryPair(b *testing.B) (client, server library) {
	accepted := make(chan *websocket.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		check.OK(b, err)
		accepted <- c
	}))
	b.Cleanup(s.Close)
	c, _, err := websocket.Dial(b.Context(), s.URL, nil)
	must.Do(b, err)
	client, server = library{c}, library{<-accepted}
	b.Cleanup(func() {
		_ = client.CloseNow()
		_ = server.CloseNow()
	})
	return client, server
}

func BenchmarkHopMaskedLibrary(b *testing.B) {
	client, server := libraryPair(b)
	hop(b, client, server)
}

func BenchmarkHopUnmaskedLibrary(b *testing.B) {
	client, server := libraryPair(b)
	hop(b, server, client)
}
