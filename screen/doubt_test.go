package screen_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/xterm"
	"tether/screen"
)

// drawn are pieces of output that draw at places that a program knows, or does not know
// behind a gap.
var drawn = []string{
	"a", "bcd", "hello", "\r\n", "\r\n", "\r\n", "\r", "\x1bM", "\x1b[L", "\x1b[2L", "\x1b[M", "\x1b[T", "\x1b[S", "\x1b[J", "\r\x1b[J", "\x1b[2J", "\x1b[H\x1b[J", "\x1b[H\x1b[2J",
	"\x1b[K", "\x1b[2;1H", "\x1b[4;3H", "\x1b[3d", "\x1b[A", "\x1b[2B", "\x1b[?1049l\x1b[2;4r", "\x1b[r", "\x1b[?1049h", "\x1b[?1049l", "\x1bD", "\x1b[H", "\x1b[2P", "\x1b[@", "\r\n\r\n\r\n\r\n",
}

// Behind a gap a screen is not called right too early: once no part of it is in doubt,
// its rows and its cursor equal those of a screen that got everything.
func TestDoubtEndsWhenTheScreenIsRight(t *testing.T) {
	ended := 0
	for seed := range testkit.Rounds(t, testkit.Load(1000, 300), 300_000) {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		all, late := screen.NewState(12, 5), screen.NewState(12, 5)
		var said strings.Builder
		behind := false
		write := func(to ...*screen.Screen) {
			p := drawn[rng.IntN(len(drawn))]
			if strings.HasSuffix(p, "4r") && !behind {
				return // a region of before is assumed to be gone
			}
			said.WriteString(p)
			for _, s := range to {
				s.Write([]byte(p))
			}
		}
		for range rng.IntN(10) {
			write(all, late)
		}
		said.WriteString(" (gap: ")
		for range 1 + rng.IntN(12) {
			write(all)
		}
		said.WriteString(") ")
		late.Doubt()
		behind = true
		if rng.IntN(2) == 0 { // as one that is not kept
			late = screen.NewState(12, 5)
			late.Doubt()
		}
		for range 30 {
			write(all, late)
			if late.Doubtful() {
				continue
			}
			ended++
			got, want := late.Dump(), all.Dump()
			got.Modes, want.Modes = "", ""
			if d := xterm.Differ(&got, &want); d != "" {
				t.Fatalf("seed %d: %q\n%s", seed, said.String(), d)
			}
		}
	}
	if ended < 150 {
		t.Errorf("doubt ended %d times", ended)
	}
}
