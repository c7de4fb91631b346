package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/agent/config"
	"tether/agent/term"
)

// rule is one of the person's rules.
type rule struct {
	id         string
	effect     Effect
	pattern    pattern
	principals []string // globs; none means all agents
	doors      []string // none means all
	reason     string
}

// parseRules parses the rules and runs their tests. The error names everything that is
// wrong.
func parseRules(all []config.PolicyRule) ([]rule, error) {
	var rules []rule
	var errs []error
	for i, c := range all {
		r, err := parseRule(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("policy.rules, number %d (%.40q): %w", i+1, c.Name, err))
		}
		if slices.ContainsFunc(rules, func(other rule) bool { return other.id == r.id }) {
			errs = append(errs, fmt.Errorf("policy.rules, number %d: there is another rule called %.40q", i+1, c.Name))
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(errs...)
}

func parseRule(c config.PolicyRule) (rule, error) {
	r := rule{id: c.Name, principals: c.Principals, doors: c.Doors}
	if c.Name == "" {
		return r, errors.New("name is missing")
	}
	if err := r.effect.UnmarshalText([]byte(c.Effect)); err != nil {
		return r, fmt.Errorf("effect: %w", err)
	}
	for _, d := range c.Doors {
		if !slices.Contains([]string{DoorCLI, DoorMCP, DoorACP, DoorWS, DoorAHP}, d) {
			return r, fmt.Errorf("doors: %.20q must be one of cli, mcp, acp, ws, ahp", d)
		}
	}
	for _, p := range c.Principals {
		if !isSubject(p) {
			return r, fmt.Errorf("principals: %.40q must be user or agent:NAME, where * stands for any text", p)
		}
	}
	var err error
	if r.pattern, err = parsePattern(c.Argv, c.Has); err != nil {
		return r, err
	}
	r.reason = cmp.Or(c.Reason, fmt.Sprintf("rule %q: %s", c.Name, r.effect))
	return r, r.test(c.Match, c.NotMatch)
}

// isSubject reports whether a pattern can match a subject.
func isSubject(p string) bool {
	return p == "*" || p == "user" || len(p) > len("agent:") && strings.HasPrefix(p, "agent:")
}

// test runs the rule's own tests: lines with a command that it matches, and lines without
// one.
func (r *rule) test(match, not []string) error {
	var errs []error
	for _, line := range match {
		if !r.matchesLine(line) {
			errs = append(errs, fmt.Errorf("match: the rule does not match %.80q", line))
		}
	}
	for _, line := range not {
		if r.matchesLine(line) {
			errs = append(errs, fmt.Errorf("not_match: the rule matches %.80q", line))
		}
	}
	return errors.Join(errs...)
}

func (r *rule) matchesLine(line string) bool {
	read := command.Line(line)
	is := func(c command.Command) bool { return r.effectOn(c, false) != 0 }
	return slices.ContainsFunc(read.Commands, is) || r.effect != Allow && slices.ContainsFunc(read.Outer, is)
}

// concerns reports whether the rule is about requests of the actor at the door.
func (r *rule) concerns(a term.Actor, door string) bool {
	if len(r.doors) > 0 && !slices.Contains(r.doors, door) {
		return false
	}
	if len(r.principals) == 0 {
		return a.Role == term.RoleAgent
	}
	return slices.ContainsFunc(r.principals, func(p string) bool { return config.Like(p, subject(a)) })
}

// effectOn returns the rule's effect on the command, 0 for none. outer says that the
// command only runs another command; a rule that allows has no effect on such a command.
func (r *rule) effectOn(c command.Command, outer bool) Effect {
	switch f := r.pattern.fits(c, r.effect == Allow); {
	case f == unlike, r.effect == Allow && (f == perhaps || outer):
		return 0
	case f == perhaps:
		return Ask // whether the rule covers it is known only when it runs
	}
	return r.effect
}

func (r *rule) decide(e Effect) Decision { return Decision{e, r.id, r.reason} }
