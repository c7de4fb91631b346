package redact

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// A bridge is bytes inside a secret that are not part of it and look like its end: a
// line's end, where a terminal or a line editor wraps; a move forward over characters
// that are on the screen already; or a move back (also a backspace) to correct some. The
// automaton follows a few bridges, and looks for nothing else behind them. findBridged
// decides whether a secret crosses, and redactor.again scans the text from the first
// bridge on again.

const (
	maxWraps = 3 // line ends that one secret may have
	maxMoves = 4 // runs of moves in the line

	wideLine = 60 // bytes of a line that may be full: then a complete secret may continue behind it, too
	minCross = 12 // least bytes of a word that may cross a bridge
)

// bridges adds bridges to patterns, behind their first openValue bytes: few other texts
// begin with these. See begin.
func (a *nfa) bridges() {
	to := len(a.nodes)
	early := a.within(openValue)
	wrap, moves := a.wraps(), a.moves()
	for i := range to {
		at := &a.nodes[i]
		if at.next >= 0 || !at.hold || at.alone || early[i] {
			continue
		}
		if at.tail || at.masked || at.value {
			a.link(int32(i), wrap)
		}
		a.link(int32(i), moves)
	}
}

// within reports for each node whether it can be reached with fewer than n bytes.
func (a *nfa) within(n int) []bool {
	all, now := make([]bool, len(a.nodes)), slices.Concat(a.starts, a.plain, a.tokens)
	for ; n > 0; n-- {
		var next []int32
		for at := (map[int32]bool{}); len(now) > 0; {
			i := now[len(now)-1]
			if now = now[:len(now)-1]; at[i] {
				continue
			}
			at[i], all[i] = true, true
			now = append(now, a.nodes[i].out...)
			if to := a.nodes[i].next; to >= 0 {
				next = append(next, to)
			}
		}
		now = next
	}
	return all
}

// bridged flags the nodes from first on: a pattern that is pending there has followed a
// bridge.
func (a *nfa) bridged(first int) {
	for i := first; i < len(a.nodes); i++ {
		a.nodes[i].hold, a.nodes[i].alone, a.nodes[i].bridge = true, true, true
	}
}

// entry flags the nodes from first on, with which a bridge begins. In the first round
// other patterns are pending beside them, so they do not count as bridged.
func (a *nfa) entry(first, round int) {
	for i := first; i < len(a.nodes); i++ {
		a.nodes[i].stays = true
	}
	if round > 0 {
		a.bridged(first)
	}
}

// wraps adds the way across line ends: CR LF, LF, CR, or a blank and CR, as readline has
// it.
func (a *nfa) wraps() (from int32) {
	var shown byteSet
	shown.addRange('!', '~')
	shown.addRange(utf8.RuneSelf, backward-1)
	from = a.empty()
	for next, round := from, 0; round < maxWraps; round++ {
		first := len(a.nodes)
		cr, lf := a.literal(next, "\r"), a.literal(next, "\n")
		blank := a.literal(next, " ")
		waits := len(a.nodes)
		a.link(a.literal(blank, "\r"), cr)
		for i := waits; i < len(a.nodes); i++ {
			a.nodes[i].hold = true
		}
		a.entry(first, round)
		first = len(a.nodes)
		a.link(a.literal(cr, "\n"), lf)
		next = a.consume(cr, shown)
		a.link(a.consume(lf, shown), next)
		a.link(a.consume(next, shown), next)
		a.link(next, a.add(node{next: -1, accept: true, group: groupBridged}))
		a.bridged(first)
	}
	return from
}

// moves adds the way across moves in a line, up to its end.
func (a *nfa) moves() (from int32) {
	var move, shown byteSet
	move.add(forward)
	move.add(backward)
	move.add('\b')
	shown.addRange(' ', '~')
	shown.addRange(utf8.RuneSelf, backward-1)
	from = a.empty()
	for next, round := from, 0; round < maxMoves; round++ {
		first := len(a.nodes)
		next = a.consume(next, move)
		a.entry(first, round)
		first = len(a.nodes)
		a.link(a.consume(next, move), next)
		a.link(a.consume(next, shown), next)
		a.link(next, a.add(node{next: -1, accept: true, group: groupBridged}))
		a.bridged(first)
	}
	return from
}

// alone returns the index in w, a window, from which on the automaton looks for nothing
// but one pattern; len(w) if it looks for everything.
func (d *dfa) alone(w []byte) int {
	at := uint16(0)
	for i, b := range w {
		if at = d.after(at, b); d.state(at).flags&flagAlone != 0 {
			return i
		}
	}
	return len(w)
}

// held returns the index in w, a window, from which on the text is held back.
func (d *dfa) held(w []byte) (from int) {
	at, groups := uint16(0), uint64(0)
	for i, b := range w {
		at = d.after(at, b)
		if groups |= d.state(at).groups; groups == 0 && d.state(at).flags&flagHold == 0 {
			from = i + 1
		}
	}
	return from
}

// crossing is a bridge in a passage: p.w[from:to].
type crossing struct {
	from, to int
	moves    bool // a move forward, not a line's end
	wide     bool // behind a line that may be full
}

// crossings returns the bridges of a passage that stand between visible characters. Those
// in front of it join nothing.
func (p *passage) crossings() (all []crossing) {
	w, begun := p.w, 0 // begun: where the line begins
	for i := 1; i < p.last; i++ {
		if c := w[i]; c > ' ' && c != forward {
			continue
		}
		n := bridgeLen(w[i:p.last])
		if n == 0 {
			continue
		}
		if moves := w[i] == forward; i > p.first && w[i-1] > ' ' && (moves || i+n < p.last && w[i+n] > ' ') {
			all = append(all, crossing{i, i + n, moves, i-begun >= wideLine})
		}
		if i += n - 1; w[i] < ' ' {
			begun = i + 1
		}
	}
	return all
}

// bridgeLen returns the length of the bridge at the start of w, 0 if there is none.
func bridgeLen(w []byte) int {
	for _, wrap := range []string{"\r\n", "\n", " \r\n", " \r", "\r"} {
		if bytes.HasPrefix(w, []byte(wrap)) {
			return len(wrap)
		}
	}
	n := 0
	for n < len(w) && w[n] == forward {
		n++
	}
	return n
}

// findBridged appends the secrets that cross a bridge to spans, which holds all other
// secrets.
func (r *Rules) findBridged(spans []span, p *passage) []span {
	if w := p.w[p.first:p.last]; bytes.IndexByte(w, '\b') >= 0 || bytes.IndexByte(w, backward) >= 0 {
		spans = r.findRetyped(spans, p)
	}
	all := p.crossings()
	if len(all) == 0 {
		return spans
	}
	plain := len(spans)
	for _, v := range r.values {
		for at := max(p.first, all[0].from-2*len(v)); at < all[len(all)-1].from; at++ {
			if w := p.w[at:p.last]; w[0] == v[0] {
				if end := across(w, v, false); end >= 0 {
					spans = append(spans, span{at, at + end})
				}
			}
		}
	}
	// Other secrets are looked for without the bridges. The characters that a move
	// forward skips may be part of a secret, so the second round puts unseen characters
	// in their place. Text behind a bridge may take the look of a secret from the text in
	// front of it, so the first bridges are also removed alone.
	if !slices.ContainsFunc(all, func(c crossing) bool { return mayCross(p.w, c) }) {
		return spans
	}
	for n, c := range all {
		some := all[:n+1]
		if n < len(all)-1 && !mayCross(p.w, c) {
			continue // what crosses only those in front of it was found without it
		}
		spans = r.findJoined(spans, plain, p, some, false)
		if slices.ContainsFunc(some, func(c crossing) bool { return c.moves }) {
			spans = r.findJoined(spans, plain, p, some, true)
		}
	}
	return spans
}

// unseen stands for a character that a move skipped: nearly all forms of secrets allow
// it.
const unseen = '2'

// findJoined appends the secrets that appear once the bridges are removed. A secret that
// is found by its form must also look random, because words around a line's end could
// form anything. The first plain entries of spans are the secrets that were found with
// the bridges. If fill is true, each column of a move forward becomes an unseen
// character; otherwise moves by several columns stay.
func (r *Rules) findJoined(spans []span, plain int, p *passage, all []crossing, fill bool) []span {
	joined := &passage{text: p.text, base: p.base}
	next := 0
	upTo := func(end int) {
		for ; next < end; next++ {
			joined.w, joined.from = append(joined.w, p.w[next]), append(joined.from, next)
		}
	}
	for _, c := range all {
		if c.moves && !fill && c.to-c.from > 1 {
			continue
		}
		upTo(c.from)
		if c.moves && fill {
			upTo(c.to)
			for i := range c.to - c.from {
				joined.w[len(joined.w)-1-i] = unseen
			}
		}
		next = c.to
		joined.left = append(joined.left, len(joined.w))
	}
	upTo(len(p.w))
	index := func(i int) int { return sort.SearchInts(joined.from, i) }
	joined.first, joined.last = index(p.first), index(p.last)
	found := r.find(nil, joined, known)
	formed := len(found)
	for i, s := range findNamed(found, joined.w, joined.first, joined.last) {
		if !random(string(joined.w[s.start:s.end])) {
			continue
		}
		begin := joined.from[s.start]
		whole := slices.ContainsFunc(spans[:plain], func(t span) bool { return t.start == begin })
		crosses, shown, end := false, begin, joined.from[s.end-1]+1 // masked up to shown, then up to end
		for _, c := range all {
			at := index(c.to)
			if c.to < begin || at < s.start || at >= s.end && c.from >= end {
				continue
			}
			// Behind a line's end the rest is masked in two cases: the secret is
			// incomplete without it and its form proves it, or the secret is complete,
			// the line is full and the rest looks random, too.
			if !c.moves && (whole && (!c.wide || !random(string(joined.w[at:s.end]))) || !whole && i >= formed) {
				end = c.from
				break
			}
			if shown < c.from {
				spans = append(spans, span{shown, c.from})
			}
			crosses, shown = true, c.to
		}
		if crosses && shown < end {
			spans = append(spans, span{shown, end})
		}
	}
	return spans
}

// retyped returns the passage as the screen shows it: the cursor has moved back, and
// characters were printed over others.
func (p *passage) retyped() *passage {
	type cell struct{ from, to, first int } // first: where the cell's first character is
	var cells []cell
	at, line := 0, 0 // where the cursor is, and where its line begins
	put := func(from, to int) {
		if at == len(cells) {
			cells = append(cells, cell{first: from})
		}
		cells[at].from, cells[at].to = from, to
		at++
	}
	for i := 0; i < p.last; {
		n := 1
		switch c := p.w[i]; {
		case c == '\b' || c == backward:
			at = max(at-1, line)
		case c == forward && at < len(cells):
			at++
		case c < ' ':
			at = len(cells)
			put(i, i+1)
			line = at
		default:
			for c >= utf8.RuneSelf && i+n < p.last && isContinuation(p.w[i+n]) {
				n++
			}
			put(i, i+n)
		}
		i += n
	}
	q := &passage{text: p.text, base: p.base}
	for _, c := range cells {
		q.earliest = append(q.earliest, slices.Repeat([]int{c.first}, c.to-c.from)...)
		if c.first < p.first {
			q.first = len(q.w) + c.to - c.from
		}
		for i := c.from; i < c.to; i++ {
			q.w, q.from = append(q.w, p.w[i]), append(q.from, i)
		}
	}
	q.last = len(q.w)
	q.w = append(q.w, p.w[p.last:]...)
	return q
}

// findRetyped appends the secrets that the screen shows after characters were
// overwritten. A secret that is found by its form must also look random, because
// corrected words could form anything. Characters that have left already stay, also if
// one of a secret stands in their place.
func (r *Rules) findRetyped(spans []span, p *passage) []span {
	q, held := p.retyped(), p.first+r.table.held(p.w[p.first:p.last])
	values := r.find(nil, q, 1<<groupValues)
	for i, s := range r.find(values, q, 1<<groupNamed|known) {
		if i >= len(values) && !random(string(q.w[s.start:s.end])) {
			continue
		}
		spans = append(spans, span{max(held, slices.Min(q.earliest[s.start:s.end])), slices.Max(q.from[s.start:s.end]) + 1})
	}
	return spans
}

// mayCross reports whether the word around a bridge may be a secret.
func mayCross(w []byte, c crossing) bool {
	from, to := c.from, c.to
	for from > 0 && w[from-1] > ' ' && c.from-from < maxValue {
		from--
	}
	for to < len(w) && w[to] > ' ' && to-c.to < maxValue {
		to++
	}
	word := string(w[from:to])
	return len(word) >= minCross && (strings.ContainsAny(word, "0123456789") || strings.ToLower(word) != word && strings.ToUpper(word) != word)
}

// across returns how many bytes at the start of w are v with a bridge inside, -1 if w
// does not begin like that. v is a value or, with crossed, the rest of one behind a
// bridge. A move forward stands for any characters that it skips, or for none. Behind a
// line's end the last character may be printed once more, as zsh does.
func across(w []byte, v string, crossed bool) int {
	for i := 0; i < len(w); i++ {
		if i == len(v) {
			if crossed {
				return i
			}
			return -1
		}
		if w[i] == v[i] {
			continue
		}
		n := bridgeLen(w[i:])
		if n == 0 || i == 0 && !crossed {
			return -1
		}
		rest, most := w[i+n:], 0
		if w[i] == forward {
			most = n
		}
		if most == 0 && len(rest) > 0 && i > 0 && rest[0] == v[i-1] && rest[0] != v[i] {
			rest, n = rest[1:], n+1
		}
		for skip, tail := 0, v[i:]; skip <= most; skip++ {
			if end := across(rest, tail, true); end >= 0 {
				return i + n + end
			}
			if tail == "" {
				break
			}
			_, size := utf8.DecodeRuneInString(tail)
			tail = tail[size:]
		}
		return -1
	}
	if len(w) == len(v) && crossed {
		return len(v)
	}
	return -1
}
