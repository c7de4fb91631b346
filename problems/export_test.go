package problems

import (
	"reflect"
	"regexp"
)

// Required is the result of the search for required literals.
func Required(expression string) []string { return requiredOf(expression) }

// Resolve is a file's name seen from a directory.
var Resolve = resolve

// Known are the matchers of known tools.
var Known = known

// FirstPatterns are the expressions with which the matchers of a set begin.
func (s *Set) FirstPatterns() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, m := range s.matchers {
		switch {
		case len(m.patterns) > 0:
			all = append(all, m.patterns[0].line.regexp)
		case m.succeeds != nil:
			all = append(all, m.succeeds.regexp)
		default:
			all = append(all, m.begins.regexp)
		}
	}
	return all
}

// Candidates are the numbers of the matchers that a line is tried with.
func (s *Set) Candidates(line []byte) []uint16 {
	return s.scan.candidates(nil, line)
}

// NewExpression compiles one expression.
var NewExpression = newExpression

// Agrees reports whether an expression finds the same in a line as package regexp.
func (e *expression) Agrees(line []byte) bool {
	return e.match(line) == e.regexp.Match(line) && reflect.DeepEqual(e.groups(&scratch{}, line), e.regexp.FindSubmatch(line))
}
