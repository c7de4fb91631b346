package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

// blockSize is the approximate size of a block in bytes; longer output repeats the block.
const blockSize = 1 << 20

// corpus is one kind of output. Its lines end in \n, as programs write them; the pty
// makes \r\n of that.
type corpus struct {
	name string
	line func(rng *rand.Rand, out []byte, n int) []byte
}

// corpora differ in their frequent bytes: line ends, colours, short cursor movements.
var corpora = []corpus{
	{"plain", plainLine},
	{"coloured", colouredLine},
	{"redraw", redrawLine},
}

func findCorpus(name string) (corpus, error) {
	for _, c := range corpora {
		if c.name == name {
			return c, nil
		}
	}
	return corpus{}, fmt.Errorf("no corpus is called %q", name)
}

// block returns about blockSize bytes of whole lines, the same in each call.
func (c corpus) block() []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	out := make([]byte, 0, blockSize+1024)
	for n := 0; len(out) < blockSize; n++ {
		out = c.line(rng, out, n)
	}
	return out
}

// onTerminal returns what a pty makes of p: \r\n at line ends.
func onTerminal(p []byte) []byte { return bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")) }

// text is the length and checksum of a stream, which tell whether exactly that stream
// arrived.
type text struct {
	bytes int64
	sum   uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // processors have an instruction for it

func (t *text) add(p []byte) {
	t.bytes += int64(len(p))
	t.sum = crc32.Update(t.sum, castagnoli, p)
}

// plainLine is a line of seq.
func plainLine(_ *rand.Rand, out []byte, n int) []byte { return fmt.Appendf(out, "%d\n", 1000000+n) }

// colouredLine is a build log: a few sequences and now and then a character beyond ASCII.
func colouredLine(rng *rand.Rand, out []byte, n int) []byte {
	if n%8 == 7 {
		return fmt.Appendf(out, "\x1b[1;32m✓\x1b[0m \x1b[2mobj/%x/unit_test\x1b[0m passed in %d ms\n", rng.IntN(1<<16), rng.IntN(900))
	}
	return fmt.Appendf(out, "\x1b[32m  CC\x1b[0m [%3d%%] \x1b[1;34msrc/module/obj/%x.o\x1b[0m: \x1b[33mwarning:\x1b[0m unused variable 'v%d' [-Wunused-variable]\n",
		n%100, rng.IntN(1<<16), rng.IntN(1000))
}

// redrawLine is output of a progress bar or a full-screen program: short cursor movements
// and colours.
func redrawLine(rng *rand.Rand, out []byte, _ int) []byte {
	return fmt.Appendf(out, "\x1b[%d;%dH\x1b[38;5;%dmab \x1b[Kcell \x1b[7mx\x1b[m", rng.IntN(50), rng.IntN(200), rng.IntN(256))
}
