package redact

import "slices"

// Bounds of a secret that has not ended yet, in bytes.
const (
	maxHeld = 4 << 10  // held back; docs/SECURITY.md promises it
	maxOpen = 64 << 10 // masked as they arrive behind maxHeld, as a private key may need
	maxTail = 2 << 10  // at the end of such a secret, searched for the beginning of another
)

// redactor finds secrets in a stream. It is a pure state machine: except for flush, any
// division of the stream into calls gives the same masks.
//
//	root --a pattern may begin--> window --none is pending--> root
//	                              window --full--> open --none is pending--> root
//
// At the root only the search of begin runs, not the automaton. Regular expressions run
// only on a window in which the automaton suspects a secret.
type redactor struct {
	rules *Rules

	masks []Mask // found: sorted, and apart from each other
	given int    // how many of masks take has returned
	fixed int64  // text offset: masks are complete before it, because take has returned them

	at     uint16 // state of the automaton; 0 is the root
	off    int64  // text offset after the bytes fed
	done   int64  // text before this offset is decided
	text   joiner // removes the sequences; all fields below use offsets of this joined text
	known  int64  // done, as an offset of joined text
	passed int64  // joined offset at the last call of shorten

	// The window is win, which holds bytes of earlier calls, and a part of the present
	// call's bytes. At the root, win holds the last bytes of the text, fewer than quad,
	// if a pattern may begin there; with open, the last maxTail. before holds the bytes
	// in front of win, at most maxBefore.
	win     []byte
	before  []byte
	taken   int // how many bytes of the present call are in before and win already
	scratch []byte
	groups  uint64 // groups of the patterns that may have matched in the window
	open    int    // 1 + bytes masked behind a full window whose secret goes on; 0: none does
	spans   []span
	passage passage // scratch
}

func newRedactor(rules *Rules, off int64) redactor {
	return redactor{rules: rules, off: off, done: off, text: newJoiner(off), known: off}
}

// feed takes the next bytes, whole characters.
func (r *redactor) feed(p []byte) {
	d := r.rules.automaton()
	r.off += int64(len(p))
	if d == nil {
		r.done = r.off
		return
	}
	r.text.clear()
	r.forget()
	for len(p) > 0 {
		at, dropped := r.text.off, r.text.dropped/maxDropped
		joined, n := r.text.next(p)
		r.scan(d, joined, at)
		if p = p[n:]; r.text.dropped/maxDropped != dropped {
			r.shorten()
		}
		r.text.forget(r.text.off - int64(len(r.win)))
	}
	r.settle(d)
}

// shorten ends the window if it began before the last call of shorten. Otherwise endless
// sequences inside a secret would be held back without bound.
func (r *redactor) shorten() {
	d := r.rules.automaton()
	if r.text.off-int64(len(r.win)) < r.passed && len(r.win) > 0 && r.open == 0 {
		switch {
		case r.at == 0:
			r.remember(r.win)
			r.win = r.win[:0]
		case d.state(r.at).flags&flagBridge != 0:
			r.again(d, nil, 0, 0, 0, r.text.off)
		default:
			r.full(nil, 0, 0, r.text.off)
		}
	}
	r.passed = r.text.off
}

// scan searches the joined text that follows, p at the offset base, for secrets.
func (r *redactor) scan(d *dfa, p []byte, base int64) {
	for again := true; again; {
		if r.at == 0 && len(r.win) > 0 && !r.resume(d, p, base) {
			return
		}
		again = false
		from := 0 // where the window's part of p begins
		i := 0
		for i < len(p) && !again {
			if r.at == 0 {
				i = d.find(p, i)
				from = i
				if len(p)-i < d.begin.look() {
					break
				}
				if !r.opens(d, p, i, base) {
					i++
					continue
				}
			}
			i, from, again = r.window(d, p, from, i, base)
		}
		switch {
		case again: // go on as in another call
			p, base = p[i:], base+int64(i)
		case r.at == 0:
			r.remember(p[r.taken:i])
			r.suspend(d, p[i:])
		default:
			if len(r.win) == 0 {
				r.remember(p[r.taken:from])
			}
			r.win = append(r.win, p[from:]...)
		}
		r.taken = 0
	}
}

// settle moves done to the offset up to which all secrets are known.
func (r *redactor) settle(d *dfa) {
	at := r.at
	if at == 0 {
		at = d.run(r.win)
	}
	if r.open > 0 || r.groups == 0 && d.state(at).flags&flagHold == 0 {
		r.known, r.done = r.text.off, r.off
	} else {
		r.known = max(r.known, r.text.off-int64(len(r.win)))
		r.done = max(r.done, r.text.rawAt(r.known))
	}
}

// suspend keeps the last bytes of a call in win: too few to tell whether a pattern begins
// with them. It does not keep bytes at which none can begin.
func (r *redactor) suspend(d *dfa, p []byte) {
	r.win = append(r.win, p...)
	for len(r.win) > 0 && !d.begins(r.win) {
		r.pass()
	}
}

// pass moves the first byte of win to before: no pattern begins there.
func (r *redactor) pass() {
	r.remember(r.win[:1])
	r.win = r.win[:copy(r.win, r.win[1:])]
}

// opens reports whether a window begins at p[i], where a pattern may begin. A token
// inside a word opens no window: "task-" is in any text and contains the prefix "sk-".
// The bytes in front of p are in r.before. base is the offset of p.
func (r *redactor) opens(d *dfa, p []byte, i int, base int64) bool {
	if d.begin.others == nil || d.run4(d.begin.others, p[i:i+quad]) {
		return true
	}
	if r.text.isSeam(base + int64(i)) {
		return true
	}
	if i >= maxBefore {
		return beginsWord(p, i)
	}
	r.scratch = append(append(r.scratch[:0], r.before...), p[:i]...)
	return beginsWord(r.scratch, len(r.scratch))
}

// resume decides, with p behind them, whether a window begins in the kept bytes. It
// returns false if p is too short to decide; then it keeps p, too.
func (r *redactor) resume(d *dfa, p []byte, base int64) bool {
	for len(r.win) > 0 {
		var text [quad]byte
		n := copy(text[:], r.win)
		if n += copy(text[n:], p); n < quad {
			r.suspend(d, p)
			return false
		}
		if d.begins(text[:]) && r.opens(d, text[:], 0, base-int64(len(r.win))) {
			r.at = d.run(r.win)
			break
		}
		r.pass()
	}
	return true
}

// window runs the automaton from p[i] until nothing is pending, the window is full, or p
// ends. It returns the index that it reached, and the index of the first byte that is not
// yet in win. again means that the caller must go on as in another call.
func (r *redactor) window(d *dfa, p []byte, from, i int, base int64) (at, begin int, again bool) {
	room := maxHeld - len(r.win) - (i - from)
	if r.open > 0 {
		room = maxOpen - r.open
	}
	start, end := i, min(len(p), i+room)
	state, groups, ended := r.at, r.groups, false
	for i < end {
		n := d.row(state)[d.class[p[i]]]
		if ended = n == 0; ended {
			break // p[i] is searched again from the root
		}
		state = n
		groups |= d.state(state).groups
		i++
	}
	flags := d.state(state).flags
	r.at, r.groups = state, groups
	if ended {
		r.at = 0
	}
	switch {
	case r.open > 0:
		r.wide(d, p[start:i], base+int64(start))
		from, r.taken = i, i
		return i, i, r.open == 0
	case ended && flags&flagAlone != 0:
		r.again(d, p, from, i, 1, base+int64(i))
		return i, i, true
	case flags&flagBridge != 0 && i-start == room:
		r.again(d, p, from, i, 0, base+int64(i))
		return i, i, true
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
	return i, from, false
}

// again ends a window in which the automaton looked for nothing else but one pattern:
// behind a bridge, and in a key. It decides the window, which ends with p[from:to] at the
// offset end, and then scans the text behind that place again, as if the pattern were not
// there. So a pattern hides no other. ahead is as for decide.
func (r *redactor) again(d *dfa, p []byte, from, to, ahead int, end int64) {
	r.decide(p, from, to, ahead, end)
	if len(r.win) == 0 {
		r.remember(p[r.taken:from])
	}
	w := slices.Concat(r.win, p[from:to])
	n := d.alone(w)
	r.remember(w[:n])
	r.win, r.taken, r.groups, r.at = r.win[:0], 0, 0, 0
	r.scan(d, w[n:], end-int64(len(w)-n))
}

// maxBefore is how many bytes in front of a window are kept. They show whether a word or
// a line begins there.
const maxBefore = 32

// remember appends p to before, and keeps only the last maxBefore bytes.
func (r *redactor) remember(p []byte) {
	if len(p) < maxBefore {
		keep := min(len(r.before), maxBefore-len(p))
		copy(r.before, r.before[len(r.before)-keep:])
		r.before = append(r.before[:keep], p...)
		return
	}
	r.before = append(r.before[:0], p[len(p)-maxBefore:]...)
}

// decide masks the secrets in the window, which ends with p[from:to] at the offset end.
// It also looks at ahead bytes behind the window, for secrets that end with a word or a
// line. It returns the end of the last secret, 0 if there is none.
func (r *redactor) decide(p []byte, from, to, ahead int, end int64) (last int64) {
	if r.groups == 0 {
		return 0
	}
	w, first := r.around(p, from, to+ahead)
	base := end - int64(len(w)-ahead)
	r.passage = passage{w: w, first: first, last: len(w) - ahead, text: &r.text, base: base, small: r.passage.small}
	r.spans = r.rules.find(r.spans[:0], &r.passage, r.groups)
	slices.SortFunc(r.spans, func(a, b span) int { return a.start - b.start })
	for _, s := range r.spans {
		r.mask(w[s.start:s.end], base+int64(s.start))
		last = max(last, base+int64(s.end))
	}
	return last
}

// around returns the window with the text in front of it; the window begins at w[first].
// w is valid until the next call.
func (r *redactor) around(p []byte, from, to int) (w []byte, first int) {
	if len(r.win) == 0 && from-r.taken >= maxBefore {
		return p[from-maxBefore : to], maxBefore
	}
	w = append(r.scratch[:0], r.before...)
	if len(r.win) == 0 {
		w = append(w, p[r.taken:from]...)
	}
	w = append(w[:0], w[max(len(w)-maxBefore, 0):]...) // in any division the same
	first = len(w)
	w = append(append(w, r.win...), p[from:to]...)
	r.scratch = w
	return w, first
}

// full ends a window that has reached maxHeld, or that shorten ends. If a secret reaches
// the end of the window, later bytes are masked as they arrive. Otherwise the window now
// begins at the earliest pattern that is still pending. A pattern that fills the whole
// window is given up: its bytes are released unless decide has masked them, except for
// those of patterns that began in the second half.
func (r *redactor) full(p []byte, from, to int, end int64) {
	last := r.decide(p, from, to, 0, end)
	if len(r.win) == 0 {
		r.remember(p[r.taken:from])
	}
	w := append(r.win, p[from:to]...)
	d, keep := r.rules.automaton(), len(w)
	if last == end {
		r.open, keep = 1, max(len(w)-maxTail, 0)
	} else {
		anywhere := func(int) bool { return true }
		u, half := r.rules.nfa.underWay(w, anywhere), 0
		if u.any == 0 {
			half = len(w) / 2
			u = r.rules.nfa.underWay(w[half:], anywhere)
		}
		if u.any >= 0 {
			keep = half + u.any
		}
		r.at = d.run(w[keep:])
	}
	r.remember(w[:keep])
	r.win = append(r.win[:0], w[keep:]...)
	r.groups = d.suspect(r.win)
}

// wide masks the bytes of a secret that is longer than a window. At its end, wide scans
// the last bytes again: another secret may begin there and go on.
func (r *redactor) wide(d *dfa, p []byte, off int64) {
	r.mask(p, off)
	r.win = append(r.win, p...)
	if over := len(r.win) - maxTail; over > 0 {
		r.remember(r.win[:over])
		r.win = r.win[:copy(r.win, r.win[over:])]
	}
	if r.open += len(p); r.at == 0 || r.open >= maxOpen {
		tail := slices.Clone(r.win)
		r.win, r.open, r.at, r.groups, r.taken = r.win[:0], 0, 0, 0, 0
		r.scan(d, tail, off+int64(len(p)-len(tail)))
	}
}

// mask records masks for the joined text at off. It skips control characters.
func (r *redactor) mask(text []byte, off int64) {
	for i := 0; i < len(text); {
		if n := controlLen(text[i:]); n > 0 {
			i += n
			continue
		}
		n := i
		for n < len(text) && controlLen(text[n:]) == 0 {
			n++
		}
		r.maskRange(off+int64(i), off+int64(n))
		i = n
	}
}

// maskRange records masks for a range of joined text: one for each part that is
// contiguous in the stream.
func (r *redactor) maskRange(from, to int64) {
	for k := r.text.at(from); from < to; k++ {
		s, end := r.text.seams[k], to
		if k+1 < len(r.text.seams) {
			end = min(end, r.text.seams[k+1].off)
		}
		if !s.fixed {
			r.add(Mask{Start: s.raw + from - s.off, End: s.raw + end - s.off, Kind: Secret})
		}
		from = end
	}
}

// add puts a mask among the others and joins it with those that it touches. Masks that
// take has returned do not change.
func (r *redactor) add(m Mask) {
	m.Start = max(m.Start, r.fixed)
	if m.Start >= m.End {
		return
	}
	at := len(r.masks)
	for at > r.given && r.masks[at-1].End >= m.Start {
		at--
	}
	end := at
	for end < len(r.masks) && r.masks[end].Start <= m.End {
		m.Start, m.End = min(m.Start, r.masks[end].Start), max(m.End, r.masks[end].End)
		end++
	}
	r.masks = slices.Replace(r.masks, at, end, m)
}

// take returns the masks of decided text that it has not returned before. Others may
// still grow. The next call of feed or flush overwrites them.
func (r *redactor) take() []Mask {
	from := r.given
	for r.given < len(r.masks) && r.masks[r.given].Start < r.done {
		r.fixed = r.masks[r.given].End
		r.given++
	}
	return r.masks[from:r.given]
}

// forget drops the masks that take has returned.
func (r *redactor) forget() {
	if r.given > 0 {
		r.masks, r.given = slices.Delete(r.masks, 0, r.given), 0
	}
}

// flush decides all pending bytes. An unfinished value is masked whole. An unfinished
// token is masked after its prefix if it starts a word and at least likelyTail bytes
// follow. Everything else is released.
func (r *redactor) flush() {
	r.forget()
	if r.done == r.off {
		return
	}
	r.end(true)
	r.known, r.done = r.text.off, r.off
}

// end masks the secrets in the window as if the text ended here, with unfinished also the
// beginnings of secrets. The window stays.
func (r *redactor) end(unfinished bool) {
	if r.open > 0 {
		return // all are masked
	}
	if unfinished {
		r.maskUnfinished()
	}
	d := r.rules.automaton()
	if d.state(r.at).flags&flagAlone == 0 {
		r.decide(nil, 0, 0, 0, r.text.off)
		return
	}
	rest := *r // looks for everything: see again
	rest.win, rest.before, rest.scratch, rest.spans = slices.Clone(r.win), slices.Clone(r.before), nil, nil
	rest.passage = passage{}
	rest.again(d, nil, 0, 0, 0, r.text.off)
	rest.end(unfinished)
	r.masks = rest.masks
}

// maskUnfinished masks the beginning of a secret at the end of the window.
func (r *redactor) maskUnfinished() {
	w := slices.Concat(r.before, r.win)
	u := r.rules.nfa.underWay(r.win, func(at int) bool {
		return beginsWord(w, len(r.before)+at) || r.text.isSeam(r.text.off-int64(len(r.win)-at))
	})
	if begin := max(u.masked, len(r.win)-int(r.text.off-r.known)); u.masked >= 0 { // released bytes stay
		r.mask(r.win[begin:], r.text.off-int64(len(r.win)-begin))
	}
}

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// atRest reports whether no pattern and no sequence is pending.
func (r *redactor) atRest() bool { return r.at == 0 && len(r.win) == 0 && len(r.text.seq) == 0 }

// prefixLen is the length of the token prefix at the start of w, 0 if there is none.
func prefixLen(w []byte) int {
	longest := 0
	for _, t := range tokens() {
		if n := len(t.prefix); n > longest && len(w) >= n && string(w[:n]) == t.prefix {
			longest = n
		}
	}
	return longest
}

// visible reports whether a byte may be replaced by a star: control characters stay, so
// that lines and sequences keep their form.
func visible(b byte) bool { return b >= 0x20 && b != 0x7f }

// controlLen returns the length of the control character, or of the symbol of joined
// text, at the start of text; 0 if there is none.
func controlLen(text []byte) int {
	switch {
	case text[0] == 0xc2 && len(text) > 1 && text[1] < 0xa0:
		return 2
	case !visible(text[0]), text[0] >= backward:
		return 1
	}
	return 0
}
