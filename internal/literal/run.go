package literal

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Run is a demand for a run of bytes of a set. The zero value is in every line.
type Run struct {
	set [256]bool
	n   int
}

// leastRun is the shortest run that is worth looking for, in bytes.
const leastRun = 4

// RequiredRun returns the longest run of one class that is in every line which an
// expression matches, such as nine digits for `id: \d{9}`.
func RequiredRun(expression string) (r Run) {
	if re, err := syntax.Parse(expression, syntax.Perl); err == nil {
		r.demand(re)
	}
	return r
}

func (r *Run) demand(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			r.demand(sub)
		}
	case syntax.OpRepeat:
		if class := re.Sub[0]; class.Op == syntax.OpCharClass && re.Min >= max(leastRun, r.n+1) {
			*r = Run{n: re.Min}
			for i := 0; i < len(class.Rune); i += 2 {
				r.add(class.Rune[i], class.Rune[i+1])
			}
		}
	}
}

// add adds the bytes of a range of runes. Of one that is not ASCII, all bytes are: it has
// at least one for each rune.
func (r *Run) add(from, to rune) {
	for c := from; c <= min(to, utf8.RuneSelf-1); c++ {
		r.set[c] = true
	}
	if to >= utf8.RuneSelf {
		for c := utf8.RuneSelf; c < len(r.set); c++ {
			r.set[c] = true
		}
	}
}

// In reports whether the run is in a line.
func (r *Run) In(line []byte) bool {
	for end := r.n; end <= len(line); {
		at := end
		for at > end-r.n && r.set[line[at-1]] {
			at--
		}
		if at == end-r.n {
			return true
		}
		end = at + r.n // a run of that length cannot begin before at
	}
	return false
}
