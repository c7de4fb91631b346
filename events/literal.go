package events

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	maxPattern  = 1 << 10 // bytes
	maxProgram  = 4096    // instructions of a compiled pattern, which bound the cost of a byte of output
	leastLetter = 3       // least length, in bytes, of a literal that is searched first
)

// pattern matches lines.
type pattern struct {
	re *regexp.Regexp
	// literal is contained in every matching line; nil if no literal of at least
	// leastLetter bytes is known.
	literal []byte
}

// newPattern compiles an RE2 expression, and refuses one that is too expensive.
func newPattern(text string) (*pattern, error) {
	if text == "" {
		return nil, errors.New("is missing: a regular expression (RE2) that a line must match")
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("has %d bytes, at most %d are allowed", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("is not a regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	parsed = parsed.Simplify()
	prog, err := syntax.Compile(parsed)
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxProgram {
		return nil, fmt.Errorf("is too large: repetitions make it %d instructions, at most %d are allowed", len(prog.Inst), maxProgram)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{re: re}
	if literal := longest(parsed); len(literal) >= leastLetter {
		p.literal = []byte(literal)
	}
	return p, nil
}

// longest returns the longest text that is contained in everything that the expression
// matches.
func longest(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return longest(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return longest(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if text := longest(sub); len(text) > len(best) {
				best = text
			}
		}
		return best
	}
	return ""
}
