package redact

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"

	"tether/internal/clip"
	"tether/internal/lazyregexp"
)

// Options choose which sequences a filter passes and which secrets it looks for.
type Options struct {
	Clipboard bool  // OSC 52 that sets the clipboard
	FileLinks bool  // OSC 8 with file:
	Images    int64 // bytes of images between two calls of Filter.Renew
	Silent    bool  // neither notifications nor bells pass
	Tokens    bool  // redact credentials of known forms
	// Patterns are regular expressions of further secrets: the first group if there is
	// one, else the whole match. They are looked for within 4 KiB; ^ and $ are the ends
	// of a line.
	Patterns []string
}

// Rules are options made ready. They are safe for concurrent use.
type Rules struct {
	opts   Options
	values []string // to redact, in all their forms, the longest first
	apart  bool     // there are so many of them that the automaton does not look for them in named values: find does

	made sync.Once
	*sought

	mu   sync.Mutex
	with map[string]*Rules // by values: terminals of one login share them
}

// sought is what Rules look for. It does not change once it is made.
type sought struct {
	nfa    *nfa
	checks []check
	words  uint64            // the groups of those checks that have word
	tokens [256][]tokenCheck // by the tokenSlot of their prefix
	table  *dfa              // see automaton
}

// tokensAlone is what rules without values and patterns look for. All of them share it.
var tokensAlone = sync.OnceValue(func() *sought {
	r := &Rules{opts: Options{Tokens: true}, sought: &sought{nfa: &nfa{}}}
	if err := r.assemble(); err != nil {
		panic(err) // these are the known forms of tokens, which tests build
	}
	return r.sought
})

// check decides about a suspicion of the automaton.
type check struct {
	group     uint8 // a bit of a dfa's groups
	re        *regexp.Regexp
	needles   []string          // see needlesOf
	plausible func(string) bool // nil: always
	word      bool              // it begins only where a word does
}

// tokenCheck is a check of a token. The prefix stays visible, and re matches the token
// from its prefix on. Most are never needed, so each is compiled on first use.
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
	groupRest     = groupLabelled + 30 // and up to 63: patterns of the person's
)

// known are the groups of known forms. Text that a name or a bridge makes suspect is
// searched for all of them.
const known = 1<<groupTokens | 1<<groupURLs | (1<<groupRest - 1<<groupLabelled)

// Compile makes rules. It returns an error for a pattern that is no regular expression,
// or if there are too many or too complex ones.
func Compile(o Options) (*Rules, error) { return compile(o, nil, formsAll) }

func compile(o Options, values []string, forms int) (*Rules, error) {
	r := &Rules{opts: o, sought: &sought{nfa: &nfa{}}, apart: forms == formsApart, with: map[string]*Rules{}}
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
		r.table, err = build(r.nfa, len(r.values)+len(r.opts.Patterns) > 0)
	}
	return err
}

// automaton returns the automaton that suspects everything to be redacted; nil if there
// is nothing.
func (r *Rules) automaton() *dfa {
	r.made.Do(func() { // without values and patterns, or it would be made already
		if r.opts.Tokens {
			r.sought = tokensAlone()
		}
	})
	return r.table
}

// Clipboard reports whether setting the clipboard is let through. Nil rules do not say
// so.
func (r *Rules) Clipboard() bool { return r != nil && r.opts.Clipboard }

// With returns rules that also redact values, as Values returns them. If there are very
// many, only their common forms are looked for. If even these are too many beside the
// patterns, ok is false and the result is r, which redacts none of them.
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

// beginInside is begin for a pattern that is looked for in named values, too. The caller
// sets stays on its nodes.
func (a *nfa) beginInside() int32 {
	n := a.begin()
	a.inside = append(a.inside, n)
	return n
}

// label adds the text in front of a secret that may begin in a named value and end behind
// it.
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

// openValue is how many bytes of a value are masked when nothing follows. Fewer are
// released: any text ends with the first bytes of some value.
const openValue = 3

// value adds a value. In the tail of a token and in a named value the automaton looks for
// it only if it may end behind them, because find looks for all values there. Otherwise a
// few dozen values would be too many.
func (a *nfa) value(v string, inside bool) {
	from := a.empty()
	if strings.Trim(v, tailChars) == "" {
		a.plain = append(a.plain, from)
	} else {
		a.starts = append(a.starts, from)
	}
	if inside = inside && longerThanNamed().MatchString(v); inside {
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

// longerThanNamed matches what ends a named value.
var longerThanNamed = lazyregexp.New("[^!-~]|[\"'`<>&;,]")

func (r *Rules) addTokens() error {
	// All tokens share one tail. Otherwise each pending token would double the automaton,
	// because a token may contain the prefix of another.
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
	for _, t := range tokens() {
		from := r.nfa.empty()
		r.nfa.tokens = append(r.nfa.tokens, from)
		r.nfa.link(r.nfa.literal(from, t.prefix), joint)
		re := lazyregexp.New(`\A(?:` + t.re + `)`)
		slot := tokenSlot(t.prefix[0], t.prefix[1])
		r.tokens[slot] = append(r.tokens[slot], tokenCheck{t.prefix, re})
	}
	for i, l := range labelled {
		if err := r.addLabelled(i, joint); err != nil {
			return fmt.Errorf("%s: %w", l.label, err)
		}
	}
	if err := r.addNamed(); err != nil {
		return err
	}
	for _, b := range spoken {
		if err := r.check(groupNamed, b.label+b.secret); err != nil {
			return err
		}
		r.checks[len(r.checks)-1].plausible = b.plausible
	}
	// One expression for all secrets in URLs, and one for all labels: each one that may
	// be pending beside another doubles the automaton.
	return errors.Join(r.addKeys(privateKeyLabel, privateKeyBody, groupKeys), r.addKeys(puttyLabel, puttyBody, groupKeys), r.addKeys(encodedKeyLabel, encodedKeyBody, groupEncoded), r.suspect(anyInURL, groupURLs), r.check(groupURLs, passwordInURL), r.check(groupURLs, passwordInQuery), r.check(groupURLs, userInURL))
}

// addLabelled adds labelled[i]. joint is where the tail of tokens begins.
func (r *Rules) addLabelled(i int, joint int32) (err error) {
	l, group, end := &labelled[i], groupLabelled+uint8(i), int32(0)
	switch {
	case l.word && !strings.Contains(l.label+l.more, ":"): // which ends the tail of a token
		from := r.nfa.empty()
		r.nfa.tokens = append(r.nfa.tokens, from)
		r.words |= 1 << group
		end, err = r.nfa.parse(from, l.label)
	case strings.ContainsAny(l.label, ` "`): // these may go on where a named value ends
		end, err = r.nfa.label(l.label)
	default:
		end, err = r.nfa.parse(r.nfa.begin(), l.label)
	}
	if err != nil {
		return err
	}
	first := len(r.nfa.nodes)
	if end, err = r.nfa.parse(end, l.more); err != nil {
		return err
	}
	for i := first; i < len(r.nfa.nodes); i++ {
		r.nfa.nodes[i].hold = true
	}
	r.nfa.link(end, joint)
	r.nfa.link(end, r.nfa.add(node{next: -1, accept: true, group: group}))
	if err = r.check(group, l.label+l.secret); err != nil {
		return err
	}
	c := &r.checks[len(r.checks)-1]
	c.plausible, c.word = l.plausible, l.word
	return nil
}

// addNamed adds values behind names. Inside a value the automaton keeps only patterns
// whose nodes stay, because find looks for everything else there.
func (r *Rules) addNamed() error {
	names := len(r.nfa.nodes)
	end, err := r.nfa.parse(r.nfa.beginInside(), namedLabel+"|"+spokenLabel)
	if err != nil {
		return err
	}
	for _, value := range [][2]string{{`\\?` + bareFirst, bareRest}, {quote + quotedFirst, quotedRest}} {
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

// addKeys adds private keys. Behind the first line of a key nothing else is looked for,
// because all of it is secret.
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
		groups |= d.state(at).groups
	}
	return groups
}

// maxShownTitle bounds a title, in bytes.
const maxShownTitle = 256

// Title is Redact for a title or name: it also cuts it to 256 bytes, and removes control
// characters, invisible characters and those that change the direction of text. Nil rules
// change nothing.
func (r *Rules) Title(s string) string {
	if r == nil {
		return s
	}
	return clip.Text(r.Redact(Clean(s)), maxShownTitle)
}

// Clean returns s without control characters, and without characters that are invisible
// or change the direction of text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

// hidden reports whether a character is invisible, a control character, or changes the
// direction of text.
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
