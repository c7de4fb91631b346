package host_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// The corpora of the benchmarks: 32 KiB of lines each, as one dispatch carries.
var (
	plainText    = []byte(strings.Repeat("compiling package 1234 of 5678 in directory somewhere/else\r\n", 1000)[:32<<10])
	colouredText = []byte(strings.Repeat("\x1b[32m  ok\x1b[0m  \x1b[1mtether/host\x1b[0m\t\x1b[2m0.123s\x1b[0m\r\n", 1000)[:32<<10])
)

// transport opens a connection to a host.
type transport func(b *testing.B) jsonrpc.Channel

func inMemory(h *host.Host) transport {
	return func(b *testing.B) jsonrpc.Channel {
		near, far := testkit.Channels()
		go func() { _ = h.ServeChannel(context.Background(), far) }()
		b.Cleanup(func() { near.Close() })
		return near
	}
}

func overLoopback(h *host.Host) transport {
	return func(b *testing.B) jsonrpc.Channel {
		s := httptest.NewServer(h)
		b.Cleanup(s.Close)
		ch := must.Get(wsconn.Dial(b.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), wsconn.Options{ReadLimit: 16 << 20}))(b)
		b.Cleanup(func() { ch.Close() })
		return ch
	}
}

func BenchmarkFanOut(b *testing.B) {
	for _, net := range []struct {
		name string
		open func(*host.Host) transport
	}{{"memory", inMemory}, {"loopback", overLoopback}} {
		for _, text := range []struct {
			name string
			data []byte
		}{{"plain", plainText}, {"coloured", colouredText}} {
			for _, observers := range []int{0, 1, 10, 50} {
				b.Run(fmt.Sprintf("%s/%s/%d", net.name, text.name, observers), func(b *testing.B) {
					h := host.New(host.Options{})
					defer h.Close()
					fanOut(b, net.open(h), text.data, observers)
				})
			}
		}
	}
}

// fanOut sends b.N frames through the host as the daemon does, at most 64 KiB ahead of
// the acknowledgement, to observers that count them.
func fanOut(b *testing.B, open transport, data []byte, observers int) {
	owner := open(b)
	succeed(b, owner, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://","protocolVersions":["1.0.0"],`+
		`"clientId":"laptop","_meta":{"tether/clientTerminals":{"versions":[1]}}}}`)
	succeed(b, owner, `{"jsonrpc":"2.0","id":2,"method":"createTerminal","params":{"channel":"`+uri+`","executionTarget":"client",`+
		`"claim":{"kind":"client","clientId":"laptop"}}}`)
	var wg sync.WaitGroup
	var skipped int64
	var mu sync.Mutex
	for i := range observers {
		ch := open(b)
		succeed(b, ch, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://",`+
			`"protocolVersions":["1.0.0"],"clientId":"watcher%d","initialSubscriptions":["%s"]}}`, i, uri))
		wg.Go(func() {
			n := observe(b, ch)
			mu.Lock()
			defer mu.Unlock()
			skipped += n
		})
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	var buf []byte
	sent, applied := int64(0), int64(0)
	for range b.N {
		for sent-applied > 32<<10 {
			applied = awaitAck(b, owner)
		}
		buf = ahp.AppendOutput(buf[:0], uri, 1, data, sent)
		must.Do(b, owner.Send(b.Context(), buf))
		sent += int64(len(data))
	}
	exit := []byte(`{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","clientSeq":2,"action":{"type":"terminal/exited"}}}`)
	must.Do(b, owner.Send(b.Context(), exit))
	wg.Wait()
	b.StopTimer()
	if observers > 0 {
		b.ReportMetric(float64(skipped)/float64(observers)/float64(b.N), "resyncs/frame")
		b.ReportMetric(float64(observers)*float64(len(data))*float64(b.N)/1e6/b.Elapsed().Seconds(), "MB/s-all")
	}
}

// observe reads until the exit and returns how often it was brought back.
func observe(b *testing.B, ch jsonrpc.Channel) (resyncs int64) {
	for {
		msg, err := ch.Recv(b.Context())
		if err != nil {
			b.Errorf("observer: %v", err)
			return resyncs
		}
		end := msg[max(0, len(msg)-64):]
		if bytes.Contains(end, []byte(`"terminal/cleared"`)) {
			resyncs++
		}
		if bytes.Contains(end, []byte(`"terminal/exited"`)) {
			return resyncs
		}
	}
}

func awaitAck(b *testing.B, ch jsonrpc.Channel) int64 {
	for {
		msg := must.Get(ch.Recv(b.Context()))(b)
		if _, tail, ok := bytes.Cut(msg, []byte(`"applied":`)); ok {
			var n int64
			must.Get(fmt.Sscanf(string(tail), "%d", &n))(b)
			return n
		}
	}
}

// succeed sends a request and expects a result.
func succeed(b *testing.B, ch jsonrpc.Channel, request string) {
	b.Helper()
	must.Do(b, ch.Send(b.Context(), []byte(request)))
	for {
		msg := must.Get(ch.Recv(b.Context()))(b)
		if bytes.Contains(msg, []byte(`"error"`)) {
			b.Fatalf("%s: %s", request, msg)
		}
		if bytes.Contains(msg, []byte(`"result"`)) {
			return
		}
	}
}
