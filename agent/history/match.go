package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"

	"tether/internal/literal"
)

// Bounds of a pattern, and of what is shown of a hit.
const (
	MaxPattern = 1000 // bytes
	MaxContext = 20   // lines before a hit, and after it
	MaxHits    = 1000
	shownLine  = 500 // bytes of a line
)

// Expression is what Search looks for in each line: a regular expression, or texts of
// which one must be there before it is tried. It is safe for concurrent use.
type Expression struct {
	re    *regexp.Regexp
	texts []string   // nil if the expression demands none
	slots [][]uint32 // of the texts
	fold  bool       // the texts are in lower case
	run   literal.Run
}

// Compile returns the expression of a pattern in RE2's syntax, or, if fixed is set, of
// that text. With fold, case is ignored.
func Compile(pattern string, fixed, fold bool) (*Expression, error) {
	switch {
	case pattern == "":
		return nil, errors.New("the pattern is empty")
	case len(pattern) > MaxPattern:
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d", len(pattern), MaxPattern)
	}
	if fixed {
		pattern = regexp.QuoteMeta(pattern)
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("the pattern: %w", err)
	}
	e := &Expression{re: re, texts: literal.Required(pattern, false), run: literal.RequiredRun(pattern)}
	if e.texts == nil {
		e.texts = literal.Required(pattern, true)
		e.fold = true
	}
	for _, text := range e.texts {
		e.slots = append(e.slots, slots(text))
	}
	return e, nil
}

// found is a line of a text that the expression matches: its bounds in the text, without
// blanks and line ends, and the bounds of the first match in the line.
type found struct{ start, end, from, to int }

// matching looks for an expression. It is for one goroutine.
type matching struct {
	*Expression
	lower []byte
	next  []int // by text: where the next one is
}

// often is after how many lines a search looks whether its time is over.
const often = 128

// find returns the last most lines of the text that match, in their order. It returns
// ctx's error if that ends.
func (m *matching) find(ctx context.Context, text []byte, most int) ([]found, error) {
	var all []found
	hay := text
	if m.fold && m.texts != nil {
		m.lower = m.lower[:0]
		for _, c := range text {
			m.lower = append(m.lower, lower(c))
		}
		hay = m.lower
	}
	m.next = make([]int, len(m.texts))
	for i := range m.next {
		m.next[i] = -1
	}
	tried := 0
	for pos := 0; pos < len(text); {
		at := m.candidate(hay, pos)
		if at < 0 {
			break
		}
		start, end := pos+bytes.LastIndexByte(text[pos:at], '\n')+1, len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := bytes.TrimRight(text[start:end], " \r\n")
		var loc []int
		if m.run.In(line) {
			loc = m.re.FindIndex(line)
		}
		if loc != nil {
			all = append(all, found{start, start + len(line), loc[0], loc[1]})
			if len(all) > 2*most {
				all = append(all[:0], all[len(all)-most:]...)
			}
		}
		pos = end
		if tried++; tried%often == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return all[max(0, len(all)-most):], ctx.Err()
}

// candidate returns a position in the next line from pos on that may match, and -1 if
// there is none.
func (m *matching) candidate(hay []byte, pos int) int {
	if m.texts == nil {
		return pos
	}
	first := -1
	for i, text := range m.texts {
		if m.next[i] < pos && m.next[i] < len(hay) {
			if n := bytes.Index(hay[pos:], []byte(text)); n >= 0 {
				m.next[i] = pos + n
			} else {
				m.next[i] = len(hay)
			}
		}
		if m.next[i] < len(hay) && (first < 0 || m.next[i] < first) {
			first = m.next[i]
		}
	}
	return first
}
