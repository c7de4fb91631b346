package shellint_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tether/shellint"
)

// benchCorpus is the size in bytes of each generated corpus: larger than the cache, so
// that memory counts as it does live.
const benchCorpus = 64 << 20

// readSizes are the sizes of reads from a pty: a full buffer, and the most that Linux
// returns at once.
var readSizes = []int{64 << 10, 4095}

type corpus struct {
	name string
	line func(rng *rand.Rand, out []byte, n int) []byte
}

// corpora are kinds of output that differ in their frequent bytes.
var corpora = []corpus{
	{"plain", plainLine},
	{"sgr", colouredLine},
	{"redraw", redrawLine},
	{"marks", markedLine},
	{"utf8", wideLine},
	{"json", jsonLine},
}

func (c corpus) generate(size int) []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	out := make([]byte, 0, size+1024)
	for n := 0; len(out) < size; n++ {
		out = c.line(rng, out, n)
	}
	return out[:size]
}

// plainLine makes a line like those that seq and cat print.
func plainLine(rng *rand.Rand, out []byte, n int) []byte {
	return fmt.Appendf(out, "%d the quick brown fox jumps over %d lazy dogs\r\n", n, rng.IntN(1000))
}

// colouredLine is a build log: an ESC every 14 bytes or so.
func colouredLine(rng *rand.Rand, out []byte, n int) []byte {
	return fmt.Appendf(out, "\x1b[32m  CC\x1b[0m [%d%%] \x1b[1;34mobj/%x.o\x1b[0m: \x1b[33mwarn\x1b[0m unused\r\n", n%100, rng.IntN(1<<16))
}

// redrawLine is a progress bar or a full-screen program: short cursor movements and
// colours.
func redrawLine(rng *rand.Rand, out []byte, _ int) []byte {
	return fmt.Appendf(out, "\x1b[%d;%dH\x1b[38;5;%dmab \x1b[Kcell \x1b[7mx\x1b[m", rng.IntN(50), rng.IntN(200), rng.IntN(256))
}

// benchNonce is as long as a script's would be at least.
const benchNonce = "9f8e7d6c5b4a"

// markedLine is nothing but prompts and short commands, each mark with its nonce: an ESC
// every 30 bytes.
func markedLine(rng *rand.Rand, out []byte, n int) []byte {
	const nonce = benchNonce
	out = append(out, "\x1b]633;P;Cwd=/home/dev/src;"+nonce+"\a\x1b]633;A;"+nonce+"\a$ \x1b]633;B;"+nonce+"\a"...)
	out = fmt.Appendf(out, "ls -%d\r\n\x1b]633;E;ls -%d;"+nonce+"\a\x1b]633;C;"+nonce+"\a", n%10, n%10)
	return fmt.Appendf(out, "a  b  c\r\n\x1b]633;D;%d;"+nonce+"\a", rng.IntN(2))
}

// wideLine is text whose characters take three bytes, and two with a first byte C2.
func wideLine(rng *rand.Rand, out []byte, n int) []byte {
	return fmt.Appendf(out, "%d 端末の出力を読む行です、第%d号。 → ✓ 20 °C\r\n", n, rng.IntN(1000))
}

// jsonLine has brackets and no ESC.
func jsonLine(rng *rand.Rand, out []byte, n int) []byte {
	return fmt.Appendf(out, `{"id":%d,"tags":["a","b",%d],"pos":[[1,2],[3,4]],"ok":true}`+"\n", n, rng.IntN(1000))
}

// BenchmarkMemcpy is the yardstick: copying the same reads to a buffer.
func BenchmarkMemcpy(b *testing.B) {
	for _, size := range readSizes {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			data := plain.generate(benchCorpus)
			dst := make([]byte, size)
			benchReads(b, data, size, func(p []byte) { copy(dst, p) })
		})
	}
}

var plain = corpora[0]

// BenchmarkScanner measures Scan on each corpus in reads of each size.
func BenchmarkScanner(b *testing.B) {
	for _, c := range corpora {
		data := c.generate(benchCorpus)
		for _, size := range readSizes {
			b.Run(fmt.Sprintf("%s/%d", c.name, size), func(b *testing.B) {
				s := shellint.NewScanner(shellint.Options{Nonce: benchNonce})
				var r shellint.Result
				benchReads(b, data, size, func(p []byte) { s.Scan(p, &r) })
			})
		}
	}
}

// benchReads calls f with successive reads of data.
func benchReads(b *testing.B, data []byte, size int, f func(p []byte)) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		if at+size > len(data) {
			at = 0
		}
		f(data[at : at+size])
		at += size
	}
}
