package redact_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unicode/utf8"

	"tether/agent/redact"
	"tether/internal/testkit/must"
)

// compiled are the rules that tests have made. Rules never change, and the known forms of
// tokens take seconds to build with the race detector.
var compiled sync.Map // of *redact.Rules, by options and values

func compile(t testing.TB, o redact.Options, values ...string) *redact.Rules {
	t.Helper()
	key := fmt.Sprintf("%+v %q", o, values)
	if r, ok := compiled.Load(key); ok {
		return r.(*redact.Rules)
	}
	r := must.Get(redact.Compile(o))(t)
	r, ok := r.With(values)
	if !ok {
		t.Fatal("too many values")
	}
	compiled.Store(key, r)
	return r
}

// shown is the text that observers see.
func shown(r *redact.Rules, text string) string {
	p, f := []byte(text), redact.NewFilter(r, 0)
	f.Feed(p)
	f.Flush()
	secrets, sequences := f.Take()
	for _, m := range append(secrets, sequences...) {
		m.Put(p, 0)
	}
	return string(p)
}

// inPieces is shown for text that arrives in pieces and is never flushed. The output
// after each piece must not change later.
func inPieces(t testing.TB, r *redact.Rules, text string, cut func(rest string) int) string {
	t.Helper()
	f := redact.NewFilter(r, 0)
	out, over := []byte(text), make([]bool, len(text)) // over: a mask of a sequence is there
	left, fed := 0, 0
	put := func(masks []redact.Mask, sequence bool) {
		for _, m := range masks {
			for i := m.Start; i < m.End; i++ {
				if over[i] && !sequence {
					continue
				}
				was := out[i]
				m.Put(out[i:i+1], i)
				if over[i] = sequence; int(i) < left && out[i] != was {
					t.Fatalf("what has left changed at %d: %q, before %q, in %q", i, out[i], was, text[max(0, int(i)-80):min(int(i)+300, len(text))])
				}
			}
		}
	}
	look := func() {
		secrets, sequences := f.Take()
		put(secrets, false)
		put(sequences, true)
		at := int(f.Decided())
		if at < left || at > fed {
			t.Fatalf("decided %d after %d, fed %d", at, left, fed)
		}
		left = at
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
	return string(out)
}

func randomCut(random *rand.Rand) func(string) int {
	return func(string) int { return 1 + random.IntN(1+random.IntN(40)) }
}
