package problems

import "regexp"

// Resolve is a file's name seen from a directory.
var Resolve = resolve

// Known are the matchers of known tools.
var Known = known

// FirstPatterns are the expressions with which the matchers of a set begin.
func (s *Set) FirstPatterns() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, m := range s.compiled {
		m := m()
		switch {
		case len(m.patterns) > 0:
			all = append(all, m.patterns[0].line)
		case m.succeeds != nil:
			all = append(all, m.succeeds)
		default:
			all = append(all, m.begins)
		}
	}
	return all
}

// Candidates are the numbers of the matchers that a line is tried with.
func (s *Set) Candidates(line []byte) []uint16 {
	return s.scan().candidates(nil, line)
}

// Noting returns the known matchers, with a function that is called for each one that a
// tracker compiles or uses.
func Noting(note func(owner string)) *Set {
	s := withKnown(nil, nil)
	for i, compiled := range s.compiled {
		s.compiled[i] = func() *matcher { note(s.all[i].Owner); return compiled() }
	}
	return s
}
