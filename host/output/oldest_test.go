package output_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tether/host/output"
	"tether/internal/jsonspan"
	"tether/internal/testkit"
)

// pieces cuts text as an owner sends it, in the form of JSON strings without their
// quotes.
func pieces(random *rand.Rand, text []byte, most int) (all [][]byte) {
	for len(text) > 0 {
		n := min(1+most/2+random.IntN(most), len(text))
		for n < len(text) && text[n]&0xc0 == 0x80 {
			n++
		}
		quoted := jsonspan.AppendQuote(nil, text[:n])
		all, text = append(all, quoted[1:len(quoted)-1]), text[n:]
	}
	return all
}

// checkLeap compares skipped with written text.
func checkLeap(t *testing.T, cols, rows int, begin []byte, texts [][]byte) (leapt bool) {
	t.Helper()
	leapt, over, through := output.TakeUp(cols, rows, begin, texts)
	if leapt && (!bytes.Equal(over.Replay(), through.Replay()) || over.Pending() != through.Pending()) {
		t.Fatalf("%dx%d behind %q: %.200q…\nleaves %q\nleapt over %q", cols, rows, begin, bytes.Join(texts, nil), through.Replay(), over.Replay())
	}
	return leapt
}

// The screen behind a flood is the same whether it was skipped or not, for any division
// by the owner; and builds' output is skipped.
func TestFloodsAreLeaptOver(t *testing.T) {
	line := []string{"\x1b[32m  CC\x1b[0m [%3d%%] \x1b[1;34mobj/%x.o\x1b[0m: \x1b[33mwarning:\x1b[0m unused 'v%d'\r\n", "%d%d%d\r\n", "\x1b[1;32m✓\x1b[m %d \"世界\" \\ %d %d\x1b[K\r\n",
		"%d\t%d\x1b[38:5:1m%d\r\n"}
	for round := range testkit.Rounds(t, 60, 2000) {
		random := rand.New(rand.NewPCG(uint64(round), 16))
		var text []byte
		for len(text) < 60_000 {
			text = fmt.Appendf(text, line[random.IntN(len(line))], random.IntN(1000), random.IntN(1000), random.IntN(1000))
			if round%4 == 0 && random.IntN(500) == 0 {
				text = append(text, []string{"\x1b[5;9r", "\x0e", "\x1b[?1049h", "\x1b]0;title\a", "\u0085", "\x1b[3\rm"}[random.IntN(6)]...)
			}
		}
		n := random.IntN(5)
		begin := []byte([]string{"", "\x1b[7mhead", "\x1b]8;;http://a\x1b\\link", "\x1b[4;9r\x1b[H", "\x1b[3"}[n])
		leapt := checkLeap(t, 20+random.IntN(100), 6+random.IntN(40), begin, pieces(random, text, 1<<(5+random.IntN(12))))
		if round%4 > 0 && leapt != (n < 3) {
			t.Errorf("round %d: leapt over a flood: %v; it begins with %q", round, leapt, begin)
		}
	}
}

// FuzzLeap prints its input often enough that it can be skipped, cut at any place.
func FuzzLeap(f *testing.F) {
	for _, unit := range []string{"a line\r\n", "\x1b[31mred\x1b[0m\r\n", "\x1b[38;5;9m\x1b[1;4mx\x1b[0m\r\n", "世界\r\n\x1b[K\x1b[m", "\\u001b[\x1b[0m\n\r\n", "x\x1b[m\r\n\x1b[2b", "\u009b1m\r\n"} {
		f.Add([]byte(unit), []byte("\x1b[44mbegin"), uint8(10), uint8(3), uint16(7))
	}
	f.Fuzz(func(t *testing.T, unit, begin []byte, cols, rows uint8, cut uint16) {
		if len(unit) == 0 || len(unit) > 500 {
			return
		}
		text := bytes.Repeat([]byte(strings.ToValidUTF8(string(unit), "")), 20_000/len(unit)+1)
		begin = []byte(strings.ToValidUTF8(string(begin), ""))
		checkLeap(t, 1+int(cols%40), 1+int(rows%20), begin, pieces(rand.New(rand.NewPCG(1, 2)), text, 1+int(cut)))
	})
}

// BenchmarkTrim is the cost of dropping text for each new MB, with the screen that it
// leaves.
func BenchmarkTrim(b *testing.B) {
	for _, unit := range []string{"1000000\r\n", "\x1b[32m  CC\x1b[0m [ 12%] \x1b[1;34msrc/module/obj/a1b2.o\x1b[0m: \x1b[33mwarning:\x1b[0m unused variable 'v12'\r\n", "\x1b[2;3H\x1b[Kcounter\r\n"} {
		b.Run(fmt.Sprintf("%.12q", unit), func(b *testing.B) {
			text := strings.Repeat(unit, 64<<10/len(unit))
			c := output.NewDropped(1 << 20)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.Text(text)
			}
		})
	}
}
