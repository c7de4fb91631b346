package redact

import (
	"encoding/binary"
	"maps"
	"slices"
)

// quad is how many bytes tell whether a pattern begins with the first of them.
const quad = 4

// begin finds where a pattern may begin. It passes over nearly all text, so it decides
// how fast a redactor is.
//
// Most patterns begin with a frequent letter and many with a frequent pair, but their
// first four bytes are rare in text. Comparing four bytes at every place would be slow.
// Three bytes can rule out two places at once: if they are bytes 2 to 4 of no pattern,
// none begins one byte in front of them, and if they are bytes 1 to 3 of no pattern, none
// begins with them. So find looks up three bytes at every second place, three places at a
// time, in a table that stays in the fastest cache. Only where the table has an entry
// does it compare the bytes themselves.
type begin struct {
	// triples has an entry, by their hash, for all three bytes that are bytes 1 to 3 or 2
	// to 4 of a pattern. It is nil if a pattern may be shorter than quad or begin with
	// nearly anything: then lead decides by the first byte alone.
	triples *tripleSet
	factor  uint32 // of the hash
	lead    [256]bool
	// early is an automaton for the first quad bytes, by state and class. It does not
	// restart: it gives 0 once every pattern that began with the first byte has ended.
	early []uint16
	// others is early without tokens; nil if triples is nil.
	others []uint16
}

// tripleSet has a byte for each entry, because looking for a bit takes twice as long. It
// is small enough for the fastest cache, and large enough that few other triples hit an
// entry by chance.
type tripleSet [1 << 15]uint8

const (
	maxTriple = 1 << 13 // entries; with more, any text would hit some
	maxEarly  = 1 << 12 // states; with more, patterns begin with nearly anything
)

// triple is the index of the upper three bytes of v.
func triple(v, factor uint32) uint32 { return v >> 8 * factor >> (32 - 15) }

// sample is text that terminals print often. The factor is the one with which the fewest
// triples of it hit an entry by chance.
const sample = "\x1b[0m\x1b[1m\x1b[2m\x1b[22m\x1b[31m\x1b[32m\x1b[33m\x1b[34m\x1b[35m\x1b[36m\x1b[39m\x1b[90m\x1b[38;5;244m\x1b[38;2;100;200;50m\x1b[m\x1b[K 200\x1b 10\x1b 0\r\n)\r\n  \x1b[" +
	"\r\n    - [ ] (1) 12:34:56 2026-01-02 10 ms 20.5s 100% 0.00 1, 2, 3; a/b/c.ts src/main.go:10: error: and the with that from this for not was are have into over " +
	"tion ing ment able ness ions ings ed to of in it is at on as by or an be if no do up we http https://localhost:3000/ GET POST index.html node_modules/x package.json " +
	"test ok PASS FAIL build info warn debug line file name type true false null default return function const import export class public static void int"

// look is how many bytes tell whether a pattern begins.
func (b *begin) look() int {
	if b.triples == nil {
		return 1
	}
	return quad
}

// find returns the first index, from i on, at which a pattern may begin, or from which p
// is too short to tell.
func (d *dfa) find(p []byte, i int) int {
	set, factor := d.begin.triples, d.begin.factor
	if set == nil {
		for i < len(p) && !d.begin.lead[p[i]] {
			i++
		}
		return i
	}
	for i <= len(p)-9 {
		v := binary.LittleEndian.Uint64(p[i : i+8])
		a, b, c := triple(uint32(v), factor), triple(uint32(v>>16), factor), triple(uint32(v>>32), factor)
		if set[a]|set[b]|set[c] == 0 {
			i += 6
			continue
		}
		switch {
		case set[a] != 0:
		case set[b] != 0:
			i += 2
		default:
			i += 4
		}
		if d.begins(p[i : i+quad]) {
			return i
		}
		if d.begins(p[i+1 : i+1+quad]) {
			return i + 1
		}
		i += 2
	}
	for i <= len(p)-quad && !d.begins(p[i:i+quad]) {
		i++
	}
	return i
}

// begins reports whether a pattern may begin with p, at most quad bytes. The answer
// depends on these bytes alone, and so not on the division of the text.
func (d *dfa) begins(p []byte) bool { return d.run4(d.begin.early, p) }

// run4 reports whether a pattern is pending after p, according to table: early or others.
func (d *dfa) run4(table []uint16, p []byte) bool {
	s := 0
	for _, b := range p {
		s = int(table[s*d.width+int(d.class[b])])
		if s == 0 {
			return false
		}
	}
	return true
}

// beginnings makes the search for starts of patterns. samples has one byte of each class.
func (b *builder) beginnings(samples []byte) begin {
	out := begin{}
	for c := range 256 {
		out.lead[c] = b.d.row(0)[b.d.class[c]] != 0
	}
	if out.early = b.early(slices.Concat(b.starts, b.plain, b.tokens), samples); out.early == nil {
		return begin{lead: out.lead}
	}
	t := triples{d: b.d, samples: samples, members: make([][]byte, len(samples)), all: map[uint32]bool{}}
	t.d.begin = out
	for c := range 256 {
		class := b.d.class[c]
		t.members[class] = append(t.members[class], byte(c))
	}
	if !t.follow(nil) {
		return begin{lead: out.lead}
	}
	out.triples, out.factor = t.fill()
	out.others = b.early(slices.Concat(b.starts, b.plain), samples)
	return out
}

// early makes a table for the first quad bytes of the patterns that begin at the nodes
// begin. It returns nil if a pattern may be shorter than quad, or if there are more than
// maxEarly states.
func (b *builder) early(begin []int32, samples []byte) (table []uint16) {
	known := map[string]uint16{"": 0}
	sets := [][]int32{begin}
	for depth, from := 0, 0; depth < quad; depth++ {
		to := len(sets)
		if to > maxEarly {
			return nil
		}
		for ; from < to; from++ {
			for _, c := range samples {
				var set []int32
				if from > 0 || !isContinuation(c) {
					set = b.after(sets[from], c)
				}
				key := b.keyOf(set)
				id, ok := known[string(key)]
				if _, groups := b.a.describe(set); groups != 0 && depth < quad-1 {
					return nil
				}
				if !ok && depth < quad-1 {
					id = uint16(len(sets))
					known[string(key)], sets = id, append(sets, set)
				} else if !ok {
					id = 1 // a match is pending; its id does not matter
				}
				table = append(table, id)
			}
		}
	}
	return table
}

// triples collects the triples of a begin.
type triples struct {
	d       *dfa
	samples []byte   // by class: one of its bytes
	members [][]byte // by class: all of them
	all     map[uint32]bool
}

// follow adds the triples of all patterns that begin with p, in which each byte stands
// for its class. It returns false if there are too many for a table to help.
func (t *triples) follow(p []byte) bool {
	if !t.d.begins(p) {
		return true
	}
	if n := len(p); n >= 3 && !t.add(p[n-3:]) {
		return false
	}
	if len(p) == quad {
		return true
	}
	for _, c := range t.samples {
		if !t.follow(append(p[:len(p):len(p)], c)) {
			return false
		}
	}
	return true
}

// add adds all triples of the classes of p. It returns false if there are more than
// maxTriple.
func (t *triples) add(p []byte) bool {
	class := &t.d.class
	for _, x := range t.members[class[p[0]]] {
		for _, y := range t.members[class[p[1]]] {
			for _, z := range t.members[class[p[2]]] {
				if t.all[uint32(x)<<8|uint32(y)<<16|uint32(z)<<24] = true; len(t.all) > maxTriple {
					return false
				}
			}
		}
	}
	return true
}

// fill makes the table, with the best of 256 factors: see sample. With 16, a fifth more
// of ordinary text would hit an entry by chance.
func (t *triples) fill() (best *tripleSet, factor uint32) {
	least := len(sample)
	best = new(tripleSet)
	set, all := new(tripleSet), slices.Collect(maps.Keys(t.all))
	for i := range uint32(256) {
		try := 0x9e3779b1 + i*0x3c6ef372 // odd
		clear(set[:])
		for _, v := range all {
			set[triple(v, try)] = 1
		}
		hits := 0
		for at := range len(sample) - 2 {
			hits += int(set[triple(uint32(sample[at])<<8|uint32(sample[at+1])<<16|uint32(sample[at+2])<<24, try)])
		}
		if hits < least {
			best, set, factor, least = set, best, try, hits
		}
	}
	return best, factor
}
