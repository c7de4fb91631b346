package redact

import (
	"errors"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(b byte) { s[b>>6] |= 1 << (b & 63) }

func (s *byteSet) addRange(lo, hi int) {
	for b := lo; b <= hi; b++ {
		s.add(byte(b))
	}
}

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 == 1 }

// node is a state of the nondeterministic automaton: either it consumes a byte of set and
// goes to next, or it goes to out without one.
type node struct {
	set    byteSet
	next   int32 // -1: this state consumes nothing
	out    []int32
	accept bool
	group  uint8 // of the pattern, for accept
	hold   bool  // a match that waits in this state has consumed bytes that must be held back
	masked bool  // and these bytes are masked when nothing follows in time
	alone  bool  // nothing else needs to be looked for while this is under way
	tail   bool  // no token begins while this is under way
	value  bool  // while this is pending, only nodes with stays remain and only patterns of inside begin
	stays  bool  // see value
	bridge bool  // behind a line's end or a move in the line, inside a pending pattern
}

// nfa finds where patterns may match: it accepts every text that a pattern matches, and
// more. Repetitions are counted only up to quad, conditions such as word boundaries hold
// everywhere, and outside ASCII a class accepts every character.
type nfa struct {
	nodes  []node
	starts []int32 // where patterns begin
	plain  []int32 // where patterns begin that are not looked for in the tail of a token: all of it is searched for them
	tokens []int32 // the same for those that begin only where a word does
	inside []int32 // those of starts that begin in a named value, too: those that may end behind it

	// By node, the nodes that can be reached from it without a byte: see freeze.
	reached [][]int32
	firstOf struct{ starts, tokens [256][]int32 } // by byte: the nodes that consume it as the first of a pattern
	seen    []uint32                              // by node: the last run that reached it
	run     uint32
}

// maxNodes bounds the nodes of all patterns.
const maxNodes = 60_000

var errComplex = errors.New("the patterns to redact are too complex, or there are too many")

func (a *nfa) add(n node) int32 {
	a.nodes = append(a.nodes, n)
	return int32(len(a.nodes) - 1)
}

func (a *nfa) empty() int32 { return a.add(node{next: -1}) }

func (a *nfa) link(from, to int32) { a.nodes[from].out = append(a.nodes[from].out, to) }

// consume adds a step over one byte of set, from the state from; it returns the state
// after it.
func (a *nfa) consume(from int32, set byteSet) int32 {
	to := a.empty()
	step := a.add(node{set: set, next: to})
	a.link(from, step)
	return to
}

// literal adds exact bytes.
func (a *nfa) literal(from int32, text string) int32 {
	for i := range len(text) {
		var s byteSet
		s.add(text[i])
		from = a.consume(from, s)
	}
	return from
}

// highs adds one or more bytes outside ASCII.
func (a *nfa) highs(from int32) int32 {
	var s byteSet
	s.addRange(utf8.RuneSelf, 255)
	to := a.consume(from, s)
	step := a.add(node{set: s, next: to})
	a.link(to, step)
	return to
}

// expression adds a regular expression.
func (a *nfa) expression(from int32, re *syntax.Regexp) int32 {
	if len(a.nodes) > maxNodes {
		return from
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			from = a.rune(from, r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		return a.class(from, re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return a.class(from, []rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune})
	case syntax.OpCapture:
		return a.expression(from, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			from = a.expression(from, sub)
		}
	case syntax.OpAlternate:
		to := a.empty()
		for _, sub := range re.Sub {
			a.link(a.expression(from, sub), to)
		}
		return to
	case syntax.OpQuest:
		return a.repeat(from, re.Sub[0], 0, false)
	case syntax.OpStar:
		return a.repeat(from, re.Sub[0], 0, true)
	case syntax.OpPlus:
		return a.repeat(from, re.Sub[0], 1, true)
	case syntax.OpRepeat:
		for range min(re.Min, quad) - 1 { // enough to tell where a pattern begins: see begin
			from = a.expression(from, re.Sub[0])
		}
		return a.repeat(from, re.Sub[0], re.Min, re.Max != 1)
	}
	return from // conditions, and expressions that match nothing
}

// repeat adds one or, if many, any number of sub; none only if least is 0.
func (a *nfa) repeat(from int32, sub *syntax.Regexp, least int, many bool) int32 {
	begin := a.empty() // not from itself: a loop to it would lead into its other branches
	a.link(from, begin)
	end := a.empty()
	a.link(a.expression(begin, sub), end)
	if many {
		a.link(end, begin)
	}
	if least == 0 {
		a.link(begin, end)
	}
	return end
}

// rune adds one character.
func (a *nfa) rune(from int32, r rune, fold bool) int32 {
	if r < utf8.RuneSelf {
		var s byteSet
		s.add(byte(r))
		if lower := r | 0x20; fold && lower >= 'a' && lower <= 'z' {
			s.add(byte(lower))
			s.add(byte(lower - 0x20))
			if sign := map[rune]string{'k': "\u212a", 's': "\u017f"}[lower]; sign != "" { // which folds to it
				to := a.consume(from, s)
				a.link(a.literal(from, sign), to)
				return to
			}
		}
		return a.consume(from, s)
	}
	if fold {
		return a.class(from, []rune{0, utf8.MaxRune})
	}
	return a.literal(from, string(r))
}

// class adds one character of a class, given as pairs of bounds.
func (a *nfa) class(from int32, pairs []rune) int32 {
	var s byteSet
	high := false
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		high = high || hi >= utf8.RuneSelf
		if lo < utf8.RuneSelf {
			s.addRange(int(lo), int(min(hi, utf8.RuneSelf-1)))
		}
	}
	to := a.consume(from, s)
	if high {
		a.link(a.highs(from), to)
	}
	return to
}

// closure returns the nodes that can be reached from set without a byte and that consume
// one or accept, sorted.
func (a *nfa) closure(set []int32) []int32 {
	if len(a.seen) < len(a.nodes) {
		a.seen = make([]uint32, len(a.nodes))
	}
	a.run++
	var out []int32
	stack := slices.Clone(set)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if a.seen[n] == a.run {
			continue
		}
		a.seen[n] = a.run
		if at := &a.nodes[n]; at.next >= 0 || at.accept {
			out = append(out, n)
		}
		stack = append(stack, a.nodes[n].out...)
	}
	slices.Sort(out)
	return out
}
