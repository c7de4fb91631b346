package redact

import "slices"

// dfa is an nfa made deterministic. It begins anew at every byte: where no pattern is under way it is at its root, state 0.
type dfa struct {
	class  [256]uint8
	width  int      // classes
	next   []uint16 // by state and class: see after
	flags  []uint8  // by state
	groups []uint64 // by state: bits of the groups that accept there
	begin  begin
}

// after is the state after the byte b. In the table it is 0 where all that was under way in s has ended, whatever began with b itself: there
// a window ends, and what follows is looked at as if nothing had been before.
func (d *dfa) after(s uint16, b byte) uint16 {
	c := int(d.class[b])
	if n := d.next[int(s)*d.width+c]; n != 0 {
		return n
	}
	return d.next[c]
}

// run is the state after p, from the root.
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
	flagBridge             // a bridge was followed
)

// Bounds of a dfa.
const (
	maxStates = 1 << 16 // as many as uint16 can tell apart
	maxTable  = 4 << 20 // entries of 2 bytes
)

// isContinuation says whether b continues a character: no pattern begins there.
func isContinuation(b byte) bool { return b&0xc0 == 0x80 }

// build makes a deterministic. a must not be changed afterwards.
func build(a *nfa) (*dfa, error) {
	if len(a.nodes) > maxNodes {
		return nil, errComplex
	}
	a.freeze()
	b := builder{a: a, d: &dfa{}, known: map[string]int32{}}
	samples := b.d.classify(a)
	b.starts, b.tokens = b.reached(a.starts), b.reached(a.tokens)
	inside := b.reached(a.inside)
	b.takes = make([]byteSet, len(a.nodes))
	for class, c := range samples {
		for n := range a.nodes {
			if at := &a.nodes[n]; at.next >= 0 && at.set.has(c) {
				b.takes[n].add(byte(class))
			}
		}
		if isContinuation(c) {
			b.anew = append(b.anew, [3][]int32{})
		} else {
			b.anew = append(b.anew, [3][]int32{b.after(b.starts, c), b.after(b.tokens, c), b.after(inside, c)})
		}
	}
	b.stateOf(nil)
	var rows [][]uint16 // joined at the end: a table that grows would leave several times its size behind
	for i := 0; i < len(b.states); i++ {
		row := make([]uint16, len(samples))
		from := b.states[i]
		var takes byteSet // the classes with which something goes on; with the others all has ended, and the entry is 0: see after
		for _, n := range from {
			takes.union(&b.takes[n])
		}
		for class, c := range samples {
			if i == 0 || takes.has(byte(class)) {
				row[class] = uint16(b.stateOf(b.step(from, c, class)))
			}
		}
		rows = append(rows, row)
		if len(b.states) > maxStates || len(b.states)*b.d.width > maxTable {
			return nil, errComplex
		}
	}
	b.d.next = slices.Concat(rows...)
	b.d.begin = b.beginnings(samples)
	return b.d, nil
}

// builder makes a dfa.
type builder struct {
	a              *nfa
	d              *dfa
	starts, tokens []int32      // what begins at every byte
	anew           [][3][]int32 // by class: what it reaches from starts, from tokens, and from the starts in a named value
	takes          []byteSet    // by node: the classes that it consumes
	known          map[string]int32
	states         [][]int32
	set            []int32 // scratch
	key            []byte
}

// reached is what can be reached from nodes without a byte.
func (b *builder) reached(nodes []int32) (all []int32) {
	for _, n := range nodes {
		all = append(all, b.a.reached[n]...)
	}
	return all
}

// stateOf is the number of a set of nodes.
func (b *builder) stateOf(set []int32) int32 {
	key := b.keyOf(set)
	id, ok := b.known[string(key)]
	if !ok {
		id = int32(len(b.states))
		b.known[string(key)], b.states = id, append(b.states, slices.Clone(set))
		flags, groups := b.a.describe(set)
		b.d.flags, b.d.groups = append(b.d.flags, flags), append(b.d.groups, groups)
	}
	return id
}

// keyOf is overwritten by the next call.
func (b *builder) keyOf(set []int32) []byte {
	b.key = b.key[:0]
	for _, n := range set {
		b.key = append(b.key, byte(n), byte(n>>8), byte(n>>16))
	}
	return b.key
}

// step is the set after the byte c, sorted. It is overwritten by the next call.
func (b *builder) step(from []int32, c byte, class int) []int32 {
	b.a.run++
	b.set = b.set[:0]
	under := b.take(from, c)
	switch {
	case under.alone:
		b.set = slices.DeleteFunc(b.set, func(n int32) bool { return !b.a.nodes[n].alone })
	case under.value:
		b.set = slices.DeleteFunc(b.set, func(n int32) bool { return !b.a.nodes[n].stays })
		b.join(b.anew[class][2])
	default:
		b.join(b.anew[class][0])
		if !under.tail {
			b.join(b.anew[class][1])
		}
	}
	slices.Sort(b.set)
	return b.set
}

// join adds to b.set those of nodes that are not in it.
func (b *builder) join(nodes []int32) {
	for _, n := range nodes {
		if b.a.seen[n] != b.a.run {
			b.a.seen[n] = b.a.run
			b.set = append(b.set, n)
		}
	}
}

// after is what is reached with c from nodes.
func (b *builder) after(nodes []int32, c byte) []int32 {
	b.a.run++
	b.set = b.set[:0]
	b.take(nodes, c)
	return slices.Clone(b.set)
}

// take adds to b.set what is reached with c from nodes, and says which flags that has.
func (b *builder) take(nodes []int32, c byte) (flags node) {
	a := b.a
	for _, n := range nodes {
		at := &a.nodes[n]
		if at.next < 0 || !at.set.has(c) {
			continue
		}
		for _, m := range a.reached[at.next] {
			if a.seen[m] != a.run {
				a.seen[m] = a.run
				b.set = append(b.set, m)
				to := &a.nodes[m]
				flags.alone, flags.tail, flags.value = flags.alone || to.alone, flags.tail || to.tail, flags.value || to.value
			}
		}
	}
	return flags
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
		if at.bridge {
			flags |= flagBridge
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
	a.reached = make([][]int32, len(a.nodes))
	for _, s := range slices.Concat(a.starts, a.tokens) {
		a.reached[s] = a.closure([]int32{s})
	}
	for i := range a.nodes {
		if to := a.nodes[i].next; to >= 0 && a.reached[to] == nil {
			a.reached[to] = a.closure([]int32{to})
		}
	}
}
