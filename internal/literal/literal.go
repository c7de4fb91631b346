// Package literal finds the texts that a regular expression demands, so that they can be
// looked for before the expression is tried, which takes longer.
//
//	literal.Required(`error TS[0-9]+`, false) // "error TS"
package literal

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

const maxLiterals = 64 // alternatives

// Required returns texts one of which is in every line that an expression matches; nil if
// the expression demands none of at least two bytes. Texts that may be in either case are
// not among them, unless lower is set: then all are in lower case, as to ASCII, and are
// to be looked for in such lines.
func Required(expression string, lower bool) []string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	best := finder{lower}.demand(re.Simplify()).best
	if shortest(best) < 2 {
		return nil
	}
	return best
}

// finder looks for literals; lower is as for Required.
type finder struct{ lower bool }

// demands are an expression's demands: exact are all texts that it can match, nil if
// those are too many; one of best is in each, each begins with one of prefix and ends
// with one of suffix.
type demands struct{ exact, best, prefix, suffix []string }

// demand walks an expression from its leaves.
func (f finder) demand(re *syntax.Regexp) demands {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return exactly([]string{""})
	case syntax.OpLiteral:
		return f.text(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return f.class(re.Rune)
	case syntax.OpCapture:
		return f.demand(re.Sub[0])
	case syntax.OpPlus:
		d := f.demand(re.Sub[0])
		d.exact = nil
		return d
	case syntax.OpQuest:
		if d := f.demand(re.Sub[0]); d.exact != nil {
			return exactly(append([]string{""}, d.exact...))
		}
	case syntax.OpConcat:
		return f.sequence(re.Sub)
	case syntax.OpAlternate:
		return f.alternatives(re.Sub)
	}
	return demands{}
}

func exactly(texts []string) demands {
	if len(texts) > maxLiterals {
		return demands{}
	}
	return demands{texts, texts, texts, texts}
}

func (f finder) class(ranges []rune) demands {
	var texts []string
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(texts) == 8 {
				return demands{}
			}
			if l := string(f.folded(r)); !slices.Contains(texts, l) {
				texts = append(texts, l)
			}
		}
	}
	return exactly(texts)
}

// text is a literal, perhaps in either case.
func (f finder) text(runes []rune, either bool) demands {
	if either && !f.lower {
		return demands{}
	}
	all := []string{""}
	for i, r := range runes {
		each := []string{string(f.folded(r))}
		for o := unicode.SimpleFold(r); either && o != r; o = unicode.SimpleFold(o) {
			if l := string(f.folded(o)); !slices.Contains(each, l) {
				each = append(each, l) // such as the long s, beyond ASCII
			}
		}
		longer := product(all, each)
		if longer == nil { // the rest is another part
			return sequenceOf(exactly(all), f.text(runes[i:], either))
		}
		all = longer
	}
	return exactly(all)
}

// folded is a letter as the lines have it in which its text is looked for.
func (f finder) folded(r rune) rune {
	if f.lower && r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// sequence joins neighbours that are exact, and keeps the best of the result.
func (f finder) sequence(subs []*syntax.Regexp) demands {
	var parts []demands
	for _, sub := range subs {
		parts = append(parts, f.demand(sub))
	}
	return sequenceOf(parts...)
}

func sequenceOf(parts ...demands) demands {
	var all demands
	near := []string{""} // with the end of the part before
	whole := true
	for _, d := range parts {
		if joined := product(near, d.exact); joined != nil {
			near = joined
			all.best = better(all.best, near)
			continue
		}
		reached := product(near, d.prefix)
		if whole {
			all.prefix = near
			if reached != nil {
				all.prefix = reached
			}
		}
		whole = false
		all.best = better(better(all.best, reached), d.best)
		near = d.suffix
		if near == nil {
			near = []string{""}
		}
	}
	if whole {
		return demands{near, all.best, near, near}
	}
	all.suffix = near
	return all
}

func (f finder) alternatives(subs []*syntax.Regexp) demands {
	var all demands
	exact, prefix, suffix := true, true, true
	for _, sub := range subs {
		d := f.demand(sub)
		if d.best == nil {
			return demands{}
		}
		all.best = append(all.best, d.best...)
		all.exact = append(all.exact, d.exact...)
		all.prefix = append(all.prefix, d.prefix...)
		all.suffix = append(all.suffix, d.suffix...)
		exact, prefix, suffix = exact && d.exact != nil, prefix && d.prefix != nil, suffix && d.suffix != nil
	}
	keep := func(texts *[]string, complete bool) {
		if !complete || len(*texts) > maxLiterals {
			*texts = nil
		}
	}
	keep(&all.best, true)
	keep(&all.exact, exact)
	keep(&all.prefix, prefix)
	keep(&all.suffix, suffix)
	return all
}

// product is each text of a followed by each of b; nil if b is nil or the product is too
// large.
func product(a, b []string) []string {
	if b == nil || len(a)*len(b) > maxLiterals {
		return nil
	}
	var all []string
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

// better returns the one whose shortest text is longer; if these are equally long, the
// one with fewer texts.
func better(a, b []string) []string {
	switch x, y := shortest(a), shortest(b); {
	case y > x, y == x && b != nil && len(b) < len(a):
		return b
	}
	return a
}

func shortest(texts []string) int {
	n := 0
	for i, l := range texts {
		if i == 0 || len(l) < n {
			n = len(l)
		}
	}
	return n
}
