package problems

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"tether/internal/literal"
)

// Bounds of a matcher.
const (
	maxRegexp   = 2000 // bytes
	maxPatterns = 20   // of one matcher
	maxSkip     = 200  // lines
	maxMatchers = 1000 // of a set
	maxName     = 100  // bytes of an owner or name
)

// Matcher tells the problems of one tool from other output, in the shape of VS Code's
// problem matchers
// (https://code.visualstudio.com/docs/editor/tasks#_defining-a-problem-matcher). Its
// patterns match lines one after the other. Clears, and the fields of Pattern that say
// so, are additions.
type Matcher struct {
	Name     string `json:"name"`
	Owner    string `json:"owner"`    // the tool's name; problems of one owner are cleared together
	Severity string `json:"severity"` // of problems for which no pattern finds one; "error" if empty
	// Patterns may be empty for a matcher that has only a Background or Succeeds
	// (addition).
	Patterns []Pattern `json:"pattern"`
	// Background tells the rounds of a tool that watches files; nil for others.
	Background *Background `json:"background"`
	// Clears are owners whose problems end with this owner's (addition); "*" is all.
	Clears []string `json:"clears"`
	// Weak problems count only while the same owner has none in the same file (addition):
	// for summaries that repeat more precise reports.
	Weak bool `json:"weak"`
	// Succeeds matches a line with which the tool says that it found no errors
	// (addition): its errors are cleared.
	Succeeds string `json:"succeeds"`
	// Package matches the line behind the problems of a Go package, whose import path is
	// its first group (addition): files are named within that.
	Package string `json:"package"`
}

// Pattern matches one line. The numbers are those of groups in Regexp; 0 is none.
type Pattern struct {
	Regexp   string `json:"regexp"` // RE2
	Kind     string `json:"kind"`   // "location" (default) or "file", without a line
	File     int    `json:"file"`
	Location int    `json:"location"` // "line", "line,column" or "line,column,endLine,endColumn"
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	EndLine  int    `json:"endLine"`
	EndCol   int    `json:"endColumn"`
	Severity int    `json:"severity"`
	Code     int    `json:"code"`
	Message  int    `json:"message"` // messages of several patterns are joined
	// Loop: the last pattern may match several lines, each of which is a problem. If it
	// is not the last pattern (addition), those are problems as soon as the patterns
	// after it match, too.
	Loop bool `json:"loop"`
	// Skip is how many lines that do not match may lie before this one (addition).
	Skip int `json:"skip"`
	// Latest: the pattern may match several lines, and the last of them counts
	// (addition).
	Latest bool `json:"latest"`
	// Import: a file that is not absolute is named by an import path (addition), and the
	// pattern is of no use where that tells no directory.
	Import bool `json:"import"`
	// Exclude: a line that matches this, too, does not match (addition).
	Exclude string `json:"exclude"`
	// Until: a line that matches this ends the attempt, if the pattern does not match
	// first (addition).
	Until string `json:"until"`
}

// Background says by which lines a tool that watches files begins and ends a round. When
// one begins, the owner's problems are cleared.
type Background struct {
	ActiveOnStart bool   `json:"activeOnStart"`
	Begins        string `json:"beginsPattern"`
	Ends          string `json:"endsPattern"`
	// Late: the round's first problems may be printed before the line that begins it
	// (addition). Problems that were printed since the line before stay.
	Late bool `json:"late"`
}

// Set is a list of matchers; of those that match a line, the first wins. It never changes
// and is safe for concurrent use.
type Set struct {
	all      []Matcher
	compiled []func() *matcher // known ones when a line first may concern them: few ever do
	// scan finds which matchers' first patterns and rounds a line may match.
	scan func() *automaton
}

func newSet(all []Matcher, compiled []func() *matcher) *Set {
	return &Set{all, compiled, sync.OnceValue(func() *automaton {
		var needed [][]string
		for i := range all {
			needed = append(needed, all[i].inside())
		}
		return newAutomaton(needed)
	})}
}

type matcher struct {
	Matcher
	patterns []pattern
	begins   *regexp.Regexp
	ends     *regexp.Regexp // Background.Ends
	succeeds *regexp.Regexp
	ofPkg    *regexp.Regexp // Package
	severity Severity
}

type pattern struct {
	Pattern
	line, exclude, until *regexp.Regexp
}

// Compile checks matchers and prepares them. The error names the matcher and its fault.
func Compile(all ...Matcher) (*Set, error) {
	if len(all) > maxMatchers {
		return nil, fmt.Errorf("%d problem matchers, at most %d", len(all), maxMatchers)
	}
	var compiled []func() *matcher
	for i, m := range all {
		c, err := m.compile()
		if err != nil {
			name := cmp.Or(m.Name, m.Owner)
			return nil, fmt.Errorf("problem matcher %d (%.40q): %w", i+1, name, err)
		}
		compiled = append(compiled, func() *matcher { return c })
	}
	return newSet(all, compiled), nil
}

// inside are texts one of which is in every line that concerns the matcher outside an
// attempt; nil if there are none.
func (m *Matcher) inside() (all []string) {
	for i, re := range append([]string{m.backgroundBegins(), m.backgroundEnds(), m.Succeeds, m.Package}, m.first()...) {
		if re == "" && i < 4 {
			continue
		}
		more := literal.Required(re, false)
		if more == nil {
			return nil
		}
		all = append(all, more...)
	}
	return all
}

// first is the expression of the first pattern, if there is one.
func (m *Matcher) first() []string {
	if len(m.Patterns) == 0 {
		return nil
	}
	return []string{m.Patterns[0].Regexp}
}

func (m *Matcher) backgroundBegins() string {
	if m.Background == nil {
		return ""
	}
	return m.Background.Begins
}

func (m *Matcher) backgroundEnds() string {
	if m.Background == nil {
		return ""
	}
	return m.Background.Ends
}

func (m Matcher) compile() (*matcher, error) {
	switch {
	case m.Owner == "":
		return nil, errors.New("owner is missing; it is the tool's name")
	case len(m.Owner) > maxName || len(m.Name) > maxName:
		return nil, fmt.Errorf("owner and name may have %d bytes at most", maxName)
	case len(m.Patterns) == 0 && m.backgroundBegins() == "" && m.Succeeds == "":
		return nil, errors.New("pattern is missing, and there is no background with a beginsPattern")
	case len(m.Patterns) > maxPatterns:
		return nil, fmt.Errorf("%d patterns, at most %d", len(m.Patterns), maxPatterns)
	}
	c := &matcher{Matcher: m, severity: severityOf(m.Severity, "")}
	if c.severity == "" {
		if m.Severity != "" {
			return nil, fmt.Errorf("severity %.40q must be error, warning or info", m.Severity)
		}
		c.severity = Error
	}
	var names Pattern // the sum of all groups tells which fields there are
	for i, p := range m.Patterns {
		cp, err := p.compile()
		if err != nil {
			return nil, fmt.Errorf("pattern %d: %w", i+1, err)
		}
		c.patterns = append(c.patterns, cp)
		names.File += p.File
		names.Line += p.Line + p.Location
		names.Message += p.Message
	}
	if len(m.Patterns) > 0 {
		if err := m.complete(names); err != nil {
			return nil, err
		}
	}
	var err error
	if c.begins, err = compileRegexp("beginsPattern", c.backgroundBegins()); err != nil {
		return nil, err
	}
	if c.succeeds, err = compileRegexp("succeeds", m.Succeeds); err != nil {
		return nil, err
	}
	if c.ofPkg, err = compileRegexp("package", m.Package); err != nil {
		return nil, err
	}
	if c.ofPkg != nil && c.ofPkg.NumSubexp() < 1 {
		return nil, errors.New("package has no group")
	}
	if c.ends, err = compileRegexp("endsPattern", c.backgroundEnds()); err != nil {
		return nil, err
	}
	return c, nil
}

// complete checks that the patterns together make a problem, as VS Code does.
func (m Matcher) complete(names Pattern) error {
	switch {
	case names.Message == 0:
		return errors.New("no pattern has a message")
	case m.Weak, m.Patterns[0].Kind == "none":
		return nil
	case names.File == 0:
		return errors.New("no pattern has a file")
	case names.Line == 0 && m.Patterns[0].Kind != "file":
		return errors.New(`no pattern has a line or a location; kind = "file" in the first one is for tools that name files alone`)
	}
	return nil
}

func (p Pattern) compile() (pattern, error) {
	c := pattern{Pattern: p}
	if p.Regexp == "" {
		return c, errors.New("regexp is missing")
	}
	if p.Kind != "" && p.Kind != "location" && p.Kind != "file" && p.Kind != "none" {
		return c, fmt.Errorf("kind %.40q must be location or file", p.Kind)
	}
	if p.Skip < 0 || p.Skip > maxSkip {
		return c, fmt.Errorf("skip %d is out of range, it must be 0 to %d", p.Skip, maxSkip)
	}
	var err error
	if c.line, err = compileRegexp("regexp", p.Regexp); err != nil {
		return c, err
	}
	if c.exclude, err = compileRegexp("exclude", p.Exclude); err != nil {
		return c, err
	}
	if c.until, err = compileRegexp("until", p.Until); err != nil {
		return c, err
	}
	for name, group := range map[string]int{"file": p.File, "location": p.Location, "line": p.Line, "column": p.Column, "endLine": p.EndLine,
		"endColumn": p.EndCol, "severity": p.Severity, "code": p.Code, "message": p.Message} {
		if group < 0 || group > c.line.NumSubexp() {
			return c, fmt.Errorf("%s is group %d, but the regular expression has %d groups", name, group, c.line.NumSubexp())
		}
	}
	return c, nil
}

// compileRegexp compiles one expression; nil stands for an empty one.
func compileRegexp(name, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxRegexp {
		return nil, fmt.Errorf("%s has %d bytes, at most %d", name, len(text), maxRegexp)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (the syntax is RE2's: no (?=, no \\1)", name, err)
	}
	return re, nil
}

// match returns the groups of a line that the pattern matches, or nil.
func (p *pattern) match(line []byte) [][]byte {
	groups := p.line.FindSubmatch(line)
	if groups != nil && p.exclude != nil && p.exclude.Match(line) {
		return nil
	}
	return groups
}
