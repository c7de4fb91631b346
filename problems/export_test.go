package problems

import "regexp"

// Required is what the search for literals takes for required.
func Required(expression string) []string { return literalsOf(expression).inside }

// Resolve is a file's name seen from a directory.
var Resolve = resolve

// Known are the matchers of known tools.
var Known = known

// FirstPatterns are the expressions with which the matchers of a set begin.
func (s *Set) FirstPatterns() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, m := range s.matchers {
		all = append(all, m.patterns[0].re)
	}
	return all
}

// Candidates are the numbers of the matchers that a line is tried with.
func (s *Set) Candidates(line []byte) []uint16 {
	var all []uint16
	for _, i := range s.scan.candidates(nil, line) {
		if s.matchers[i].first.allow(line) {
			all = append(all, i)
		}
	}
	return all
}
