package redact

import (
	"bytes"
	"slices"
	"strings"
)

// span is a range of bytes.
type span struct{ start, end int }

// tokenSlot returns the slot of tokens that begin with a and b. The first byte alone
// would put too many tokens into one slot.
func tokenSlot(a, b byte) byte { return a*31 + b }

// passage is joined text that is searched: for secrets that begin at w[first] or later,
// and in front of w[last]. The text around shows whether a word or a line begins or ends
// there.
type passage struct {
	w           []byte
	first, last int
	text        *joiner // its joiner, and the offset of w
	base        int64
	from        []int  // by index in w, if bridges were removed: the index in the passage with them
	left        []int  // indexes in w at which a bridge was removed
	earliest    []int  // by index in w, if it was retyped: the index of the first character at that place
	small       []byte // scratch
}

// seam reports whether something was removed in front of w[i]. Where a bridge was removed
// no word ends.
func (p *passage) seam(i int) bool {
	if p.from == nil {
		return p.text.isSeam(p.base + int64(i))
	}
	return i < len(p.from) && !slices.Contains(p.left, i) && p.text.isSeam(p.base+int64(p.from[i]))
}

// find appends the secrets of the suspected groups to spans. They may overlap.
func (r *Rules) find(spans []span, p *passage, groups uint64) []span {
	if groups>>groupBridged&1 == 1 {
		groups &^= 1 << groupBridged
		spans = r.find(spans, p, groups)
		plain := len(spans)
		if spans = r.findBridged(spans, p); len(spans) > plain {
			// Masked text is not searched again, and behind a bridge the groups are
			// unknown.
			spans = r.find(spans, p, groups|(1<<groupBridged-1)|known)
		}
		return spans
	}
	w, first, last := p.w, p.first, p.last
	if groups&(1<<groupValues|1<<groupTokens|1<<groupNamed) != 0 {
		for _, v := range r.values {
			for at := first; ; {
				i := bytes.Index(w[at:last], []byte(v))
				if i < 0 {
					break
				}
				spans = append(spans, span{at + i, at + i + len(v)})
				at += i + 1
			}
		}
	}
	if groups>>groupNamed&1 == 1 {
		spans = findNamed(spans, w, first, last)
		groups |= known
	}
	if groups>>groupTokens&1 == 1 {
		spans = r.findTokens(spans, p)
		groups |= r.words // behind the prefix of a token, the automaton does not look for them
	}
	letters, plain := p.small, false
	if groups>>groupNamed&1 == 1 { // most of the many checks can be skipped
		letters, plain = small(letters, w)
		p.small = letters
	}
	for i := range r.checks {
		c := &r.checks[i]
		if groups>>(c.group&63)&1 == 0 || plain && !c.mayMatch(letters) {
			continue
		}
		for _, m := range c.matches(w, first) {
			if m[0] < first || m[0] >= last || c.word && !beginsWord(w, m[0]) && !p.seam(m[0]) {
				continue
			}
			start, end := m[0], m[1]
			if len(m) > 2 {
				start, end = m[2], m[3]
			}
			if c.plausible != nil && !c.plausible(string(w[start:end])) {
				if end = start + len(beforeMove(w[start:end])); !c.plausible(string(w[start:end])) {
					continue
				}
			}
			if c.group >= groupLabelled && c.group < groupRest {
				start += prefixLen(w[start:end]) // the prefix shows its kind
			}
			if end = min(end, last); start < end {
				spans = append(spans, span{start, end})
			}
		}
	}
	return spans
}

// matches returns the matches in w. Those of known forms begin at first or behind it, and
// may begin in the secret of another.
func (c *check) matches(w []byte, first int) (all [][]int) {
	if c.group >= groupRest {
		return c.re.FindAllSubmatchIndex(w, -1)
	}
	for from := first; ; {
		m := c.re.FindSubmatchIndex(w[from:])
		if m == nil {
			return all
		}
		for i := range m {
			m[i] += from
		}
		all, from = append(all, m), m[2]
	}
}

// findTokens appends to spans the tokens of a passage, without their prefixes.
func (r *Rules) findTokens(spans []span, p *passage) []span {
	d, w := r.table, p.w
	for at := d.find(w, p.first); at < p.last && at+1 < len(w); at = d.find(w, at+1) {
		like := r.tokens[tokenSlot(w[at], w[at+1])]
		for i := range like {
			c := &like[i]
			n := len(c.prefix)
			if len(w)-at <= n || string(w[at:at+n]) != c.prefix || !beginsWord(w, at) && !p.seam(at) {
				continue
			}
			if end := c.end(p, at); end > 0 {
				spans = append(spans, span{at + n, min(end, p.last)})
			}
		}
	}
	return spans
}

// end returns the end of the token that begins at p.w[at], 0 if there is none. A word may
// end where a sequence was removed.
func (c *tokenCheck) end(p *passage, at int) int {
	if m := c.re().FindIndex(p.w[at:]); m != nil {
		return at + m[1]
	}
	for end := at + len(c.prefix) + 1; end < len(p.w) && (isWord(p.w[end-1]) || p.w[end-1] == '-'); end++ {
		if p.seam(end) && isWord(p.w[end]) && c.re().Match(p.w[at:end]) {
			return end
		}
	}
	return 0
}

// beginsWord reports whether a word may begin at w[at]: the byte in front belongs to no
// word, or ends an escape.
func beginsWord(w []byte, at int) bool { return at == 0 || !isWord(w[at-1]) || endsEscape(w[:at]) }

// endsEscape reports whether w ends with an escape of a string or a URL, such as \n,
// \u0022 and %22, or with a colour whose ESC is written as one.
func endsEscape(w []byte) bool {
	n := len(w)
	hex := func(from int) bool { return strings.Trim(string(w[from:]), "0123456789abcdefABCDEF") == "" }
	switch {
	case n >= 2 && w[n-2] == '\\':
		return strings.IndexByte("abefnrtv0", w[n-1]) >= 0
	case n >= 3 && w[n-3] == '%':
		return hex(n - 2)
	case n >= 4 && w[n-4] == '\\':
		return (w[n-3] == 'x' || w[n-3] == '0') && hex(n-2)
	case n >= 6 && w[n-6] == '\\':
		return w[n-5] == 'u' && hex(n-4)
	case w[n-1] == 'm':
		open := bytes.TrimRight(w[:n-1], "0123456789;:")
		return bytes.HasSuffix(open, []byte("[")) && len(open) > 1 && (open[len(open)-2] == '[' || endsEscape(open[:len(open)-1]))
	}
	return false
}
