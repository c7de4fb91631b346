package screen_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/xterm"
	"tether/screen"
)

// lines returns output of about n bytes that scrolls: plain, or with colours and other
// sequences of builds.
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

// Advance leaves the same screen as Write, with any output and any division of it.
func TestAdvance(t *testing.T) {
	for seed := range uint64(testkit.Load(300, 25)) {
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

// edges is output of about n bytes that lies at the conditions of a leap: rows that end
// at the margin or beyond it, with wide characters there, tabs, styles of many kinds that
// begin and end around line feeds, repetition, and now and then a sequence that ends it.
func edges(rng *rand.Rand, n, cols int) []byte {
	var b bytes.Buffer
	styles := []string{"\x1b[m", "\x1b[0m", "\x1b[31m", "\x1b[39m", "\x1b[1;4m", "\x1b[22;24m", "\x1b[38;5;123m", "\x1b[48;2;1;2;3m", "\x1b[7m", "\x1b[27m", "\x1b[;32m", "\x1b[1;;3m",
		"\x1b[38:5:9m", "\x1b[48;5m", "\x1b[4:3;58;5;7m", "\x1b[59m", "\x1b[53m", "\x1b[55m", "\x1b[199m", "\x1b[K", "\x1b[1K"}
	for b.Len() < n {
		if rng.IntN(3) == 0 {
			b.WriteString(styles[rng.IntN(len(styles))])
		}
		if rng.IntN(40) == 0 {
			fmt.Fprintf(&b, "\x1b[38;5;%dm\x1b[48;2;%d;%d;9m", rng.IntN(256), rng.IntN(256), rng.IntN(256))
		}
		b.WriteString(strings.Repeat("x", max(cols-3+rng.IntN(6), 0)))
		b.WriteString([]string{"", "", "世", "e\u0301", "\t", "\t\t", "\b", "é", "\u00a0", "\a"}[rng.IntN(10)])
		if rng.IntN(3) == 0 {
			b.WriteString(styles[rng.IntN(len(styles))])
		}
		b.WriteString([]string{"\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\n\r"}[rng.IntN(7)])
		if rng.IntN(400) == 0 {
			b.WriteString([]string{"x\x1b[3b", "\x1b[2b", "\x1b[A", "\x1b[2;4H", "\x1b[J", "\x1b[2;3r", "\x1b[r", "\x1bc"}[rng.IntN(8)])
		}
	}
	return b.Bytes()
}

// steps is output at the conditions of a leap, in steps with sizes between them.
func steps(rng *rand.Rand) xterm.Stream {
	s := xterm.Stream{Cols: 2 + rng.IntN(30), Rows: 2 + rng.IntN(12)}
	cols := s.Cols
	for range 1 + rng.IntN(3) {
		s.Parts = append(s.Parts, xterm.Part{Data: edges(rng, rng.IntN(30_000), cols)})
		if rng.IntN(2) == 0 { // wider only, see randomStream
			cols += rng.IntN(9)
			s.Parts = append(s.Parts, xterm.Part{Cols: cols, Rows: s.Rows})
		}
	}
	return s
}

// Advance in large steps equals byte by byte, at the conditions of a leap.
func TestAdvanceEdges(t *testing.T) {
	for seed := range uint64(testkit.Load(200, 20)) {
		s := steps(rand.New(rand.NewPCG(seed, 9)))
		one, two := screen.NewState(s.Cols, s.Rows), screen.NewState(s.Cols, s.Rows)
		for i, p := range s.Parts {
			if p.Data == nil {
				one.Resize(p.Cols, p.Rows)
				two.Resize(p.Cols, p.Rows)
				continue
			}
			for i := range p.Data {
				one.Write(p.Data[i : i+1])
			}
			two.Advance(p.Data)
			if a, b := one.Dump(), two.Dump(); !reflect.DeepEqual(a, b) || !bytes.Equal(one.Replay(), two.Replay()) {
				t.Fatalf("seed %d, part %d: %dx%d\nwant %q\ngot  %q", seed, i, s.Cols, s.Rows, one.Replay(), two.Replay())
			}
		}
	}
}

// FuzzAdvance compares Advance in one step with Write byte by byte. Its input is repeated
// often enough that it can be leapt over.
func FuzzAdvance(f *testing.F) {
	for _, s := range []string{
		"a line\r\n", "\x1b[31mred\x1b[39m\r\n", "\x1b[38;5;9m\x1b[1;4mx\x1b[0m\r\n", "世界\r\n\x1b[K", "\x1b[4:3mx\r\n", "x\r\n\x1b[2b", "\x1b[?45hxxxxxxxxxxxx\b\b\b\r\n", "\u009b1m\r\n",
		"\x1b[20h\n\x1b[7m", "\x1b[44m\r\n\x1b[49m\r\n",
	} {
		f.Add([]byte(s), []byte("\x1b[mend"), uint8(10), uint8(3))
	}
	f.Fuzz(func(t *testing.T, unit, end []byte, cols, rows uint8) {
		if len(unit) == 0 || len(unit) > 500 {
			return
		}
		data := append(bytes.Repeat(unit, 6000/len(unit)+1), end...)
		one, two := screen.NewState(int(cols%40), int(rows%20)), screen.NewState(int(cols%40), int(rows%20))
		for i := range data {
			one.Write(data[i : i+1])
		}
		two.Advance(data)
		if a, b := one.Dump(), two.Dump(); !reflect.DeepEqual(a, b) || !bytes.Equal(one.Replay(), two.Replay()) || one.Pending() != two.Pending() {
			t.Fatalf("%q and %q: want %q, got %q", unit, end, one.Replay(), two.Replay())
		}
	})
}

// load is 1 MB of output of a kind: "plain" and "coloured" lines, those of a tool that
// never resets its colours ("closed"), or full-screen output.
func load(kind string) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string { return "configuration_of_the_thing"[:2+rng.IntN(12)] }
	var p bytes.Buffer
	for i := 0; p.Len() < 1<<20; i++ {
		switch kind {
		case "plain":
			for range 4 + rng.IntN(8) {
				p.WriteString(word() + " ")
			}
			p.WriteString("\r\n")
		case "coloured":
			fmt.Fprintf(&p, "\x1b[3%dm%s\x1b[0m %s %s \x1b[1m%s\x1b[0m in \x1b[38;5;%dm%d ms\x1b[0m\r\n", rng.IntN(8), word(), word(), word(), word(), rng.IntN(256), rng.IntN(1000))
		case "closed":
			fmt.Fprintf(&p, "\x1b[3%dm%s\x1b[39m %s %s \x1b[1m%s\x1b[22m in \x1b[%dm%d ms\x1b[39m\r\n", rng.IntN(8), word(), word(), word(), word(), 90+rng.IntN(8), rng.IntN(1000))
		case "full":
			fmt.Fprintf(&p, "\x1b[%d;%dH\x1b[3%dm%-20s\x1b[0m\x1b[K", i%24+1, rng.IntN(50)+1, rng.IntN(8), fmt.Sprintf("task %d of %s", i, word()))
		}
	}
	return p.Bytes()
}

// BenchmarkAdvance is the cost of knowing the screen at the beginning of a log, per
// dropped MB. "copy" is the yardstick.
func BenchmarkAdvance(b *testing.B) {
	const piece = 128 << 10 // as a log of 4 MB hands over
	run := func(name, kind string, do func(p []byte)) {
		b.Run(name, func(b *testing.B) {
			data := load(kind)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for p := data; len(p) > 0; p = p[min(len(p), piece):] {
					do(p[:min(len(p), piece)])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N)/(float64(len(data))/1e6), "ms/MB")
		})
	}
	to := make([]byte, piece)
	run("copy", "plain", func(p []byte) { copy(to, p) })
	for _, kind := range []string{"plain", "coloured", "closed", "full"} {
		s := screen.NewState(80, 24)
		run(kind, kind, s.Advance)
	}
}
