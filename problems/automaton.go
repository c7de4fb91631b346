package problems

import "slices"

// automaton finds many literals in a line at once (Aho and Corasick, 1975), so that a
// plain line costs one look at each byte.
type automaton struct {
	class  [256]uint8 // of bytes; those of no literal share class 0
	width  int        // of a row of next
	next   []uint16   // state*width + class → state, with hit where that has found something
	found  [][]uint16 // which of the owners a state has found
	always []uint16   // owners without literals
}

const (
	hit       = 1 << 15
	maxStates = hit
	// needle is how many bytes of a literal are looked for: more would make the automaton
	// several times as large, and rule out little.
	needle = 8
)

// newAutomaton takes each owner's literals, one of which is in every line that concerns
// it; nil means that every line may.
func newAutomaton(owners [][]string) *automaton {
	a := &automaton{width: 1}
	for i, literals := range owners {
		for k, l := range literals {
			literals[k] = l[:min(len(l), needle)]
		}
		if literals == nil {
			a.always = append(a.always, uint16(i))
		}
		for _, l := range literals {
			for _, c := range []byte(l) {
				if a.class[c] == 0 && a.width < 256 {
					a.class[c] = uint8(a.width)
					a.width++
				}
			}
		}
	}
	a.grow()
	for i, literals := range owners {
		for _, l := range literals {
			a.add(uint16(i), l)
		}
	}
	a.next = slices.Clone(a.next) // without room to grow
	a.link()
	return a
}

func (a *automaton) grow() uint16 {
	a.next = append(a.next, make([]uint16, a.width)...)
	a.found = append(a.found, nil)
	return uint16(len(a.found) - 1)
}

func (a *automaton) add(owner uint16, literal string) {
	state := 0
	for _, c := range []byte(literal) {
		at := state*a.width + int(a.class[c])
		if a.next[at] == 0 {
			if len(a.found) == maxStates { // never with literals as short as those of required; the literal's beginning is enough
				break
			}
			to := a.grow()
			a.next[at] = to
		}
		state = int(a.next[at])
	}
	if !slices.Contains(a.found[state], owner) {
		a.found[state] = append(a.found[state], owner)
	}
}

// link turns the trie into an automaton: where no literal continues, it falls back to the
// longest end of the text that begins a literal.
func (a *automaton) link() {
	fail := make([]uint16, len(a.found))
	var queue []uint16
	for c := range a.width {
		if to := a.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		back := fail[state]
		for _, owner := range a.found[back] {
			if !slices.Contains(a.found[state], owner) {
				a.found[state] = append(a.found[state], owner)
			}
		}
		for c := range a.width {
			at := int(state)*a.width + c
			onward := a.next[int(back)*a.width+c]
			if to := a.next[at]; to != 0 {
				fail[to] = onward
				queue = append(queue, to)
			} else {
				a.next[at] = onward
			}
		}
	}
	for i, state := range a.next {
		if a.found[state] != nil {
			a.next[i] |= hit
		}
	}
}

// candidates appends to into the owners that a line may concern, in their order and each
// once.
func (a *automaton) candidates(into []uint16, line []byte) []uint16 {
	into = append(into, a.always...)
	plain := len(into)
	state, width := 0, a.width
	for _, c := range line {
		next := a.next[state*width+int(a.class[c])]
		state = int(next &^ hit)
		if next&hit != 0 {
			into = append(into, a.found[state]...)
		}
	}
	if len(into) == plain {
		return into
	}
	slices.Sort(into)
	return slices.Compact(into)
}
