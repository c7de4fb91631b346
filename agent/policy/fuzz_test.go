package policy_test

import (
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/internal/testkit/must"
)

// FuzzCheck: every line gets a decision, and one that the block list blocks stays blocked
// with anything before it.
func FuzzCheck(f *testing.F) {
	for _, line := range []string{"rm x", "echo $(id)", "sh -c 'rm x'", "a | b > c", "${x:-`rm`}", "cat <<E\nrm\nE", "((a=1))", "f() { :; }", "'", "{a,b}c"} {
		f.Add(line)
	}
	e := must.Get(policy.New(policy.Options{}))(f)
	f.Fuzz(func(t *testing.T, line string) {
		r := policy.Request{Door: policy.DoorMCP, Actor: agent, Line: line, Cwd: "/src"}
		d := e.Check(r)
		if d.Rule == "" || line != "" && d.Reason == "" || d.Effect < policy.Allow || d.Effect > policy.Deny {
			t.Fatalf("%q: %+v", line, d)
		}
		r.Line = "true\n" + line
		if after := e.Check(r); after.Effect < d.Effect && d.Reason != "no command was given" && !strings.HasPrefix(d.Reason, "this command cannot be parsed: no command") {
			t.Fatalf("%q: %+v, but after another command %+v", line, d, after)
		}
	})
}

// FuzzRule: a rule's words are either refused or match themselves, where they are plain,
// and tests that hold let the rule in.
func FuzzRule(f *testing.F) {
	f.Add("docker", "run|exec", "ls")
	f.Add("a*b", "*", "a | b")
	f.Add("", "|", "'")
	f.Fuzz(func(t *testing.T, first, second, line string) {
		c := config.Default().Policy
		rule := config.PolicyRule{Name: "x", Effect: "deny", Argv: []string{first, second}}
		c.Rules = []config.PolicyRule{rule}
		e, err := policy.New(policy.Options{Config: c, Home: "/"})
		if err != nil {
			return
		}
		if !strings.ContainsAny(first+second, "|") {
			r := policy.Request{Door: policy.DoorMCP, Actor: agent, Argv: []string{first, second, "z"}, Cwd: "/"}
			if d := e.Check(r); d.Effect != policy.Deny {
				t.Fatalf("the rule %q does not match itself: %+v", rule.Argv, d)
			}
		}
		rule.Match = []string{line}
		c.Rules = []config.PolicyRule{rule}
		_, matches := policy.New(policy.Options{Config: c, Home: "/"})
		rule.Match, rule.NotMatch = nil, []string{line}
		c.Rules = []config.PolicyRule{rule}
		_, not := policy.New(policy.Options{Config: c, Home: "/"})
		if (matches == nil) == (not == nil) {
			t.Fatalf("%q both matches %q and does not: %v, %v", rule.Argv, line, matches, not)
		}
	})
}
