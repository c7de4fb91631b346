package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tether/problems"
)

// Matcher finds problems in the output of a tool. Keys and meanings are those of VS
// Code's problem matchers.
type Matcher struct {
	Name       string            `toml:"name"`
	Owner      string            `toml:"owner"`
	Severity   string            `toml:"severity" oneof:"error warning info"`
	Pattern    []MatcherPattern  `toml:"pattern"`
	Background MatcherBackground `toml:"background"`
}

// MatcherPattern matches one line. Numbers are numbers of groups; 0 is none.
type MatcherPattern struct {
	Regexp    string `toml:"regexp"`
	Kind      string `toml:"kind" oneof:"location file"`
	File      int    `toml:"file" range:"0..99"`
	Location  int    `toml:"location" range:"0..99"`
	Line      int    `toml:"line" range:"0..99"`
	Column    int    `toml:"column" range:"0..99"`
	EndLine   int    `toml:"endLine" range:"0..99"`
	EndColumn int    `toml:"endColumn" range:"0..99"`
	Severity  int    `toml:"severity" range:"0..99"`
	Code      int    `toml:"code" range:"0..99"`
	Message   int    `toml:"message" range:"0..99"`
	Loop      bool   `toml:"loop"`
}

// MatcherBackground is about tools that watch files.
type MatcherBackground struct {
	BeginsPattern string `toml:"beginsPattern"`
	EndsPattern   string `toml:"endsPattern"`
}

// maxMatchers bounds the configured matchers.
const maxMatchers = 50

// Matchers returns the configured matchers, followed by those of known tools; nil if none
// are configured.
func (c *Config) Matchers() (*problems.Set, error) {
	if len(c.ProblemMatcher) == 0 {
		return nil, nil
	}
	own := make([]problems.Matcher, len(c.ProblemMatcher))
	for i := range c.ProblemMatcher {
		own[i] = c.ProblemMatcher[i].matcher()
	}
	return problems.With(own)
}

func (m *Matcher) matcher() problems.Matcher {
	out := problems.Matcher{Name: m.Name, Owner: m.Owner, Severity: m.Severity}
	for _, p := range m.Pattern {
		out.Patterns = append(out.Patterns, problems.Pattern{Regexp: p.Regexp, Kind: p.Kind, File: p.File, Location: p.Location, Line: p.Line, Column: p.Column,
			EndLine: p.EndLine, EndCol: p.EndColumn, Severity: p.Severity, Code: p.Code, Message: p.Message, Loop: p.Loop})
	}
	if b := m.Background; b != (MatcherBackground{}) {
		out.Background = &problems.Background{Begins: b.BeginsPattern, Ends: b.EndsPattern}
	}
	return out
}

// matcherProblems returns the faults of the configured matchers.
func (c *Config) matcherProblems() []Problem {
	if len(c.ProblemMatcher) > maxMatchers {
		return []Problem{{Key: "problem_matcher." + strconv.Itoa(maxMatchers), Text: fmt.Sprintf("there may be at most %d", maxMatchers)}}
	}
	var all []Problem
	for i := range c.ProblemMatcher {
		if _, err := problems.Compile(c.ProblemMatcher[i].matcher()); err != nil {
			if why := errors.Unwrap(err); why != nil {
				err = why
			}
			all = append(all, Problem{Key: "problem_matcher." + strconv.Itoa(i), Text: printable(strings.TrimSpace(err.Error()))})
		}
	}
	return all
}
