package screen_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/xterm"
	"tether/screen"
)

// settings are sequences that set something which is no cell.
var settings = []string{
	"\x1b[>1u", "\x1b[>7u", "\x1b[<u", "\x1b[<3u", "\x1b[=5u", "\x1b[=2;2u", "\x1b[=1;3u", "\x1b[>4;2m", "\x1b[>4m", "\x1b[>1;2m", "\x1b[>2n", "\x1b[>m", "\x1b[?2031h",
	"\x1b[?2031l", "\x1b[?2048h", "\x1b[?9001h", "\x1b[?9001l", "\x1b[?5h", "\x1b[?5l", "\x1b[?1007l", "\x1b[?1007h", "\x1b[2h", "\x1b[?2026h", "\x1b[?2026l", "\x1b]11;#fff\a",
	"\x1b]111\a", "\x1b]4;1;red;2;blue\a", "\x1b]104;1\a", "\x1b]12;red\a", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b]9;4;1;30\a", "\x1b]9;4;0\a", "\x1b]22;wait\a",
	"\x1b[2$~", "\x1b[3;5r", "\x1b[r", "\x1b(K", "\x1b(B", "\x1bc", "\x1b[!p",
}

func randomSettings(rng *rand.Rand) (text string) {
	for range rng.IntN(20) {
		p := settings[rng.IntN(len(settings))]
		if rng.IntN(3) == 0 {
			p = "x"
		}
		text += p
	}
	return text
}

// A replay brings what is set, too: a terminal that was left and comes back has kitty's
// keyboard, modifyOtherKeys and all modes again.
func TestReplayBringsSettings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for range testkit.Load(5000, 1000) {
		text := randomSettings(rng)
		s := screen.NewState(20, 6)
		s.Write([]byte(text))
		late := screen.NewState(20, 6)
		late.Write(s.Replay())
		if got, want := late.Settings(), s.Settings(); got != want {
			t.Fatalf("%q brings %q, want %q", text, got, want)
		}
		if d := xterm.Differ(new(late.Dump()), new(s.Dump())); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
		if c := s.Clone(); c.Settings() != s.Settings() {
			t.Fatalf("%q: the clone has %q", text, c.Settings())
		}
	}
}

// Catch brings the settings of one screen to a terminal that has those of another.
func TestCatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for range testkit.Load(5000, 1000) {
		one, other := randomSettings(rng), randomSettings(rng)
		s, from := screen.NewState(20, 6), screen.NewState(20, 6)
		s.Write([]byte(one + "\x1b[?47l"))
		from.Write([]byte(other + "\x1b[?47l"))
		catch := s.Catch(from)
		from.Write(catch)
		if again := s.Catch(from); len(again) > 0 {
			t.Fatalf("from %q to %q by %q: not yet %q", other, one, catch, again)
		}
	}
	var same screen.Screen
	if c := same.Clone().Catch(&same); len(c) > 0 {
		t.Errorf("between equal screens: %q", c)
	}
}

// A program's output decides how much is remembered of what it sets.
func TestSettingsAreBounded(t *testing.T) {
	s := screen.NewState(20, 6)
	before := s.Cost()
	var text strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&text, "\x1b[?%dh\x1b]11;%s\a\x1b[>1u", n, strings.Repeat("x", 90))
	}
	s.Write([]byte(text.String()))
	if grown := s.Cost() - before; grown > 128<<10 {
		t.Errorf("settings take %d bytes", grown)
	}
	if n := len(s.Undo()); n > 16<<10 {
		t.Errorf("they are undone by %d bytes", n)
	}
}
