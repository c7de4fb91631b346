package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/agent/redact"
)

// coloured is a build's output as terminals get it.
func coloured(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\x1b[2m%02d:%02d\x1b[0m \x1b[32m✓\x1b[39m \x1b[1msrc/pages/task-%d.spec.ts\x1b[22m \x1b[33m%d ms\x1b[39m\r\n", i/60%24, i%60, i, i%977)
		fmt.Fprintf(&b, "   \x1b[36mGET\x1b[39m https://registry.example/@scope/name-%d \x1b[38;5;244m200\x1b[m (sha512-%x)\r\n", i, i*7919)
	}
	return []byte(b.String())
}

func BenchmarkFeed(b *testing.B) {
	r := compile(b, redact.Options{Tokens: true, Images: 1 << 20}, "hunter2-value", "ghij0123456789", "postgres-password-of-mine")
	for _, size := range []int{64, 4095, 32 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := coloured(1 << 20)
			f := redact.NewFilter(r, 0)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := text; len(rest) > 0; {
					n := min(size, len(rest))
					for n < len(rest) && rest[n]&0xc0 == 0x80 {
						n++
					}
					f.Feed(rest[:n])
					rest = rest[n:]
				}
			}
			if secrets, sequences := f.Take(); len(secrets)+len(sequences) > 0 {
				b.Fatalf("masks %v, %v", secrets, sequences)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		r := compile(b, redact.Options{Tokens: true}, "hunter2-value", "ghij0123456789", "postgres-password-of-mine")
		_ = r
	}
}

// Text in which nothing is found costs no memory.
func TestNothingFoundAllocatesNothing(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true, Images: 1 << 20}, "hunter2-value")
	f := redact.NewFilter(r, 0)
	text := coloured(64 << 10)
	f.Feed(text)
	if n := testing.AllocsPerRun(20, func() { f.Feed(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// named is output in which nearly every line has telling names.
func telling(n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "auth: token refreshed for session=%d, cookie: none, key: value-%d\r\n", i, i%97)
		fmt.Fprintf(&b, "  \x1b[36mpassword:\x1b[39m \x1b[2m(set)\x1b[0m  secret: true  api_key=$API_KEY  okta: ok  azure devops: build %d of mailchimp list %d\r\n", i, i*7919)
	}
	return []byte(b.String())
}

func BenchmarkTellingNames(b *testing.B) {
	r := compile(b, redact.Options{Tokens: true, Images: 1 << 20}, "hunter2-value", "ghij0123456789", "postgres-password-of-mine")
	text := telling(256 << 10)
	f := redact.NewFilter(r, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := text; len(rest) > 0; {
			n := min(32<<10, len(rest))
			f.Feed(rest[:n])
			rest = rest[n:]
		}
	}
	if secrets, sequences := f.Take(); len(secrets)+len(sequences) > 0 {
		b.Fatalf("masks %v, %v", secrets, sequences)
	}
}
