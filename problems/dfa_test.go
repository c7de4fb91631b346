package problems_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"tether/problems"
)

// FuzzAutomaton checks that the automata of an expression match the same as package regexp, and find the same groups.
func FuzzAutomaton(f *testing.F) {
	for _, c := range [][2]string{
		{"", ""}, {"", "a"}, {"^$", ""}, {"^$", "a"}, {"$", "abc"}, {"x*", "y"}, {"a|^b", "cb"}, {"a|^b", "b"}, {`\bword\b`, "a word."}, {`\bword\b`, "sword"},
		{`\Bord`, "word"}, {`^\s*\b`, "  "}, {"(?i:straße)", "x STRAẞE"}, {"(?i)K", "K"}, {"[^a]", "a"}, {"[^a]", "aé"}, {".", "\xff"}, {"^é.$", "é\xff"},
		{"^[^:]+$", "a\xf0b"}, {"(?m)^b$", "a\nb\nc"}, {"(?s)a.b", "a\nb"}, {"a.b", "a\nb"}, {"(?:a|ab)(?:c|bcd)$", "abcd"}, {"(a*)*b", "aaab"}, {"\uFFFD", "\xff"},
		{`a{2,5}b`, "aaaaaab"}, {`\pL+\d`, "ñandú7"}, {`(?:(?:x?)*)*y`, "xxz"},
		{`(a|ab)(c|bcd)?`, "xabcd"}, {`(a+?)(a*)`, "aaa"}, {`(?:(a)|b)*`, "ab"}, {`(a*)(\b.*|x)$`, "aé x"}, {`(é)|(\xff)`, "a\xff"}, {`x*?$`, "yxx"}, {`(|a)*b`, "aab"},
	} {
		f.Add(c[0], []byte(c[1]))
	}
	f.Fuzz(func(t *testing.T, expression string, line []byte) {
		if len(expression) > 100 {
			return // its automaton takes too long to build
		}
		e, err := problems.NewExpression(expression)
		if err != nil {
			return // package regexp refuses it as well
		}
		for range 2 { // the second time by the transitions that the first has left
			if !e.Agrees(line) {
				t.Errorf("%q and %q: the automaton says otherwise than package regexp", expression, line)
			}
		}
	})
}

// A line for which the automaton has no room is still matched: this expression has more states than may be remembered.
func TestAutomatonWithoutRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e, err := problems.NewExpression(`(?:a|b)*a(?:a|b){14}c$`)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		line := make([]byte, 60)
		for i := range line {
			line[i] = "ab"[random.IntN(2)]
		}
		line = append(line, 'c')
		if !e.Agrees(line) {
			t.Fatalf("%q: the automaton says otherwise than package regexp", line)
		}
	}
}

// Trackers share the automata of their set.
func TestSharedAutomata(t *testing.T) {
	set, err := problems.Compile(problems.Known()...)
	if err != nil {
		t.Fatal(err)
	}
	all := runs(t)[:40]
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, r := range all {
				tr := problems.NewTracker(set, 0)
				tr.Begin(r.command, r.dir)
				tr.Write(0, r.output)
				tr.End()
				same(t, r.name, r.track(whole), tr)
			}
		})
	}
	group.Wait()
}
