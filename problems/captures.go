package problems

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// captures finds the groups of an expression's leftmost match in two passes over a line, several times as fast as package regexp. The
// backward pass finds for each position the instructions that lead to a match from there; its automaton is built while lines are matched,
// like that of dfa. The forward pass then follows the instruction that package regexp would prefer among those, and never has to try
// another one.
type captures struct {
	d     *dfa
	words int   // of a set of instructions
	end   *tail // at the end of a line

	mu    sync.Mutex
	tails map[string]*tail
}

// tail is the backward pass's knowledge of the rest of a line from one position on. Its transitions are added under the mutex of captures
// and read without it.
type tail struct {
	takes []uint64               // set of the instructions that take the next character and lead to a match
	after rune                   // the next character, or one alike for $ and \b; -1 at the end
	next  []atomic.Pointer[step] // by the class of the character before; the last is the line's beginning
}

// step is one position between two characters.
type step struct {
	viable []uint64 // set of the instructions that lead to a match from here
	to     *tail    // one character further to the left; nil at the line's beginning
}

// scratch is memory that is used again for each match, by one goroutine.
type scratch struct {
	classes []uint16
	at      []int // offsets of the characters, and of the end
	steps   []*step
	ends    []int // of the groups: where they begin and end
	groups  [][]byte
	spare   *attempt // a finished one, or nil
}

// newCaptures returns nil if the expression may go round without taking a character: there package regexp decides.
func newCaptures(d *dfa) *captures {
	if loops(d.prog) {
		return nil
	}
	c := &captures{d: d, words: (len(d.prog.Inst) + 63) / 64, tails: map[string]*tail{}}
	c.end = c.tail(make([]uint64, c.words), -1)
	return c
}

// loops reports whether instructions that take no character lead from one back to itself.
func loops(prog *syntax.Prog) bool {
	const under, done = 1, 2
	state := make([]uint8, len(prog.Inst))
	var visit func(pc uint32) bool
	visit = func(pc uint32) bool {
		if state[pc] != 0 {
			return state[pc] == under
		}
		state[pc] = under
		inst := &prog.Inst[pc]
		loop := false
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			loop = visit(inst.Out) || visit(inst.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			loop = visit(inst.Out)
		}
		state[pc] = done
		return loop
	}
	for pc := range prog.Inst {
		if visit(uint32(pc)) {
			return true
		}
	}
	return false
}

// find returns the groups of the leftmost match in s, or nil. known is false if the automaton has no room for the line.
func (c *captures) find(s *scratch, line []byte) (groups [][]byte, known bool) {
	c.d.decode(s, line)
	first := -1
	start := c.d.prog.Start
	t := c.end
	for i := len(s.classes); ; i-- {
		class := len(c.d.bounds)
		if i > 0 {
			class = int(s.classes[i-1])
		}
		step := t.next[class].Load()
		if step == nil {
			if step = c.step(t, class); step == nil {
				return nil, false
			}
		}
		s.steps[i] = step
		if step.viable[start>>6]>>(start&63)&1 != 0 {
			first = i
		}
		if i == 0 {
			break
		}
		t = step.to
	}
	if first < 0 {
		return nil, true
	}
	c.follow(s, first)
	s.groups = s.groups[:0]
	for i := 0; i < len(s.ends); i += 2 {
		if s.ends[i] < 0 || s.ends[i+1] < 0 {
			s.groups = append(s.groups, nil)
		} else {
			s.groups = append(s.groups, line[s.ends[i]:s.ends[i+1]:s.ends[i+1]])
		}
	}
	return s.groups, true
}

// decode sets the characters of a line in s.
func (d *dfa) decode(s *scratch, line []byte) {
	s.classes, s.at = s.classes[:0], s.at[:0]
	for i := 0; i < len(line); {
		s.at = append(s.at, i)
		if b := line[i]; b < utf8.RuneSelf {
			s.classes = append(s.classes, d.ascii[b])
			i++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		s.classes = append(s.classes, d.class(r))
		i += n
	}
	s.at = append(s.at, len(line))
	s.steps = slices.Grow(s.steps[:0], len(s.at))[:len(s.at)]
}

// follow sets the ends of the groups by the match that begins at a position.
func (c *captures) follow(s *scratch, i int) {
	s.ends = slices.Grow(s.ends[:0], c.d.prog.NumCap)[:c.d.prog.NumCap]
	for j := range s.ends {
		s.ends[j] = -1
	}
	s.ends[0] = s.at[i]
	viable := s.steps[i].viable
	for pc := uint32(c.d.prog.Start); ; {
		inst := &c.d.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			pc = inst.Out
			if viable[pc>>6]>>(pc&63)&1 == 0 {
				pc = inst.Arg
			}
		case syntax.InstCapture:
			s.ends[inst.Arg] = s.at[i]
			pc = inst.Out
		case syntax.InstMatch:
			s.ends[1] = s.at[i]
			return
		case syntax.InstNop, syntax.InstEmptyWidth:
			pc = inst.Out
		default:
			i++
			viable = s.steps[i].viable
			pc = inst.Out
		}
	}
}

// step finds the transition of a tail for the class of the character before. It returns nil if that needs a tail for which there is no room.
func (c *captures) step(t *tail, class int) *step {
	before := rune(-1)
	if class < len(c.d.bounds) {
		before = c.d.bounds[class]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st := &step{viable: c.close(t.takes, syntax.EmptyOpContext(before, t.after))}
	if before >= 0 {
		takes := make([]uint64, c.words)
		for pc := range c.d.prog.Inst {
			inst := &c.d.prog.Inst[pc]
			if isSet(st.viable, inst.Out) && takesCharacter(inst, before) {
				takes[pc>>6] |= 1 << (pc & 63)
			}
		}
		if st.to = c.tail(takes, before); st.to == nil {
			return nil
		}
	}
	t.next[class].Store(st)
	return st
}

// close adds to a set the instructions that lead to it without a character, and matches.
func (c *captures) close(takes []uint64, flags syntax.EmptyOp) []uint64 {
	set := slices.Clone(takes)
	for changed := true; changed; {
		changed = false
		for pc := range c.d.prog.Inst {
			inst := &c.d.prog.Inst[pc]
			leads := false
			switch inst.Op {
			case syntax.InstMatch:
				leads = true
			case syntax.InstAlt, syntax.InstAltMatch:
				leads = isSet(set, inst.Out) || isSet(set, inst.Arg)
			case syntax.InstCapture, syntax.InstNop:
				leads = isSet(set, inst.Out)
			case syntax.InstEmptyWidth:
				leads = syntax.EmptyOp(inst.Arg)&^flags == 0 && isSet(set, inst.Out)
			}
			if leads && !isSet(set, uint32(pc)) {
				set[pc>>6] |= 1 << (pc & 63)
				changed = true
			}
		}
	}
	return set
}

func isSet(set []uint64, pc uint32) bool { return set[pc>>6]>>(pc&63)&1 != 0 }

// tail returns the one with these instructions before a character; nil if there is no room for it.
func (c *captures) tail(takes []uint64, after rune) *tail {
	after = alike(after)
	key := binary.AppendVarint(nil, int64(after))
	for _, w := range takes {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	t := c.tails[string(key)]
	if t == nil && (len(c.tails)+1)*(len(c.d.bounds)+1) <= maxCells {
		t = &tail{takes: takes, after: after, next: make([]atomic.Pointer[step], len(c.d.bounds)+1)}
		c.tails[string(key)] = t
	}
	return t
}
