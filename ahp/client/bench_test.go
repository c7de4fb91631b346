package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit/must"
)

// envelopes returns a function that makes the params of the next data envelope, always in
// the same buffer.
func envelopes(t testing.TB, text string) func() []byte {
	quoted := must.Get(json.Marshal(text))(t)
	msg := ahp.AppendData(nil, uri, 1<<40, nil, quoted)
	head, tail, _ := bytes.Cut(msg, []byte(fmt.Sprint(1<<40)))
	head = head[bytes.Index(head, []byte(`"params":`))+len(`"params":`):]
	tail = tail[:len(tail)-1]
	var buf []byte
	seq := int64(1 << 40)
	return func() []byte {
		seq++
		buf = append(buf[:0], head...)
		buf = fmt.Append(buf, seq)
		buf = append(buf, tail...)
		return buf
	}
}

const coloured = "\x1b[1;31mcompile\x1b[0m \x1b[90m0042\x1b[0m src/parts/module7.ts \x1b[32m✓\x1b[0m 12 ms\r\n"

// The path of output from an envelope to the consumer reuses memory.
func TestObserverDataDoesNotAllocate(t *testing.T) {
	f := client.NewFeed(client.ObserverOptions{ContentLimit: 64 << 10}, uri)
	next := envelopes(t, strings.Repeat(coloured, 50))
	turn := func() {
		f.Give(next())
		if e, err := f.Next(t.Context()); err != nil || e.Kind != client.Data {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	for range 100 {
		turn()
	}
	// Queues of events that were empty grow again, and making the message allocates once.
	if n := testing.AllocsPerRun(200, turn); n > 5 {
		t.Errorf("%v allocations per envelope, want at most 5", n)
	}
}

func BenchmarkObserver(b *testing.B) {
	for name, line := range map[string]string{"coloured": coloured, "plain": strings.Repeat("GET /index.html ", 6) + "\r\n"} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line, (16<<10)/len(line))
			f := client.NewFeed(client.ObserverOptions{}, uri)
			next := envelopes(b, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f.Give(next())
				must.Get(f.Next(b.Context()))(b)
			}
		})
	}
}
