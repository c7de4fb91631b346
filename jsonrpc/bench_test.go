package jsonrpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// BenchmarkSendRaw measures the way of a 16 KiB message through one peer, an in-memory
// pair and the other peer's dispatch.
func BenchmarkSendRaw(b *testing.B) {
	msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"action","params":{"data":"%s"}}`, strings.Repeat("x", 16<<10))
	handled := make(chan struct{}, 1)
	n := 0
	x, y := testkit.Channels()
	from := jsonrpc.NewPeer(x, jsonrpc.Options{})
	to := jsonrpc.NewPeer(y, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) {
		if n++; n == b.N {
			handled <- struct{}{}
		}
	})})
	ended := make(chan error, 2)
	go func() { ended <- from.Run(b.Context()) }()
	go func() { ended <- to.Run(b.Context()) }()
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		must.Do(b, from.SendRaw(b.Context(), msg))
	}
	<-handled
	b.StopTimer()
	from.Close()
	<-ended
	<-ended
}

func BenchmarkCall(b *testing.B) {
	x, y := testkit.Channels()
	client := jsonrpc.NewPeer(x, jsonrpc.Options{})
	server := jsonrpc.NewPeer(y, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
		_ = r.Reply(nil)
	})})
	ended := make(chan error, 2)
	go func() { ended <- client.Run(b.Context()) }()
	go func() { ended <- server.Run(b.Context()) }()
	b.ReportAllocs()
	for b.Loop() {
		must.Do(b, client.Call(b.Context(), "ping", rawParams(`{"channel":"ahp-root://"}`), nil))
	}
	client.Close()
	<-ended
	<-ended
}
