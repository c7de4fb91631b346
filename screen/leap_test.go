package screen_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/screen"
)

// lines returns output of about n bytes that scrolls: plain, or with colours and the rest of what builds print.
func lines(rng *rand.Rand, n int, coloured bool) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		if coloured {
			fmt.Fprintf(&b, "\x1b[%dm", []int{0, 1, 31, 4, 7, 44, 39}[rng.IntN(7)])
		}
		b.WriteString(strings.Repeat("wörds ", rng.IntN(30)))
		if coloured && rng.IntN(4) == 0 {
			b.WriteString([]string{"\x1b[K", "\x1b[m", "\x1b[0m", "\t", "\b", "\x1b[2K", "\r", "世界"}[rng.IntN(8)])
		}
		if rng.IntN(200) == 0 && coloured {
			b.WriteString([]string{"\x1b[5;7r\x1b[3;3H", "\x1b[r", "\x1b[?25l", "\x1b]0;title\a", "\x1b[?1049h", "\x1b[?1049l", "\x1b7", "\x1b8", "\x0e", "\x0f", "\u009b1m",
				"\x1b(0", "\x1b[4h", "\x1b[4l", "\x1b[?7l", "\x1b[?7h", "\x1b[2J", "\x1b[H"}[rng.IntN(18)])
		}
		b.WriteString([]string{"\r\n", "\r\n", "\r\n", "\r\n", "\n"}[rng.IntN(5)])
	}
	return b.Bytes()
}

// Advance leaves the same screen as Write, whatever is printed and however it is cut.
func TestAdvance(t *testing.T) {
	for seed := range uint64(testkit.Load(300, 40)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		cols, rows := 1+rng.IntN(100), 1+rng.IntN(40)
		one, two := screen.NewState(cols, rows), screen.NewState(cols, rows)
		for range 1 + rng.IntN(4) {
			p := lines(rng, rng.IntN(60_000), seed%3 > 0)
			p = p[rng.IntN(min(len(p), 9)):]
			p = p[:len(p)-rng.IntN(min(len(p), 9))]
			one.Write(p)
			two.Advance(p)
			if a, b := one.Dump(), two.Dump(); !reflect.DeepEqual(a, b) || !bytes.Equal(one.Replay(), two.Replay()) {
				t.Fatalf("seed %d: %dx%d\nwant %q\ngot  %q", seed, cols, rows, one.Replay(), two.Replay())
			}
		}
	}
}

func BenchmarkAdvance(b *testing.B) {
	full := func() []byte {
		var p bytes.Buffer
		for i := 0; p.Len() < 1<<20; i++ {
			fmt.Fprintf(&p, "\x1b[%d;%dH\x1b[3%dm%-20s\x1b[0m\x1b[K", i%24+1, i%50+1, i%8, fmt.Sprintf("task %d of many", i))
		}
		return p.Bytes()
	}()
	for name, data := range map[string][]byte{
		"plain":    bytes.Repeat([]byte("a line of ordinary output from a build, eighty columns wide or nearly so\r\n"), 1<<20/75),
		"coloured": bytes.Repeat([]byte("\x1b[32mok\x1b[0m \x1b[1mtest\x1b[22m passed in \x1b[33m12ms\x1b[39m\r\n"), 1<<20/54),
		"full":     full,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			s := screen.NewState(80, 24)
			for b.Loop() {
				for p := data; len(p) > 0; p = p[min(len(p), 64<<10):] {
					s.Advance(p[:min(len(p), 64<<10)])
				}
			}
		})
	}
}
