package problems

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// maxCells bounds the transitions that one expression's automaton remembers, 8 bytes each. A line that needs more is matched by package regexp.
const maxCells = 1 << 14

// expression is a regular expression that tells quickly which lines it does not match: package regexp takes about 30 ns for a byte, a step
// of the automaton 2 ns, and most lines end in a state from which no match is possible. It is safe for concurrent use.
type expression struct {
	regexp   *regexp.Regexp
	dfa      *dfa
	captures *captures // nil if package regexp is to find the groups
}

// newExpression compiles an expression in RE2's syntax.
func newExpression(text string) (*expression, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	d := newDFA(prog)
	return &expression{re, d, newCaptures(d)}, nil
}

// match reports whether the expression matches somewhere in a line.
func (e *expression) match(line []byte) bool {
	matched, known := e.dfa.match(line)
	return matched || !known && e.regexp.Match(line)
}

// groups returns the groups of the leftmost match, or nil. They are good until the next call with the same scratch.
func (e *expression) groups(s *scratch, line []byte) [][]byte {
	if matched, known := e.dfa.match(line); known && !matched {
		return nil
	}
	return e.captured(s, line)
}

// captured is groups for a line that probably matches.
func (e *expression) captured(s *scratch, line []byte) [][]byte {
	if e.captures != nil {
		if groups, known := e.captures.find(s, line); known {
			return groups
		}
	}
	return e.regexp.FindSubmatch(line)
}

// dfa is a deterministic automaton that is built while lines are matched (Cox, "Regular expression matching in the wild", 2010). A state is
// a set of instructions of the compiled expression.
type dfa struct {
	prog     *syntax.Prog
	anchored bool
	bounds   []rune      // the first characters of all classes; characters of one class are alike to the expression
	ascii    [128]uint16 // their classes
	start    *state
	accept   *state // a match was found
	reject   *state // none can follow

	mu     sync.Mutex
	states map[string]*state
}

// state is one set of instructions. Its transitions are added under the automaton's mutex and read without it.
type state struct {
	pcs    []uint32                // instructions that wait for a character or check its neighbours
	before rune                    // the last character, or one alike for ^ and \b; -1 at the beginning
	next   []atomic.Pointer[state] // by class; the last is the line's end
}

func newDFA(prog *syntax.Prog) *dfa {
	d := &dfa{prog: prog, accept: &state{}, reject: &state{}, states: map[string]*state{}}
	d.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	d.bounds = bounds(prog)
	for c := range d.ascii {
		d.ascii[c] = d.class(rune(c))
	}
	set := d.closure(nil, uint32(prog.Start), 0, false)
	d.start = d.state(set, -1)
	return d
}

// bounds divides the characters so that no instruction tells two of one class apart.
func bounds(prog *syntax.Prog) []rune {
	all := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1} // the characters that ^, $ and \b examine
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		switch {
		case inst.Op != syntax.InstRune && inst.Op != syntax.InstRune1:
		case len(inst.Rune) == 1:
			r := inst.Rune[0]
			all = append(all, r, r+1)
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				all = append(all, f, f+1)
			}
		default:
			for j := 0; j+1 < len(inst.Rune); j += 2 {
				all = append(all, inst.Rune[j], inst.Rune[j+1]+1)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (d *dfa) class(r rune) uint16 {
	i, found := slices.BinarySearch(d.bounds, r)
	if !found {
		i--
	}
	return uint16(i)
}

// match reports whether the expression matches somewhere in a line, and whether the automaton has room to know that.
func (d *dfa) match(line []byte) (matched, known bool) {
	s := d.start
	if s == nil || s.next == nil {
		return s == d.accept, s != nil
	}
	for i := 0; i < len(line); {
		var class uint16
		if c := line[i]; c < utf8.RuneSelf {
			class = d.ascii[c]
			i++
		} else {
			r, n := utf8.DecodeRune(line[i:])
			class = d.class(r)
			i += n
		}
		next := s.next[class].Load()
		if next == nil {
			if next = d.step(s, class); next == nil {
				return false, false
			}
		}
		if next.next == nil {
			return next == d.accept, true
		}
		s = next
	}
	end := uint16(len(d.bounds))
	last := s.next[end].Load()
	if last == nil {
		last = d.step(s, end)
	}
	return last == d.accept, true
}

// step finds the transition of a state for a class of characters. It returns nil if that needs a state for which there is no room.
func (d *dfa) step(s *state, class uint16) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := d.follow(s, class)
	if to != nil {
		s.next[class].Store(to)
	}
	return to
}

func (d *dfa) follow(s *state, class uint16) *state {
	r := rune(-1)
	if int(class) < len(d.bounds) {
		r = d.bounds[class]
	}
	flags := syntax.EmptyOpContext(s.before, r)
	var here, after []uint32
	for _, pc := range s.pcs {
		here = d.closure(here, pc, flags, true)
	}
	for _, pc := range here {
		switch inst := &d.prog.Inst[pc]; {
		case inst.Op == syntax.InstMatch:
			return d.accept
		case r >= 0 && takesCharacter(inst, r):
			after = d.closure(after, inst.Out, 0, false)
		}
	}
	if r >= 0 && !d.anchored {
		after = d.closure(after, uint32(d.prog.Start), 0, false)
	}
	return d.state(after, r)
}

// takesCharacter reports whether an instruction goes on with a character.
func takesCharacter(inst *syntax.Inst, r rune) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1:
		return inst.MatchRune(r)
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return false
}

// closure adds to a set the instructions that follow one without a character. Those that examine neighbours are followed as flags say if
// beside, and kept otherwise.
func (d *dfa) closure(set []uint32, pc uint32, flags syntax.EmptyOp, beside bool) []uint32 {
	inst := &d.prog.Inst[pc]
	if slices.Contains(set, pc) || inst.Op == syntax.InstFail {
		return set
	}
	if inst.Op == syntax.InstEmptyWidth && beside && syntax.EmptyOp(inst.Arg)&^flags != 0 {
		return set
	}
	set = append(set, pc)
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		set = d.closure(set, inst.Out, flags, beside)
		set = d.closure(set, inst.Arg, flags, beside)
	case syntax.InstCapture, syntax.InstNop:
		set = d.closure(set, inst.Out, flags, beside)
	case syntax.InstEmptyWidth:
		if beside {
			set = d.closure(set, inst.Out, flags, beside)
		}
	}
	return set
}

// alike is one character for all that are the same to ^, $ and \b.
func alike(r rune) rune {
	switch {
	case syntax.IsWordChar(r):
		return 'a'
	case r >= 0 && r != '\n':
		return ' '
	}
	return r
}

// state returns the one for a set of instructions after a character; nil if there is no room for it.
func (d *dfa) state(set []uint32, before rune) *state {
	pcs := slices.DeleteFunc(set, func(pc uint32) bool {
		switch d.prog.Inst[pc].Op {
		case syntax.InstAlt, syntax.InstAltMatch, syntax.InstCapture, syntax.InstNop:
			return true // they were followed
		}
		return false
	})
	looks := false
	for _, pc := range pcs {
		switch d.prog.Inst[pc].Op {
		case syntax.InstMatch:
			return d.accept
		case syntax.InstEmptyWidth:
			looks = true
		}
	}
	switch {
	case len(pcs) == 0:
		return d.reject
	case !looks:
		before = ' '
	default:
		before = alike(before)
	}
	slices.Sort(pcs)
	key := binary.AppendVarint(nil, int64(before))
	for _, pc := range pcs {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	s := d.states[string(key)]
	if s == nil && (len(d.states)+1)*(len(d.bounds)+1) <= maxCells {
		s = &state{pcs: pcs, before: before, next: make([]atomic.Pointer[state], len(d.bounds)+1)}
		d.states[string(key)] = s
	}
	return s
}
