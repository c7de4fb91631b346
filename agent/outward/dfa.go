package outward

import "slices"

// dfa is an nfa made deterministic. It begins anew at every byte: where no pattern is under way it is at its root, state 0.
type dfa struct {
	class  [256]uint8
	width  uint32   // classes
	next   []uint32 // by state and class: the next state, times width
	flags  []uint8  // by state
	groups []uint64 // by state: bits of the groups that accept there
	lead   [256]bool
}

// Flags of a state.
const (
	flagAccept = 1 << iota // a pattern may have matched
	flagHold               // bytes must be held back
)

// maxTable bounds the table of a dfa, in entries of 4 bytes.
const maxTable = 4 << 20

// isContinuation says whether b continues a character: no pattern begins there.
func isContinuation(b byte) bool { return b&0xc0 == 0x80 }

// build makes a deterministic. a must not be changed afterwards.
func build(a *nfa) (*dfa, error) {
	if len(a.nodes) > maxNodes {
		return nil, errComplex
	}
	a.freeze()
	b := builder{a: a, d: &dfa{}, known: map[string]uint32{}}
	samples := b.d.classify(a)
	for _, n := range a.starts {
		b.starts = append(b.starts, a.reached[n]...)
	}
	for _, n := range a.tokens {
		b.tokens = append(b.tokens, a.reached[n]...)
	}
	b.stateOf(nil)
	for i := 0; i < len(b.states); i++ {
		for _, c := range samples {
			b.d.next = append(b.d.next, b.stateOf(b.step(b.states[i], c))*b.d.width)
		}
		if len(b.d.next) > maxTable {
			return nil, errComplex
		}
	}
	for c := range 256 {
		b.d.lead[c] = b.d.next[b.d.class[c]] != 0
	}
	return b.d, nil
}

// builder makes a dfa.
type builder struct {
	a              *nfa
	d              *dfa
	starts, tokens []int32 // what begins at every byte
	known          map[string]uint32
	states         [][]int32
	set            []int32 // scratch
	key            []byte
}

// stateOf is the number of a set of nodes.
func (b *builder) stateOf(set []int32) uint32 {
	b.key = b.key[:0]
	for _, n := range set {
		b.key = append(b.key, byte(n), byte(n>>8), byte(n>>16))
	}
	id, ok := b.known[string(b.key)]
	if !ok {
		id = uint32(len(b.states))
		b.known[string(b.key)], b.states = id, append(b.states, slices.Clone(set))
		flags, groups := b.a.describe(set)
		b.d.flags, b.d.groups = append(b.d.flags, flags), append(b.d.groups, groups)
	}
	return id
}

// step is the set after the byte c, sorted.
func (b *builder) step(from []int32, c byte) []int32 {
	a := b.a
	a.run++
	b.set = b.set[:0]
	alone, tail := false, false
	take := func(nodes []int32) {
		for _, n := range nodes {
			at := &a.nodes[n]
			if at.next < 0 || !at.set.has(c) {
				continue
			}
			for _, m := range a.reached[at.next] {
				if a.seen[m] != a.run {
					a.seen[m] = a.run
					b.set = append(b.set, m)
					alone, tail = alone || a.nodes[m].alone, tail || a.nodes[m].tail
				}
			}
		}
	}
	take(from)
	if alone {
		b.set = slices.DeleteFunc(b.set, func(n int32) bool { return !a.nodes[n].alone })
	} else if !isContinuation(c) {
		take(b.starts)
		if !tail {
			take(b.tokens)
		}
	}
	slices.Sort(b.set)
	return b.set
}

// classify puts bytes between which no state tells into one class, and returns one byte of each.
func (d *dfa) classify(a *nfa) (samples []byte) {
	sets := map[byteSet]bool{}
	for i := range a.nodes {
		if a.nodes[i].next >= 0 {
			sets[a.nodes[i].set] = true
		}
	}
	list := make([]byteSet, 0, len(sets))
	for s := range sets {
		list = append(list, s)
	}
	known := map[string]uint8{}
	key := make([]byte, len(list)+1)
	for b := range 256 {
		for i := range list {
			key[i] = 0
			if list[i].has(byte(b)) {
				key[i] = 1
			}
		}
		key[len(list)] = 0
		if isContinuation(byte(b)) {
			key[len(list)] = 1
		}
		id, ok := known[string(key)]
		if !ok {
			id = uint8(len(samples))
			known[string(key)], samples = id, append(samples, byte(b))
		}
		d.class[b] = id
	}
	d.width = uint32(len(samples))
	return samples
}

func (a *nfa) describe(set []int32) (flags uint8, groups uint64) {
	for _, n := range set {
		at := &a.nodes[n]
		if at.accept {
			flags |= flagAccept
			groups |= 1 << (at.group & 63)
		}
		if at.hold {
			flags |= flagHold
		}
	}
	return flags, groups
}

// under is what is under way at the end of some text.
type under struct {
	any    int // where the earliest that may yet match began, -1 if none
	masked int // likewise of those that are masked when nothing follows
}

// underWay runs the automaton over w, from its root.
func (a *nfa) underWay(w []byte) under {
	now, then := map[int32]int{}, map[int32]int{}
	starts := slices.Concat(a.starts, a.tokens)
	for i, b := range w {
		clear(then)
		step := func(n int32, began int) {
			at := &a.nodes[n]
			if at.next < 0 || !at.set.has(b) {
				return
			}
			for _, m := range a.reached[at.next] {
				if was, ok := then[m]; !ok || began < was {
					then[m] = began
				}
			}
		}
		for n, began := range now {
			step(n, began)
		}
		if !isContinuation(b) {
			for _, s := range starts {
				for _, n := range a.reached[s] {
					step(n, i)
				}
			}
		}
		now, then = then, now
	}
	u := under{-1, -1}
	least := func(at *int, began int) {
		if *at < 0 || began < *at {
			*at = began
		}
	}
	for n, began := range now {
		at := &a.nodes[n]
		least(&u.any, began)
		if at.masked {
			least(&u.masked, began)
		}
	}
	return u
}

// freeze remembers the closures that stepping needs, so that many may run at
// once.
func (a *nfa) freeze() {
	a.reached = map[int32][]int32{}
	for _, s := range slices.Concat(a.starts, a.tokens) {
		a.reached[s] = a.closure([]int32{s})
	}
	for i := range a.nodes {
		if to := a.nodes[i].next; to >= 0 && a.reached[to] == nil {
			a.reached[to] = a.closure([]int32{to})
		}
	}
}
