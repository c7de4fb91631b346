package redact

import "regexp/syntax"

var tokenForms = func() (forms [][2]string) {
	for _, t := range tokens() {
		forms = append(forms, [2]string{t.prefix, t.re})
	}
	return forms
}()

// TokenForms are the prefixes and expressions of known tokens.
func TokenForms() [][2]string { return tokenForms }

// Contexts are the expressions for secrets that the text around them reveals.
func Contexts() []string {
	all := []string{privateKeyLabel + privateKeyBody, puttyLabel + puttyBody, encodedKeyLabel + encodedKeyBody, passwordInURL, passwordInQuery, userInURL}
	for _, s := range spoken {
		all = append(all, s.label+s.secret)
	}
	for _, l := range labelled {
		all = append(all, l.label+l.secret)
	}
	return all
}

// FormsOf are the texts in which a value is looked for.
func FormsOf(value string) []string { return formsOf(value, formsAll) }

// Beginning returns the first place in p, from i on, where a pattern may begin: as the
// search finds it, and as looking at one byte after the other finds it.
func (r *Rules) Beginning(p []byte, i int) (found, first int) {
	d := r.automaton()
	first = i
	for first <= len(p)-d.begin.look() && !d.suspects(p[first:]) {
		first++
	}
	return d.find(p, i), first
}

func (d *dfa) suspects(p []byte) bool {
	if d.begin.look() == 1 {
		return d.begin.lead[p[0]]
	}
	return d.begins(p[:quad])
}

// LooksAhead reports whether more than one byte decides where a pattern may begin.
func (r *Rules) LooksAhead() bool { return r.automaton().begin.look() > 1 }

// FindNamed returns where the secret values of names are in text.
func FindNamed(text string) (all [][2]int) {
	for _, s := range findNamed(nil, []byte(text), 0, len(text)) {
		all = append(all, [2]int{s.start, s.end})
	}
	return all
}

// PrefixLen is the length of the token prefix at the start of text.
func PrefixLen(text string) int { return prefixLen([]byte(text)) }

// Labelled reports whether an expression of Contexts is for secrets behind a label.
func Labelled(expr string) bool {
	for _, l := range labelled {
		if expr == l.label+l.secret {
			return true
		}
	}
	return false
}

// FirstNamed returns the first match of namedValue from from on: as findNamed looks for
// it, and as the expression alone finds it.
func FirstNamed(w []byte, from int) (with, without []int) {
	match := func(begin int) []int {
		m := namedValue().FindIndex(w[begin:])
		if m == nil {
			return nil
		}
		return []int{begin + m[0], begin + m[1]}
	}
	if begin := nextNamed(w, from); begin >= 0 {
		with = match(begin)
	}
	return with, match(from)
}

// Needles are the needles of an expression.
func Needles(expr string) []string {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return needlesOf(tree)
}

// Fresh returns rules for tokens whose automaton nobody has used yet, and a function that
// tells how many states it has found.
func Fresh() (r *Rules, states func() int) {
	r = &Rules{opts: Options{Tokens: true}, sought: &sought{nfa: &nfa{}}}
	r.made.Do(func() {
		if err := r.assemble(); err != nil {
			panic(err)
		}
	})
	return r, func() int {
		r.table.mu.Lock()
		defer r.table.mu.Unlock()
		return r.table.states
	}
}
