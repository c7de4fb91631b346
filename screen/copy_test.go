package screen_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"tether/screen"
)

// A clone shows the same and continues independently; concealed text is nowhere in the
// data from which a screen can be made.
func TestCloneAndConceal(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for range 300 {
		all := randomStream(rng, true)
		s := screen.New(all.Cols, all.Rows)
		feed(&all, s)
		c := s.Clone()
		before := s.Replay()
		if !bytes.Equal(c.Replay(), before) {
			t.Fatalf("a clone of %s is\n%q, want\n%q", &all, c.Replay(), before)
		}
		c.Write([]byte("\x1b[2J\x1b[Hother\x1b]0;other\a"))
		c.Resize(3, 3)
		if !bytes.Equal(s.Replay(), before) {
			t.Fatalf("what is done to a clone changes %s", &all)
		}
	}
	s := screen.NewState(20, 4)
	s.Write([]byte("secret\x1b]0;secret\a\x1b]8;;http://secret\x1b\\\x1b7\x1b[3;4r\x1b[?1049hsecret\x1b[2;3H"))
	s.Conceal()
	replay := string(s.Replay())
	if col, row := s.Cursor(); strings.Contains(replay, "secret") || col != 2 || row != 1 || !s.Doubtful() || !strings.Contains(replay, "\x1b[3;4r") {
		t.Errorf("concealed: %q, cursor %d,%d, in doubt %v", replay, col, row, s.Doubtful())
	}
	if s.Write([]byte("\x1b[H\x1b[2Jshown")); s.Doubtful() {
		t.Error("a screen that was cleared is in doubt")
	}
}
