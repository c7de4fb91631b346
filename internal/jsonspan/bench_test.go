package jsonspan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/internal/jsonspan"
)

// coloured is output as a build tool colours it, about n bytes of it.
func coloured(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\x1b[1;3%dm%-12s\x1b[0m \x1b[90m%04d\x1b[0m src/parts/module%d.ts \x1b[32m✓\x1b[0m %d ms\r\n", i%8, "compile", i, i%97, i%50)
	}
	return b.String()
}

func plainLines(n int) string {
	return strings.Repeat("127.0.0.1 - - [01/Jan/2026 00:00:00] GET /index.html HTTP/1.1 200 -\r\n", n/69+1)
}

// numbers is the output of seq: nothing has more line ends.
func numbers(n int) string {
	var b strings.Builder
	for i := 1000000; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d\r\n", i)
	}
	return b.String()
}

func corpora() map[string]string {
	const n = 16 << 10 // bytes, a usual frame
	return map[string]string{
		"plain":    plainLines(n),
		"seq":      numbers(n),
		"coloured": coloured(n),
		"cjk":      strings.Repeat("端末の出力を遠くへ送る。", n/36),
		"boxes":    strings.Repeat("│ ok │ 12 │ ──────── ┼\r\n", n/40),
	}
}

func benchmark(b *testing.B, f func(b *testing.B, text, quoted []byte)) {
	for _, name := range []string{"plain", "seq", "coloured", "cjk", "boxes"} {
		b.Run(name, func(b *testing.B) {
			text := []byte(corpora()[name])
			quoted := jsonspan.AppendQuote(nil, text)
			b.ReportAllocs()
			f(b, text, quoted)
		})
	}
}

func BenchmarkAppendQuote(b *testing.B) {
	benchmark(b, func(b *testing.B, text, _ []byte) {
		var buf []byte
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			buf = jsonspan.AppendQuote(buf[:0], text)
		}
	})
}

func BenchmarkAppendUnquote(b *testing.B) {
	benchmark(b, func(b *testing.B, text, quoted []byte) {
		var buf []byte
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			buf, _ = jsonspan.AppendUnquote(buf[:0], quoted)
		}
	})
}

func BenchmarkCheckString(b *testing.B) {
	benchmark(b, func(b *testing.B, _, quoted []byte) {
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			_, _ = jsonspan.CheckString(quoted)
		}
	})
}

func BenchmarkObject(b *testing.B) {
	benchmark(b, func(b *testing.B, _, quoted []byte) {
		msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"action","params":{"channel":"ahp-terminal:/1","action":{"type":"terminal/data","data":%s},"serverSeq":1}}`, quoted)
		b.SetBytes(int64(len(msg)))
		for b.Loop() {
			_ = jsonspan.Object(msg, func(_, _ []byte) error { return nil })
		}
	})
}

func BenchmarkEncodingJSONUnquote(b *testing.B) {
	benchmark(b, func(b *testing.B, _, quoted []byte) {
		var s string
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			_ = json.Unmarshal(quoted, &s)
		}
	})
}
