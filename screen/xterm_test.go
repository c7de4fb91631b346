package screen_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/internal/xterm"
	"tether/screen"
)

// randomStream is possible output of a program, with changes of the size if sizes is
// true.
func randomStream(rng *rand.Rand, sizes bool) xterm.Stream {
	return xterm.Random(rng, sizes, func(cols, rows int) xterm.Screen { return screen.NewState(cols, rows) })
}

// shown are the screens that xterm.js shows for streams.
func shown(t *testing.T, all []xterm.Stream) []*xterm.Dump {
	return xterm.Show(t, screen.Widths(), all)
}

// feed writes a stream to a screen.
func feed(s *xterm.Stream, to *screen.Screen) {
	for _, p := range s.Parts {
		if p.Data != nil {
			to.Write(p.Data)
		} else {
			to.Resize(p.Cols, p.Rows)
		}
	}
}

// TestReplay cuts random streams anywhere: the replay of the first half, and the second
// half, make the screen of the whole stream.
func TestReplay(t *testing.T) {
	for round := range testkit.Rounds(t, 1, 100) {
		replayed(t, rand.New(rand.NewPCG(5, uint64(3+round))))
	}
}

func replayed(t *testing.T, rng *rand.Rand) {
	t.Helper()
	const joins = 10
	var whole, late []xterm.Stream
	for i := range testkit.Load(500, 50) {
		s := randomStream(rng, i%2 == 1)
		whole = append(whole, s)
		for range joins {
			late = append(late, joinAt(&s, rng))
		}
	}
	bad, known := 0, 0
	all := shown(t, whole)
	for i, got := range shown(t, late) {
		want := all[i/joins]
		if want == nil || got == nil {
			continue
		}
		known++
		if d := xterm.Differ(got, want); d != "" {
			if bad++; bad <= 5 {
				t.Errorf("%s\nlate %s\n%s", &whole[i/joins], &late[i], d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, known)
	}
	if known < len(late)*9/10 {
		t.Errorf("xterm.js showed only %d streams of %d", known, len(late))
	}
}

// TestRecordings is TestReplay with real output: of vim, less, htop, tmux, npm init and a
// Bubble Tea program.
func TestRecordings(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 4))
	files, err := filepath.Glob("../agent/redact/testdata/screens/*.raw")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	const joins = 1 + 3*5 // streams of each: the whole, and five beginnings as they are and with two joins
	var all []xterm.Stream
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		s := xterm.Stream{Cols: 80, Rows: 24, Parts: []xterm.Part{{Data: data}}}
		all = append(all, s)
		for range joins / 3 {
			to := s
			to.Parts = []xterm.Part{{Data: data[:rng.IntN(len(data))]}}
			all = append(all, to, joinAt(&to, rng), joinAt(&s, rng))
		}
	}
	dumps := shown(t, all)
	for first := 0; first < len(all); first += joins {
		for i := first + 1; i < first+joins; i += 3 {
			here := screen.New(80, 24)
			feed(&all[i], here)
			got := here.Dump()
			for _, d := range []string{xterm.Differ(&got, dumps[i]), xterm.Differ(dumps[i+1], dumps[i]), xterm.Differ(dumps[i+2], dumps[first])} {
				if d != "" {
					t.Fatalf("%s, %d bytes of it: %s", files[first/joins], len(all[i].Parts[0].Data), d)
				}
			}
		}
	}
}

// joinAt is the stream for a viewer that joins at a random offset: the screen there, and
// the rest.
func joinAt(s *xterm.Stream, rng *rand.Rand) xterm.Stream {
	length := 0
	for _, p := range s.Parts {
		length += len(p.Data)
	}
	cut := rng.IntN(length + 1)
	state := screen.NewState(s.Cols, s.Rows)
	for i, p := range s.Parts {
		if p.Data == nil {
			state.Resize(p.Cols, p.Rows)
			continue
		}
		if n := len(p.Data); cut > n {
			cut -= n
			state.Write(p.Data)
			continue
		}
		state.Write(p.Data[:cut])
		late := xterm.Stream{Parts: []xterm.Part{{Data: state.Replay()}, {Data: append([]byte{}, p.Data[cut:]...)}}}
		late.Cols, late.Rows = state.Size()
		late.Parts = append(late.Parts, s.Parts[i+1:]...)
		return late
	}
	return *s
}

// TestXterm compares random streams with xterm.js: each cell with its attributes, the
// cursor, modes and title.
func TestXterm(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	var all []xterm.Stream
	for i := range testkit.Load(2000, 400) {
		all = append(all, randomStream(rng, i%2 == 1))
	}
	bad, known := 0, 0
	for i, want := range shown(t, all) {
		if want == nil {
			continue
		}
		known++
		s := screen.New(all[i].Cols, all[i].Rows)
		feed(&all[i], s)
		got := s.Dump()
		if d := xterm.Differ(&got, want); d != "" {
			if bad++; bad <= 5 {
				t.Errorf("%s\n%s", &all[i], d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, len(all))
	}
	if known < len(all)*9/10 {
		t.Errorf("xterm.js showed only %d streams of %d", known, len(all))
	}
}

// TestAdvanceXterm is TestXterm for Advance, at the conditions under which it leaps.
func TestAdvanceXterm(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	var all []xterm.Stream
	for range testkit.Load(200, 50) {
		all = append(all, steps(rng))
	}
	bad, known := 0, 0
	for i, want := range shown(t, all) {
		if want == nil {
			continue
		}
		known++
		s := screen.NewState(all[i].Cols, all[i].Rows)
		for _, p := range all[i].Parts {
			if p.Data == nil {
				s.Resize(p.Cols, p.Rows)
			} else {
				s.Advance(p.Data)
			}
		}
		got := s.Dump()
		if d := xterm.Differ(&got, want); d != "" {
			if bad++; bad <= 3 {
				t.Errorf("stream %d: %dx%d\n%s", i, all[i].Cols, all[i].Rows, d)
			}
		}
	}
	if bad > 0 || known < len(all)*9/10 {
		t.Errorf("%d of %d differ; xterm.js showed %d of %d", bad, known, known, len(all))
	}
}
