package shellint_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/shellint"
)

// hostile are the pieces of random streams: sequences and bytes that begin, end, cancel
// or split sequences.
var hostile = []string{
	"\x1b", "\x1b", "]", "[", "P", "\\", "\xc2", "\x9d", "\x9c", "\x9b", "\x90", "\x07", "\x18", "\x1a", "\n", "\x7f", "\x05",
	"0", "1", "3", "6", "33", "633", "133;", "633;", ";", "?", "m", "6n", "c", "$q", "+q", "A", "C", "D;0", "E;ls", "x", "é", "\xe2\x9c",
	"\x1b]633;A\a", "\x1b]133;D;1\x1b\\", "\x1b]0;t\a", "\x1b]7;file://h/p\a", "\x1b]52;c;?\a", "\x1b]11;?\a", "\x1b]4;1;", "\x1b[31m", "\x1b[?6n",
	"\xc2\x9d633;D;0\a", "\x1b]9;9;/d\a", "\x1b]1337;SetMark\a", "\x1b]8;;u\a", "\x1bP$qm\x1b\\", "\x1b]633;E;", "\x1b]00000000",
	"0000000000000000000000000000000000", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
}

func hostileStream(rng *rand.Rand) []byte {
	var b []byte
	for range 1 + rng.IntN(30) {
		b = append(b, hostile[rng.IntN(len(hostile))]...)
	}
	return b
}

// views are the sets of classes that consumers leave out.
var views = [][]shellint.Class{
	{shellint.ClassMark},
	{shellint.ClassMark, shellint.ClassReport},
	{shellint.ClassMark, shellint.ClassTitle, shellint.ClassQuery},
	{shellint.ClassMark, shellint.ClassReport, shellint.ClassTitle, shellint.ClassClipboard, shellint.ClassQuery},
}

// checkProperties holds a stream to everything that is true of all streams.
func checkProperties(t *testing.T, raw []byte, o shellint.Options, rng *rand.Rand) {
	t.Helper()
	whole := scanPieces(t, raw, o, nil)
	for _, sizes := range [][]int{bytePieces(len(raw)), randomPieces(rng, len(raw))} {
		if got := scanPieces(t, raw, o, sizes); !got.same(whole) {
			t.Fatalf("%q in pieces of %v (-whole +pieces):\n%s", raw, sizes, cmp.Diff(whole.String(), got.String()))
		}
	}
	checkModel(t, whole, o.LimitPayload)
	for _, view := range views {
		out := whole.without(view...)
		if again := modelMarks(out); len(again) > 0 {
			t.Fatalf("%q without %v is %q, which has marks: %v", raw, view, out, again)
		}
		if twice := scanPieces(t, out, o, nil).without(view...); !bytes.Equal(twice, out) {
			t.Fatalf("%q without %v is %q, and that again %q", raw, view, out, twice)
		}
	}
}

// checkModel compares the removed marks with those that the model finds.
func checkModel(t *testing.T, res *result, limit int) {
	t.Helper()
	ours := make([]bool, len(res.raw))
	for _, sp := range res.spans {
		for i := sp.Start; sp.Class == shellint.ClassMark && i < sp.End; i++ {
			ours[i] = true
		}
	}
	ends := map[int]bool{}
	for _, m := range res.marks {
		if m.PS == 133 || m.PS == 633 {
			ends[int(m.End)] = true
		}
	}
	for _, m := range modelMarks(res.raw) {
		for i := m.start; i < m.end; i++ {
			if !ours[i] {
				t.Fatalf("%q: byte %d of the mark %+v is not in a span; spans %v", res.raw, i, m, res.spans)
			}
			ours[i] = false
		}
		counts := m.ends && (limit == 0 || m.payload <= limit)
		if counts != ends[m.end] && m.end-m.start-m.payload < shellint.MaxUndecided {
			t.Fatalf("%q: mark %+v was reported: %v", res.raw, m, ends[m.end])
		}
	}
	// The remaining ones may only be introducers that were too long to wait for.
	for i, left := range ours {
		if left && !inLongIntroducer(res, int64(i)) {
			t.Fatalf("%q: byte %d is in a span but in no mark; spans %v", res.raw, i, res.spans)
		}
	}
}

func inLongIntroducer(res *result, off int64) bool {
	for _, sp := range res.spans {
		if sp.Start <= off && off < sp.End {
			return sp.End-sp.Start >= shellint.MaxUndecided
		}
	}
	return false
}

// TestRandomStreams holds random hostile streams to the properties.
func TestRandomStreams(t *testing.T) {
	streams := testkit.Load(1000, 400) // of a round
	rng := rand.New(rand.NewPCG(3, 4))
	for range testkit.Rounds(t, 5, 1000) {
		for i := range streams {
			checkProperties(t, hostileStream(rng), shellint.Options{LimitPayload: i % 7 * 8}, rng)
		}
	}
}

// FuzzScanner holds any bytes, cut anywhere, to the properties.
func FuzzScanner(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		f.Add(hostileStream(rng), uint64(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		checkProperties(t, raw, shellint.Options{LimitPayload: int(seed % 100)}, rand.New(rand.NewPCG(seed, 0)))
	})
}
