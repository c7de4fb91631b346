package redact

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// dfa is an nfa made deterministic. A pattern may begin at every byte. Where none is
// pending, the dfa is at its root, state 0. Most text never leaves the root, so a state's
// successors are found when they are first asked for, unless build has found all. It is
// safe for concurrent use.
type dfa struct {
	class  [256]uint8
	width  int // classes
	blocks [maxStates / blockStates]*block
	begin  begin

	mu     sync.Mutex
	lacks  *builder // what finds the other successors; nil if none are left
	states int
}

const blockStates = 256

type block [blockStates]dfaState

type dfaState struct {
	groups uint64 // bits of the groups that accept here
	row    []uint16
	known  atomic.Bool // row is there. What it leads to was made before
	flags  uint8
}

// state returns a state that a row has named.
func (d *dfa) state(s uint16) *dfaState { return &d.blocks[s/blockStates][s%blockStates] }

// row returns the states after s by class: see after.
func (d *dfa) row(s uint16) []uint16 {
	at := d.state(s)
	if !at.known.Load() {
		d.learn(s, at)
	}
	return at.row
}

// add adds a state.
func (d *dfa) add(flags uint8, groups uint64) {
	if d.states%blockStates == 0 {
		d.blocks[d.states/blockStates] = new(block)
	}
	at := d.state(uint16(d.states))
	at.flags, at.groups = flags, groups
	d.states++
}

// learn finds the row of a state.
func (d *dfa) learn(s uint16, at *dfaState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !at.known.Load() {
		d.lacks.find(s)
		if len(d.lacks.moved) > maxRecent {
			clear(d.lacks.moved)
		}
	}
}

// after returns the state after the byte b. The table has 0 where everything that is
// pending in s has ended, even if b itself begins a pattern: a window ends there, and the
// next text is looked at without regard to the text before.
func (d *dfa) after(s uint16, b byte) uint16 {
	c := int(d.class[b])
	if n := d.row(s)[c]; n != 0 {
		return n
	}
	return d.row(0)[c]
}

// run returns the state after p, from the root.
func (d *dfa) run(p []byte) (s uint16) {
	for _, b := range p {
		s = d.after(s, b)
	}
	return s
}

// Flags of a state.
const (
	flagAccept = 1 << iota // a pattern may have matched
	flagHold               // bytes must be held back
	flagAlone              // nothing else is looked for
	flagBridge             // a bridge was followed
)

// Bounds of a dfa.
const (
	maxStates = 1 << 16 // as many as uint16 can tell apart
	maxTable  = 4 << 20 // entries of 2 bytes
	maxRecent = 1 << 9  // that are remembered between texts
)

// isContinuation reports whether b continues a character: no pattern begins there.
func isContinuation(b byte) bool { return b&0xc0 == 0x80 }

// build makes a deterministic. a must not be changed afterwards. With whole it finds all
// states, and an error if there are too many; else the caller knows that there are not.
func build(a *nfa, whole bool) (*dfa, error) {
	if len(a.nodes) > maxNodes {
		return nil, errComplex
	}
	a.freeze()
	b := builder{a: a, d: &dfa{}, known: map[string]int32{}, moved: map[string]*move{}}
	samples := b.d.classify(a)
	b.starts, b.plain, b.tokens = b.reached(a.starts), b.reached(a.plain), b.reached(a.tokens)
	inside := b.reached(a.inside)
	b.takes = make([]byteSet, len(a.nodes))
	for class, c := range samples {
		for n := range a.nodes {
			if at := &a.nodes[n]; at.next >= 0 && at.set.has(c) {
				b.takes[n].add(byte(class))
			}
		}
		var anew [beginners][]int32
		if !isContinuation(c) {
			anew[beginInside], anew[beginStarts] = b.after(inside, c), b.after(b.starts, c)
			anew[beginAll] = merge(nil, anew[beginStarts], b.after(slices.Concat(b.plain, b.tokens), c))
		}
		b.anew = append(b.anew, anew)
	}
	b.stateOf(nil)
	b.d.lacks = &b
	for i := 0; whole && i < len(b.states); i++ {
		if len(b.states) > maxStates-b.d.width || len(b.states)*b.d.width > maxTable {
			return nil, errComplex
		}
		b.find(uint16(i))
	}
	b.d.begin = b.beginnings(samples)
	if whole {
		b.d.lacks = nil
	}
	return b.d, nil
}

// builder makes a dfa. A state is a sorted set of nodes. Its successor has two parts. One
// is the successors of its nodes; many states and classes share them, so they are made
// once (a move). The other is the patterns that begin with the class.
type builder struct {
	a             *nfa
	d             *dfa
	starts, plain []int32 // where the patterns begin that may begin at every byte
	tokens        []int32
	anew          [][beginners][]int32 // by class: patterns that begin with it, sorted
	takes         []byteSet            // by node: the classes that it consumes
	known         map[string]int32     // states, by their sets
	states        [][]int32
	moved         map[string]*move // by the nodes that go; it may be emptied at any time
	set           []int32          // scratch
	key           []byte           // scratch
	takers        [256][]int32     // scratch, by class: the nodes of a state that consume it
}

// A move is where nodes go with a byte that all of them consume.
type move struct {
	to     []int32 // sorted
	beside int     // which patterns begin beside it: beginAll and so on
	after  []int32 // by class: the number of the state after it, -1: not known yet
}

// Which patterns begin at a byte beside pending ones.
const (
	beginAll    = iota
	beginStarts // all but plain ones and tokens
	beginInside // patterns that are looked for in a named value
	beginners
	beginNothing = beginners
)

// reached returns the nodes that can be reached from nodes without a byte.
func (b *builder) reached(nodes []int32) (all []int32) {
	for _, n := range nodes {
		all = append(all, b.a.reached[n]...)
	}
	return all
}

// find finds the row of a state.
func (b *builder) find(s uint16) {
	at := b.d.state(s)
	at.row = b.row(b.states[s])
	b.states[s] = nil // its number is known by its key
	at.known.Store(true)
}

// row returns the numbers of the states after a state, by class. An entry is 0 where
// everything has ended, except in the row of the root: see after.
func (b *builder) row(from []int32) []uint16 {
	for _, n := range from {
		for word, left := range b.takes[n] {
			for ; left != 0; left &= left - 1 {
				class := word<<6 | bits.TrailingZeros64(left)
				b.takers[class] = append(b.takers[class], n)
			}
		}
	}
	row := make([]uint16, b.d.width)
	var m *move
	var of []int32 // the nodes of m
	for class := range row {
		takers := b.takers[class]
		b.takers[class] = takers[:0]
		if len(takers) == 0 && len(from) > 0 {
			continue
		}
		if m == nil || !slices.Equal(takers, of) { // many classes that follow each other are alike
			m, of = b.moveOf(takers), takers
		}
		if m.after[class] < 0 {
			b.set = b.set[:0]
			if m.beside != beginNothing {
				b.set = merge(b.set, m.to, b.anew[class][m.beside])
			} else {
				b.set = append(b.set, m.to...)
			}
			m.after[class] = b.stateOf(b.set)
		}
		row[class] = uint16(m.after[class])
	}
	return row
}

// moveOf returns where nodes go with a byte that all of them consume.
func (b *builder) moveOf(nodes []int32) *move {
	key := b.keyOf(nodes)
	if m := b.moved[string(key)]; m != nil {
		return m
	}
	m := &move{after: slices.Repeat([]int32{-1}, b.d.width)}
	b.moved[string(key)] = m
	b.a.run++
	b.set = b.set[:0]
	var under node
	for _, n := range nodes {
		b.goTo(b.a.nodes[n].next, &under)
	}
	switch {
	case under.alone:
		b.set, m.beside = slices.DeleteFunc(b.set, func(n int32) bool { return !b.a.nodes[n].alone }), beginNothing
	case under.value:
		b.set, m.beside = slices.DeleteFunc(b.set, func(n int32) bool { return !b.a.nodes[n].stays }), beginInside
	case under.tail:
		m.beside = beginStarts
	}
	m.to = slices.Clone(b.set)
	slices.Sort(m.to)
	return m
}

// goTo adds the nodes that next reaches to b.set, unless they are in it, and their flags
// to flags.
func (b *builder) goTo(next int32, flags *node) {
	for _, m := range b.a.reached[next] {
		if b.a.seen[m] != b.a.run {
			b.a.seen[m] = b.a.run
			b.set = append(b.set, m)
			to := &b.a.nodes[m]
			flags.alone, flags.tail, flags.value = flags.alone || to.alone, flags.tail || to.tail, flags.value || to.value
		}
	}
}

// stateOf returns the number of the state with a sorted set of nodes.
func (b *builder) stateOf(set []int32) int32 {
	key := b.keyOf(set)
	id, ok := b.known[string(key)]
	if !ok {
		id = int32(len(b.states))
		b.known[string(key)], b.states = id, append(b.states, slices.Clone(set))
		flags, groups := b.a.describe(set)
		b.d.add(flags, groups)
	}
	return id
}

// keyOf returns a key for a set. The next call overwrites it.
func (b *builder) keyOf(set []int32) []byte {
	b.key = b.key[:0]
	for _, n := range set {
		b.key = append(b.key, byte(n), byte(n>>8), byte(n>>16))
	}
	return b.key
}

// after returns the nodes reached from nodes with the byte c, sorted.
func (b *builder) after(nodes []int32, c byte) []int32 {
	b.a.run++
	b.set = b.set[:0]
	for _, n := range nodes {
		if at := &b.a.nodes[n]; at.next >= 0 && at.set.has(c) {
			b.goTo(at.next, new(node))
		}
	}
	slices.Sort(b.set)
	return slices.Clone(b.set)
}

// merge appends the members of two sorted sets to dst, sorted and each once.
func merge(dst, x, y []int32) []int32 {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] < y[0]:
			dst, x = append(dst, x[0]), x[1:]
		case y[0] < x[0]:
			dst, y = append(dst, y[0]), y[1:]
		default:
			dst, x, y = append(dst, x[0]), x[1:], y[1:]
		}
	}
	return append(append(dst, x...), y...)
}

// classify puts bytes that no state tells apart into one class, and returns one byte of
// each class.
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
	d.width = len(samples)
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
		if at.alone {
			flags |= flagAlone
		}
		if at.bridge {
			flags |= flagBridge
		}
	}
	return flags, groups
}

// under says what is pending at the end of some text: indexes in it, -1 for none.
type under struct {
	any    int // where the earliest pattern that may yet match began
	masked int // from where on the text is masked if nothing follows
}

// likelyTail is how many bytes after its prefix make an unfinished token likely.
const likelyTail = 8

// underWay runs the automaton over w, from its root. A token begins only where begins is
// true, and is masked after its prefix if likelyTail bytes follow. The beginning of a
// value is masked whole, because nothing else begins like it.
func (a *nfa) underWay(w []byte, begins func(at int) bool) under {
	type pending struct{ node, began, tail int32 } // tail: where a token's tail began, if node is in one
	var now, then []pending
	at := make([]int32, len(a.nodes)) // by node: its index in then, if it is there
	for i, b := range w {
		then = then[:0]
		step := func(p pending) {
			from := &a.nodes[p.node]
			if from.next < 0 || !from.set.has(b) {
				return
			}
			if !from.tail {
				p.tail = int32(i + 1)
			}
			for _, m := range a.reached[from.next] {
				p.node = m
				if k := at[m]; int(k) >= len(then) || then[k].node != m {
					at[m], then = int32(len(then)), append(then, p)
				} else {
					then[k].began, then[k].tail = min(then[k].began, p.began), min(then[k].tail, p.tail)
				}
			}
		}
		for _, p := range now {
			step(p)
		}
		for k, starts := range [][]int32{a.firstOf.starts[b], a.firstOf.tokens[b]} {
			if len(starts) > 0 && (k == 0 || begins(i)) {
				for _, n := range starts {
					step(pending{n, int32(i), 0})
				}
			}
		}
		now, then = then, now
	}
	u := under{-1, -1}
	least := func(at *int, i int32) {
		if *at < 0 || int(i) < *at {
			*at = int(i)
		}
	}
	for _, p := range now {
		least(&u.any, p.began)
		switch node := &a.nodes[p.node]; {
		case node.masked && !node.tail:
			least(&u.masked, p.began)
		case node.masked:
			if tail := max(p.tail, p.began+int32(prefixLen(w[p.began:]))); int(tail)+likelyTail <= len(w) {
				least(&u.masked, tail)
			}
		}
	}
	return u
}

// freeze computes the closures that stepping needs, so that underWay may run
// concurrently.
func (a *nfa) freeze() {
	a.reached = make([][]int32, len(a.nodes))
	for _, s := range slices.Concat(a.starts, a.plain, a.tokens) {
		a.reached[s] = a.closure([]int32{s})
	}
	for i := range a.nodes {
		if to := a.nodes[i].next; to >= 0 && a.reached[to] == nil {
			a.reached[to] = a.closure([]int32{to})
		}
	}
	for b := range 256 {
		if !isContinuation(byte(b)) {
			a.firstOf.starts[b], a.firstOf.tokens[b] = a.consuming(slices.Concat(a.starts, a.plain), byte(b)), a.consuming(a.tokens, byte(b))
		}
	}
}

// consuming returns the nodes that can be reached from begin without a byte and consume
// b.
func (a *nfa) consuming(begin []int32, b byte) (all []int32) {
	for _, s := range begin {
		for _, n := range a.reached[s] {
			if at := &a.nodes[n]; at.next >= 0 && at.set.has(b) {
				all = append(all, n)
			}
		}
	}
	return all
}
