package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/agent/config"
	"tether/agent/term"
)

// subject returns the name of an actor as the configuration writes it.
func subject(a term.Actor) string {
	switch a.Role {
	case term.RoleUser:
		return "user"
	case term.RoleAgent:
		return "agent:" + a.Name
	case term.RoleHost:
		return "host:" + a.Name
	}
	return "nobody"
}

// Matches reports whether a is one of the principals that a pattern of the configuration
// names, such as "agent:*".
func Matches(pattern string, a term.Actor) bool { return config.Like(pattern, subject(a)) }

// element is one word of a rule: alternatives, each for config.Like.
type element []string

func parseElement(s string) (element, error) {
	e := element(strings.Split(s, "|"))
	if slices.Contains(e, "") {
		return nil, fmt.Errorf("%q has an empty alternative", s)
	}
	return e, nil
}

func (e element) is(s string) bool {
	return slices.ContainsFunc(e, func(p string) bool { return config.Like(p, s) })
}

// mayBe reports whether a word with this source, whose value is known only when it runs,
// can be one of the alternatives. File names that a shell finds for a pattern begin like
// the pattern, so src/*.go cannot be a device.
func (e element) mayBe(source string) bool {
	begin, ok := beginOfNames(source)
	if !ok {
		return true
	}
	return slices.ContainsFunc(e, func(p string) bool {
		first, _, _ := strings.Cut(p, "*")
		switch {
		case !strings.HasPrefix(first, "/"):
			return true
		case begin == "":
			return false // a path that does not begin with a slash
		}
		return strings.HasPrefix(first, begin) || strings.HasPrefix(begin, first)
	})
}

// beginOfNames returns the common beginning of all names that a shell can find for a
// pattern of file names. ok is false if the word has other parts, such as a variable,
// whose value may be several words.
func beginOfNames(source string) (begin string, ok bool) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+,:@%"
	if source == "" || strings.ContainsFunc(source, func(r rune) bool { return !strings.ContainsRune(plain+"*?", r) }) {
		return "", false
	}
	return source[:min(len(source), strings.IndexFunc(source+"*", func(r rune) bool { return r == '*' || r == '?' }))], true
}

// fit is how a command compares with a pattern.
type fit uint8

const (
	unlike  fit = iota
	perhaps     // it depends on words that are not known before it runs
	alike
)

// pattern selects the commands that a rule covers.
type pattern struct {
	argv []element // the first words
	has  []element // words after them, in any order
}

func parsePattern(argv, has []string) (pattern, error) {
	var p pattern
	if len(argv) == 0 {
		return p, errors.New("argv is missing: the first words of the command")
	}
	for _, s := range argv {
		e, err := parseElement(s)
		if err != nil {
			return p, fmt.Errorf("argv: %w", err)
		}
		p.argv = append(p.argv, e)
	}
	for _, s := range has {
		e, err := parseElement(s)
		if err != nil {
			return p, fmt.Errorf("has: %w", err)
		}
		p.has = append(p.has, e)
	}
	return p, nil
}

// fits compares a command with the pattern. Without exact, the pattern's program name
// also fits a path that ends in that name; with exact, a program of that name in some
// directory is a different one.
func (p *pattern) fits(c command.Command, exact bool) fit {
	if b := p.begins(c, exact); b != alike {
		return b
	}
	return p.contains(c.Words[len(p.argv):])
}

func (p *pattern) begins(c command.Command, exact bool) fit {
	for i, e := range p.argv {
		if i >= len(c.Words) {
			return unlike
		}
		w := c.Words[i]
		switch {
		case !w.Fixed:
			return perhaps // it may be several words, among them the wanted ones
		case e.is(w.Text), i == 0 && !exact && e.is(c.Name()):
		default:
			return unlike
		}
	}
	return alike
}

func (p *pattern) contains(words []command.Word) fit {
	best := alike
	for _, e := range p.has {
		found := unlike
		for _, w := range words {
			switch {
			case !w.Fixed && e.mayBe(w.Text):
				found = max(found, perhaps)
			case !w.Fixed:
			case e.is(w.Text):
				found = alike
			}
		}
		best = min(best, found)
	}
	return best
}

// within reports whether dir is root or below it. Both are clean.
func within(dir, root string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
