package outward

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Bounds of what is held back, in bytes.
const (
	maxHeld = 4 << 10  // of a secret whose end is not seen; docs/SECURITY.md promises it
	maxOpen = 64 << 10 // of one that goes on behind that, as a private key may
)

// redactor finds secrets in a stream. It is a pure state machine: but for flush, any division of the stream into calls gives the same
// masks.
//
//	root --a pattern may begin--> window --none is under way--> root
//	                              window --full--> open --none is under way--> root
//
// At the root the automaton does not run: see begin. Neither does a regular expression unless the automaton suspects something in a
// window.
type redactor struct {
	rules *Rules
	masks []Mask // found and not taken

	at     uint16 // state of the automaton, 0: at the root
	off    int64  // text offset after what was fed
	done   int64  // up to here it is decided
	masked int64  // the end of the last mask

	// The window is win, bytes of earlier calls, and a part of the present one.
	// At the root win is the last bytes, less than quad, if a pattern may begin
	// there. before is at most maxBefore bytes in front of win.
	win     []byte
	before  []byte
	taken   int // how many bytes of the present call are in these two
	scratch []byte
	groups  uint64 // that accepted in the window
	open    int    // bytes behind a full window that are masked as they come; 0: not open
	cut     cut    // open: where in a control sequence the bytes so far end
	spans   []span
}

// feed takes the next bytes, whole characters.
func (r *redactor) feed(p []byte) {
	d := r.rules.automaton()
	base := r.off
	r.off += int64(len(p))
	if d == nil {
		r.done = r.off
		return
	}
	if r.at == 0 && len(r.win) > 0 && !r.resume(d, p) {
		r.settle(d)
		return
	}
	from := 0 // the window's part in this call begins there
	i := 0
	for i < len(p) {
		if r.at == 0 {
			i = d.find(p, i)
			from = i
			if len(p)-i < d.begin.look() {
				break
			}
		}
		i, from = r.window(d, p, from, i, base)
	}
	switch {
	case r.at == 0:
		r.remember(p[r.taken:i])
		r.suspend(d, p[i:])
	case r.open > 0:
		r.remember(p[r.taken:])
	default:
		if len(r.win) == 0 {
			r.remember(p[r.taken:from])
		}
		r.win = append(r.win, p[from:]...)
	}
	r.taken = 0
	r.settle(d)
}

// settle moves done as far as it is known what is secret.
func (r *redactor) settle(d *dfa) {
	at := r.at
	if at == 0 {
		at = d.run(r.win)
	}
	if r.open > 0 || r.groups == 0 && d.flags[at]&flagHold == 0 {
		r.done = r.off
	} else {
		r.done = max(r.done, r.off-int64(len(r.win)))
	}
}

// suspend keeps the last bytes of a call, which are too few to tell whether a pattern begins, as far as one may.
func (r *redactor) suspend(d *dfa, p []byte) {
	r.win = append(r.win, p...)
	for len(r.win) > 0 && !d.begins(r.win) {
		r.pass()
	}
}

// pass moves a byte at which nothing begins out of win.
func (r *redactor) pass() {
	r.remember(r.win[:1])
	r.win = r.win[:copy(r.win, r.win[1:])]
}

// resume looks with p at what was kept: a window begins there, or none does. It returns false if p is too short to tell, and then kept too.
func (r *redactor) resume(d *dfa, p []byte) bool {
	for len(r.win) > 0 {
		var text [quad]byte
		n := copy(text[:], r.win)
		if n += copy(text[n:], p); n < quad {
			r.suspend(d, p)
			return false
		}
		if d.begins(text[:]) {
			r.at = d.run(r.win)
			break
		}
		r.pass()
	}
	return true
}

// window moves on from p[i] until nothing is under way, the window is full, or p ends. It returns where it stands and where what is not yet
// in win begins.
func (r *redactor) window(d *dfa, p []byte, from, i int, base int64) (int, int) {
	room := maxHeld - len(r.win) - (i - from)
	if r.open > 0 {
		room = maxOpen - r.open
	}
	start, end := i, min(len(p), i+room)
	at, groups, ended := r.at, r.groups, false
	for i < end {
		n := d.next[int(at)*d.width+int(d.class[p[i]])]
		if ended = n == 0; ended {
			break // p[i] is looked at anew
		}
		at = n
		groups |= d.groups[at]
		i++
	}
	r.at, r.groups = at, groups
	if ended {
		r.at = 0
	}
	switch {
	case r.open > 0:
		r.wide(p[start:i], base+int64(start))
		from = i
	case ended:
		r.decide(p, from, i, 1, base+int64(i))
		if len(r.win) > 0 {
			r.remember(r.win)
			r.remember(p[r.taken:i])
			r.win, r.taken = r.win[:0], i
		}
		r.groups = 0
	case i-start == room:
		r.full(p, from, i, base+int64(i))
		from, r.taken = i, i
	}
	return i, from
}

// maxBefore is how many bytes in front of a secret say whether a word begins there, or a line.
const maxBefore = 32

// remember keeps the last bytes of p, which follow those that it has kept.
func (r *redactor) remember(p []byte) {
	if len(p) < maxBefore {
		keep := min(len(r.before), maxBefore-len(p))
		copy(r.before, r.before[len(r.before)-keep:])
		r.before = append(r.before[:keep], p...)
		return
	}
	r.before = append(r.before[:0], p[len(p)-maxBefore:]...)
}

// decide masks what is secret in the window, which ends in front of p[to] and at the offset end; its part in p begins at from. It looks at
// ahead bytes behind the window, for what ends with a word or a line.
func (r *redactor) decide(p []byte, from, to, ahead int, end int64) (last int64) {
	if r.groups == 0 {
		return 0
	}
	w, first := r.around(p, from, to+ahead)
	base := end - int64(len(w)-ahead)
	r.spans = r.rules.find(r.spans[:0], w, first, len(w)-ahead, r.groups)
	slices.SortFunc(r.spans, func(a, b span) int { return a.start - b.start })
	for _, s := range r.spans {
		r.mask(w[s.start:s.end], base+int64(s.start))
		last = max(last, base+int64(s.end))
	}
	return last
}

// around is the window with what is in front of it; the window begins at w[first].
func (r *redactor) around(p []byte, from, to int) (w []byte, first int) {
	if len(r.win) == 0 && from-r.taken >= maxBefore {
		return p[from-maxBefore : to], maxBefore
	}
	w = append(r.scratch[:0], r.before...)
	if len(r.win) == 0 {
		w = append(w, p[r.taken:from]...)
	}
	first = len(w)
	w = append(append(w, r.win...), p[from:to]...)
	r.scratch = w
	return w, first
}

// full deals with a window that holds as much as may be held. A secret that reaches its end goes on behind it; of others that are under way
// the window keeps what they need, except one that fills it all.
func (r *redactor) full(p []byte, from, to int, end int64) {
	last := r.decide(p, from, to, 0, end)
	if len(r.win) == 0 {
		r.remember(p[r.taken:from])
	}
	w := append(r.win, p[from:to]...)
	keep := len(w)
	if last == end {
		r.open, r.cut = 1, cutOf(w)
	} else if u := r.rules.nfa.underWay(w); u.any > 0 {
		keep = u.any
	} else {
		r.at = 0
	}
	r.remember(w[:keep])
	r.win = append(r.win[:0], w[keep:]...)
	r.groups = r.rules.automaton().suspect(r.win)
}

// wide masks the bytes of a secret that is longer than a window.
func (r *redactor) wide(p []byte, off int64) {
	n, at := r.cut.rest(p)
	r.mask(p[n:], off+int64(n))
	if n < len(p) {
		at = cutOf(p[n:])
	}
	r.cut = at
	if r.open += len(p); r.at == 0 || r.open >= maxOpen {
		r.open, r.at, r.groups = 0, 0, 0
	}
}

// mask has the text at off replaced, as far as it is not yet, except what is part of a control sequence.
func (r *redactor) mask(text []byte, off int64) {
	if skip := r.masked - off; skip > 0 {
		text = text[min(skip, int64(len(text))):]
		off += skip
	}
	for i := 0; i < len(text); {
		n := sequenceLen(text[i:])
		if n > 0 {
			i += n
			continue
		}
		j := i
		for j < len(text) && sequenceLen(text[j:]) == 0 {
			j++
		}
		m := Mask{Start: off + int64(i), End: off + int64(j), Kind: Secret}
		if k := len(r.masks); k > 0 && r.masks[k-1].End == m.Start {
			r.masks[k-1].End = m.End
		} else {
			r.masks = append(r.masks, m)
		}
		r.masked = m.End
		i = j
	}
}

// flush decides what is held back although its end was not seen: of what nobody but a secret has in common with a secret, the bytes that
// are not its prefix are masked; the rest stays.
func (r *redactor) flush() {
	if r.done == r.off {
		return
	}
	r.decide(nil, 0, 0, 0, r.off)
	if at := r.rules.nfa.underWay(r.win).masked; at >= 0 {
		if begin := r.likely(at); begin >= 0 {
			begin = max(begin, len(r.win)-int(r.off-r.done)) // what has left stays
			r.mask(r.win[begin:], r.off-int64(len(r.win)-begin))
		}
	}
	r.done = r.off
}

// likelyTail is how many bytes after its prefix make a token likely that is not complete.
const likelyTail = 8

// likely says from where on the window is masked if the secret that began at win[at] may still come; -1 if it is not likely to. A value is,
// for nothing else begins like it; the prefix of a token may be that of a name.
func (r *redactor) likely(at int) int {
	n := prefixLen(r.win[at:])
	if n == 0 {
		return at
	}
	w := slices.Concat(r.before, r.win)
	if !beginsWord(w, len(r.before)+at) || len(r.win)-at-n < likelyTail {
		return -1
	}
	return at + n
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// atRest reports whether nothing is under way.
func (r *redactor) atRest() bool { return r.at == 0 && len(r.win) == 0 }

// prefixLen is the length of the token prefix at the start of w, 0 if there is none.
func prefixLen(w []byte) int {
	longest := 0
	for _, t := range tokens {
		if n := len(t.prefix); n > longest && len(w) >= n && string(w[:n]) == t.prefix {
			longest = n
		}
	}
	return longest
}

// visible says whether a byte may be replaced by a star: controls stay, so that lines and sequences keep their form.
func visible(b byte) bool { return b >= 0x20 && b != 0x7f }

// sequenceLen is how many bytes at the start of text are a control character or the beginning of a control sequence that stays.
func sequenceLen(text []byte) int {
	switch {
	case text[0] == esc && len(text) > 1 && text[1] == '[':
		for i := 2; i < len(text); i++ {
			if c := text[i]; c >= 0x40 && c < 0x7f {
				return i + 1
			} else if c < 0x20 || c >= 0x7f {
				return i
			}
		}
		return len(text)
	case text[0] == esc && len(text) > 1 && visible(text[1]) && text[1] < utf8.RuneSelf:
		return 2
	case text[0] == 0xc2 && len(text) > 1 && text[1] < 0xa0:
		return 2
	case !visible(text[0]):
		return 1
	}
	return 0
}

// cut is where in a control sequence some text ends: what is long is masked as it comes, and a sequence stays however it came.
type cut uint8

const (
	outside cut = iota
	afterEsc
	inControl // behind ESC [
)

// rest is how many bytes at the start of text belong to the sequence that was cut, and where in it they end.
func (c cut) rest(text []byte) (n int, at cut) {
	if c == outside || len(text) == 0 {
		return 0, c
	}
	if c == afterEsc {
		switch b := text[0]; {
		case b == '[':
			n = 1
		case visible(b) && b < utf8.RuneSelf:
			return 1, outside
		default:
			return 0, outside
		}
	}
	for ; n < len(text); n++ {
		if b := text[n]; b >= 0x40 && b < del {
			return n + 1, outside
		} else if b < 0x20 || b >= del {
			return n, outside
		}
	}
	return n, inControl
}

// cutOf is where in a sequence text ends.
func cutOf(text []byte) cut {
	i := bytes.LastIndexByte(text, esc)
	if i < 0 {
		return outside
	}
	n, at := afterEsc.rest(text[i+1:])
	if i+1+n < len(text) {
		return outside
	}
	return at
}
