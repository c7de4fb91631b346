package outward_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"tether/agent/outward"
)

func compile(t testing.TB, o outward.Options, values ...string) *outward.Rules {
	t.Helper()
	r, err := outward.Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := r.With(values)
	if !ok {
		t.Fatal("too many values")
	}
	return r
}

// shown is what observers see of text.
func shown(r *outward.Rules, text string) string {
	p, f := []byte(text), outward.NewFilter(r, 0)
	f.Feed(p)
	f.Flush()
	secrets, sequences := f.Take()
	for _, m := range append(secrets, sequences...) {
		m.Put(p, 0)
	}
	return string(p)
}

// inPieces is shown for text that comes in pieces, without anybody who flushes. What leaves after each piece must not change later.
func inPieces(t testing.TB, r *outward.Rules, text string, cut func(rest string) int) string {
	f := outward.NewFilter(r, 0)
	var secrets, sequences []outward.Mask
	render := func() string {
		one, other := f.Take()
		secrets, sequences = append(secrets, one...), append(sequences, other...)
		out := []byte(text)
		for _, m := range slices.Concat(secrets, sequences) {
			m.Put(out, 0)
		}
		return string(out)
	}
	seen, fed := "", 0
	look := func() {
		out, at := render(), int(f.Decided())
		if at < len(seen) || at > fed {
			t.Fatalf("decided %d after %d, fed %d", at, len(seen), fed)
		}
		if out[:len(seen)] != seen {
			i := 0
			for out[i] == seen[i] {
				i++
			}
			t.Fatalf("what has left changed at %d of %d: %q, before %q, in %q", i, len(seen), out[i:min(i+60, len(seen))], seen[i:min(i+60, len(seen))], text[max(0, i-80):min(i+300, len(text))])
		}
		seen = out[:at]
	}
	for fed < len(text) {
		from := fed
		fed = min(from+max(cut(text[from:]), 1), len(text))
		for fed < len(text) && !utf8.RuneStart(text[fed]) {
			fed++
		}
		f.Feed([]byte(text[from:fed]))
		look()
	}
	f.Flush()
	look()
	if f.Decided() != int64(len(text)) {
		t.Fatalf("decided %d of %d at the end", f.Decided(), len(text))
	}
	return seen
}

func randomCut(random *rand.Rand) func(string) int {
	return func(string) int { return 1 + random.IntN(1+random.IntN(40)) }
}
