package redact

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"

	"tether/internal/clip"
)

// Options choose which sequences a filter passes and which secrets it looks for.
type Options struct {
	Clipboard bool  // OSC 52 that sets the clipboard
	FileLinks bool  // OSC 8 with file:
	Images    int64 // bytes of images between two calls of Filter.Renew
	Silent    bool  // neither notifications nor bells pass
	Tokens    bool  // redact credentials of known forms
	// Patterns are regular expressions of further secrets: the first group if there is one, else the whole match. They are looked for within 4
	// KiB; ^ and $ are the ends of a line.
	Patterns []string
}

// Rules are options made ready. They are safe for concurrent use.
type Rules struct {
	opts   Options
	values []string // to redact, in all their forms, the longest first
	apart  bool     // there are so many of them that the automaton does not look for them in named values: find does
	nfa    *nfa
	checks []check
	tokens [256][]tokenCheck // by the tokenSlot of their prefix

	made  sync.Once // of nfa, checks, tokens and table
	table *dfa      // see automaton

	mu   sync.Mutex
	with map[string]*Rules // by values: terminals of one login share them
}

// check decides about a suspicion of the automaton.
type check struct {
	group     uint8 // a bit of a dfa's groups
	re        *regexp.Regexp
	needles   []string          // see needlesOf
	plausible func(string) bool // nil: always
}

// tokenCheck is a check of a token. The prefix stays visible, and re matches the token from its prefix on. Most are never needed, so each
// is compiled on first use.
type tokenCheck struct {
	prefix string
	re     func() *regexp.Regexp
}

// Groups of patterns: bits of a dfa's groups.
const (
	groupValues = iota
	groupTokens
	groupNamed
	groupKeys
	groupURLs
	groupEncoded
	groupBridged                       // any of these, across a line's end or a move in the line
	groupLabelled                      // and as many as there are of labelled
	groupRest     = groupLabelled + 25 // and up to 63: patterns of the person's
)

// known are the groups of known forms. Text that a name or a bridge makes suspect is searched for all of them.
const known = 1<<groupTokens | 1<<groupURLs | (1<<groupRest - 1<<groupLabelled)

// Compile makes rules. It returns an error for a pattern that is no regular expression, or if there are too many or too complex ones.
func Compile(o Options) (*Rules, error) { return compile(o, nil, formsAll) }

func compile(o Options, values []string, forms int) (*Rules, error) {
	r := &Rules{opts: o, nfa: &nfa{}, apart: forms == formsApart, with: map[string]*Rules{}}
	if len(values) == 0 && len(o.Patterns) == 0 {
		return r, nil // a daemon that lends nothing never needs the automaton
	}
	for _, v := range values {
		for _, form := range formsOf(v, forms) {
			if !slices.Contains(r.values, form) {
				r.values = append(r.values, form)
			}
		}
	}
	slices.SortStableFunc(r.values, func(a, b string) int { return len(b) - len(a) })
	var err error
	r.made.Do(func() { err = r.assemble() })
	if err != nil {
		return nil, err
	}
	return r, nil
}

// assemble makes the automaton and the checks.
func (r *Rules) assemble() (err error) {
	for _, v := range r.values {
		r.nfa.value(v, !r.apart)
	}
	if r.opts.Tokens {
		if err := r.addTokens(); err != nil {
			return err
		}
	}
	for i, p := range r.opts.Patterns {
		if err := r.addPattern(p, uint8(groupRest+i%(64-groupRest))); err != nil {
			return fmt.Errorf("pattern %d: %w", i+1, err)
		}
	}
	if len(r.nfa.nodes) > 0 {
		r.nfa.bridges()
		r.table, err = build(r.nfa)
	}
	return err
}

// automaton returns the automaton that suspects everything to be redacted; nil if there is nothing.
func (r *Rules) automaton() *dfa {
	r.made.Do(func() {
		if err := r.assemble(); err != nil {
			panic(err) // these are the known forms of tokens, which tests build
		}
	})
	return r.table
}

// Clipboard reports whether setting the clipboard is let through. Nil rules do not say so.
func (r *Rules) Clipboard() bool { return r != nil && r.opts.Clipboard }

// With returns rules that also redact values, as Values returns them. If there are very many, only their common forms are looked for. If
// even these are too many beside the patterns, ok is false and the result is r, which redacts none of them.
func (r *Rules) With(values []string) (_ *Rules, ok bool) {
	if len(values) == 0 {
		r.automaton() // now, and not when there is text to look at
		return r, true
	}
	key := strings.Join(values, "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.with[key]; found != nil {
		return found, true
	}
	made, err := (*Rules)(nil), errComplex
	for forms := formsAll; err != nil; forms++ {
		if forms == formsNone {
			return r, false
		}
		made, err = compile(r.opts, values, forms)
	}
	const most = 16 // sets of values that are remembered
	if len(r.with) >= most {
		clear(r.with)
	}
	r.with[key] = made
	return made, true
}

// begin adds a pattern's first state.
func (a *nfa) begin() int32 {
	n := a.empty()
	a.starts = append(a.starts, n)
	return n
}

// beginInside is begin for a pattern that is looked for in named values, too. The caller sets stays on its nodes.
func (a *nfa) beginInside() int32 {
	n := a.begin()
	a.inside = append(a.inside, n)
	return n
}

// label adds the text in front of a secret that may begin in a named value and end behind it.
func (a *nfa) label(p string) (end int32, err error) {
	first := len(a.nodes)
	end, err = a.parse(a.beginInside(), p)
	a.stay(first)
	return end, err
}

// stay lets the nodes from first on remain in a named value.
func (a *nfa) stay(first int) {
	for i := first; i < len(a.nodes); i++ {
		a.nodes[i].stays = true
	}
}

// finish lets a pattern end at a state, and flags its states from first on.
func (a *nfa) finish(end int32, group uint8, first int, masked bool) {
	accept := a.add(node{next: -1, accept: true, group: group})
	a.link(end, accept)
	for i := first; i < len(a.nodes); i++ {
		a.nodes[i].hold, a.nodes[i].masked = true, masked
	}
}

// openValue is how many bytes of a value are masked when nothing follows. Fewer are released: any text ends with the first bytes of some
// value.
const openValue = 3

func (a *nfa) value(v string, inside bool) {
	from := a.begin()
	if inside {
		a.inside = append(a.inside, from)
	}
	open := len(a.nodes)
	from = a.literal(from, v[:openValue])
	closed := len(a.nodes)
	a.finish(a.literal(from, v[openValue:]), groupValues, closed, true)
	for i := open; i < closed; i++ {
		a.nodes[i].hold = true
	}
	a.nodes[closed-2].masked = true // the state behind them
	if inside {
		a.stay(open)
	}
}

func (r *Rules) addTokens() error {
	// All tokens share one tail. Otherwise each pending token would double the automaton, because a token may contain the prefix of
	// another.
	joint := r.nfa.empty()
	first := len(r.nfa.nodes)
	end, err := r.nfa.parse(joint, tokenTail)
	if err != nil {
		return err
	}
	r.nfa.finish(end, groupTokens, first, true)
	for i := first; i < len(r.nfa.nodes); i++ {
		r.nfa.nodes[i].tail = true
	}
	for _, t := range tokens {
		from := r.nfa.empty()
		r.nfa.tokens = append(r.nfa.tokens, from)
		r.nfa.link(r.nfa.literal(from, t.prefix), joint)
		re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + t.re + `)`) })
		slot := tokenSlot(t.prefix[0], t.prefix[1])
		r.tokens[slot] = append(r.tokens[slot], tokenCheck{t.prefix, re})
	}
	for i, l := range labelled {
		group, err := groupLabelled+uint8(i), error(nil)
		if strings.ContainsAny(l.begin, ` "`) { // these may go on where a named value ends
			end, err = r.nfa.label(l.begin)
		} else {
			end, err = r.nfa.parse(r.nfa.begin(), l.begin)
		}
		if err == nil {
			r.nfa.link(end, joint)
			r.nfa.link(end, r.nfa.add(node{next: -1, accept: true, group: group}))
		}
		if err = errors.Join(err, r.check(group, l.re)); err != nil {
			return err
		}
		r.checks[len(r.checks)-1].plausible = l.plausible
	}
	if err := r.addNamed(); err != nil {
		return err
	}
	// One expression for all secrets in URLs, and one for all labels: each one that may be pending beside another doubles the automaton.
	for _, b := range branded {
		if err := r.check(groupNamed, b); err != nil {
			return err
		}
	}
	return errors.Join(r.addKeys(privateKeyLabel, privateKeyBody, groupKeys), r.addKeys(puttyLabel, puttyBody, groupKeys), r.addKeys(encodedKeyLabel, encodedKeyBody, groupEncoded), r.suspect(anyInURL, groupURLs), r.check(groupURLs, passwordInURL), r.check(groupURLs, userInURL))
}

// addNamed adds values behind names. Inside a value the automaton keeps only patterns whose nodes stay, because find looks for everything
// else there.
func (r *Rules) addNamed() error {
	names := len(r.nfa.nodes)
	end, err := r.nfa.parse(r.nfa.beginInside(), namedLabel+"|"+brandLabel)
	if err != nil {
		return err
	}
	for _, value := range [][2]string{{bareFirst, bareRest}, {quotedFirst, quotedRest}} {
		begun, err := r.nfa.parse(end, value[0])
		if err != nil {
			return err
		}
		rest := r.nfa.empty()
		r.nfa.link(begun, rest)
		first := len(r.nfa.nodes)
		after, err := r.nfa.parse(rest, value[1])
		if err != nil {
			return err
		}
		r.nfa.finish(after, groupNamed, first, false)
		for i := first; i < len(r.nfa.nodes); i++ {
			r.nfa.nodes[i].value = true
		}
	}
	r.nfa.stay(names) // a value may contain a name with a value in quotes
	return nil
}

// addKeys adds private keys. Behind the first line of a key nothing else is looked for, because all of it is secret.
func (r *Rules) addKeys(label, secret string, group uint8) error {
	end, err := r.nfa.label(label)
	if err != nil {
		return err
	}
	body := r.nfa.empty()
	r.nfa.link(end, body)
	first := len(r.nfa.nodes)
	if end, err = r.nfa.parse(body, secret); err != nil {
		return err
	}
	r.nfa.finish(end, group, first, false)
	for i := first; i < len(r.nfa.nodes); i++ {
		r.nfa.nodes[i].alone = true
	}
	return r.check(group, label+secret)
}

// addPattern adds an expression of the person's.
func (r *Rules) addPattern(p string, group uint8) error {
	p = "(?m:" + p + ")"
	return errors.Join(r.suspect(p, group), r.check(group, p))
}

// suspect makes the checks of a group examine the matches of an expression.
func (r *Rules) suspect(p string, group uint8) error {
	first := len(r.nfa.nodes)
	end, err := r.nfa.parse(r.nfa.beginInside(), p)
	if err == nil {
		r.nfa.finish(end, group, first, false)
		r.nfa.stay(first)
	}
	return err
}

func (r *Rules) check(group uint8, p string) error {
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return err
	}
	re, err := regexp.Compile(p)
	r.checks = append(r.checks, check{group: group, re: re, needles: needlesOf(tree)})
	return err
}

// parse adds an expression behind the state from and returns the state after it.
func (a *nfa) parse(from int32, p string) (int32, error) {
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return a.expression(from, tree), nil
}

// span is a range of bytes.
type span struct{ start, end int }

// tokenSlot returns the slot of tokens that begin with a and b. The first byte alone would put too many tokens into one slot.
func tokenSlot(a, b byte) byte { return a*31 + b }

// passage is joined text that is searched: for secrets that begin at w[first] or later, and in front of w[last]. The text around shows
// whether a word or a line begins or ends there.
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

// seam reports whether something was removed in front of w[i]. Where a bridge was removed no word ends.
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
			// Masked text is not searched again, and behind a bridge the groups are unknown.
			spans = r.find(spans, p, groups|(1<<groupBridged-1)|known)
		}
		return spans
	}
	w, first, last := p.w, p.first, p.last
	if groups>>groupValues&1 == 1 || r.apart && groups>>groupNamed&1 == 1 {
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
		for _, m := range c.matches(w) {
			if m[0] < first || m[0] >= last {
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

// matches returns the matches in w, of known forms also those that begin in the secret of another.
func (c *check) matches(w []byte) (all [][]int) {
	if c.group >= groupRest {
		return c.re.FindAllSubmatchIndex(w, -1)
	}
	for from := 0; ; {
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

// end returns the end of the token that begins at p.w[at], 0 if there is none. A word may end where a sequence was removed.
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

// beginsWord reports whether a word may begin at w[at]: the byte in front belongs to no word.
func beginsWord(w []byte, at int) bool { return at == 0 || !isWord(w[at-1]) }

// Redact returns s, a short text that is not part of a stream, with its secrets replaced.
func (r *Rules) Redact(s string) string {
	if r == nil || r.automaton() == nil {
		return s
	}
	w, f := []byte(s), newRedactor(r, 0)
	f.feed(w)
	f.end(false)
	if len(f.masks) == 0 {
		return s
	}
	for _, m := range f.masks {
		m.Put(w, 0)
	}
	return string(w)
}

// suspect returns the groups that may be in p.
func (d *dfa) suspect(p []byte) (groups uint64) {
	at := uint16(0)
	for _, b := range p {
		at = d.after(at, b)
		groups |= d.groups[at]
	}
	return groups
}

// maxShownTitle bounds a title, in bytes.
const maxShownTitle = 256

// Title is Redact for a title or name: it also cuts it to 256 bytes, and removes control characters, invisible characters and those that
// change the direction of text. Nil rules change nothing.
func (r *Rules) Title(s string) string {
	if r == nil {
		return s
	}
	return clip.Text(r.Redact(Clean(s)), maxShownTitle)
}

// Clean returns s without control characters, and without characters that are invisible or change the direction of text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

// hidden reports whether a character is invisible, a control character, or changes the direction of text.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c: // direction
		return true
	case r == 0x200b, r == 0x2060, r == 0xfeff, r >= 0xe0000 && r <= 0xe007f: // no width, tags
		return true
	}
	return false
}
