package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestListsOfTables(t *testing.T) {
	const text = `
[[policy.rules]]
effect = "deny"
argv = ["rm", "-rf"]

[policy.limits]
background = 7

[[policy.rules]] # after another table
effect = "allow"
has = []

[[policy.principals]]
name = "agent:*"
roots = ["/src"]
`
	want := config.Default()
	want.Policy.Rules = []config.PolicyRule{{Effect: "deny", Argv: []string{"rm", "-rf"}}, {Effect: "allow", Has: []string{}}}
	want.Policy.Principals = []config.PolicyIdentity{{Name: "agent:*", Roots: []string{"/src"}}}
	want.Policy.Limits.Background = 7
	got := must.Get(config.Parse("f", []byte(text)))(t)
	check.Equal(t, "", want, got)
	inline, err := config.Parse("f", []byte(`
policy.limits.background = 7
policy.rules = [{effect = "deny", argv = ["rm", "-rf"]}, {effect = "allow", has = []}]
policy.principals = [{name = "agent:*", roots = ["/src"]}]
`))
	if diff := cmp.Diff(want, inline); err != nil || diff != "" {
		t.Errorf("written inline: %v\n%s", err, diff)
	}
}

func TestProblemsInLists(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key of the second", "[[policy.rules]]\neffect = \"deny\"\n[[policy.rules]]\nefect = \"deny\"",
			"f:4: policy.rules.1.efect: there is no such key; did you mean policy.rules.1.effect?"},
		{"unknown key, inline", "[policy]\nrules = [\n  {effect = \"deny\"},\n  {efect = \"deny\"},\n]",
			"f:4: policy.rules.1.efect: there is no such key; did you mean policy.rules.1.effect?"},
		{"wrong word of the second", "[[policy.rules]]\neffect = \"deny\"\n[[policy.rules]]\neffect = \"never\"",
			"f:4: policy.rules.1.effect: \"never\" must be one of allow, ask, deny (the decision for commands that the rule matches)"},
		{"below a table of a list", "[[policy.rules]]\neffect = \"deny\"\n[policy.rules.when]\nday = 1",
			"f:3: policy.rules.0.when: there is no such key; there are name, effect, argv, has, principals, doors, reason, match, not_match"},
		{"an element of the wrong kind", "[local]\norigins = [\n \"http://localhost:1\",\n 3]", "f:2: local.origins.1: 3 is not a string (the web origins that may use the local HTTP API, with a token)"},
		{"a word for a list", "[local]\norigins = \"http://localhost:1\"", `f:2: local.origins: "http://localhost:1" is not a list of strings (the web origins that may use the local HTTP API, with a token)`},
		{"a table for a list", "[policy.rules]\neffect = \"deny\"", "f:1: policy.rules: a table is not a list of tables: write its name in double brackets (your own rules for agents' commands)"},
		{"words for tables", "[policy]\nrules = [\"deny\"]", `f:2: policy.rules.0: "deny" is not a table (your own rules for agents' commands)`},
		{"a number out of range", "[[policy.principals]]\nname = \"x\"\nbackground = -1", "f:3: policy.principals.0.background: -1 is out of range: 0 to 10000 (policy.limits.background for these agents)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\ngave  %v\nwant  %s", c.text, err, c.want)
			}
		})
	}
}

func TestWriteTo(t *testing.T) {
	c := config.Default()
	c.Terminals.LogBytes = 3 << 19
	c.Local.Origins = []string{"http://localhost:5173", "https://a\"b\\c\u00fc\n\x7f"}
	c.Policy.Rules = []config.PolicyRule{{Effect: "ask", Argv: []string{"git", "push"}}, {Effect: "deny"}}
	c.Policy.Principals = []config.PolicyIdentity{{Name: "agent:x"}}
	var b strings.Builder
	n, err := c.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	text := b.String()
	for _, line := range []string{
		"[terminals]", `log_bytes = "1536KiB"`, "[uplink]", `origins = ["http://localhost:5173", "https://a\"b\\cü\u000A\u007F"]`,
		"[policy.limits]", "[[policy.rules]]", `argv = ["git", "push"]`, "[[policy.principals]]", `name = "agent:x"`,
	} {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.HasPrefix(text, "\n") || strings.Contains(text, "\n\n\n") || strings.Contains(text, `sandbox = ""`) {
		t.Errorf("written as\n%s", text)
	}
	c.Local.Origins = []string{}
	b.Reset()
	must.Get(c.WriteTo(&b))(t)
	back, err := config.Parse("f", []byte(b.String()))
	if diff := cmp.Diff(c, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
}

// The schema is in tags: a typing error in one would be found by the first person who
// uses the key.
func TestKeys(t *testing.T) {
	keys := config.Keys()
	byName := map[string]config.Key{}
	for _, k := range keys {
		if _, twice := byName[k.Name]; twice || k.Kind == "" || k.Value == "" {
			t.Errorf("key %+v", k)
		}
		byName[k.Name] = k
	}
	for _, want := range []config.Key{
		{Name: "terminals.log_bytes", Kind: "size", Value: `"4MiB"`, Allowed: "64KiB to 1GiB"},
		{Name: "terminals.on_slow_agent", Kind: "string", Value: `"hold"`, Allowed: "lag, hold"},
		{Name: "terminals.max_running", Kind: "integer", Value: "200", Allowed: "1 to 10000"},
		{Name: "uplink.heartbeat", Kind: "duration", Value: `"15s"`, Allowed: "1s to 5m"},
		{Name: "local.origins", Kind: "list of strings", Value: "[]"},
		{Name: "policy.rules", Kind: "list of tables", Value: "0"},
		{Name: "policy.rules[].effect", Kind: "string", Value: `""`, Allowed: "allow, ask, deny"},
	} {
		want.Meaning = byName[want.Name].Meaning // TestDocumentIsComplete looks at these
		check.Equal(t, want.Name, want, byName[want.Name])
	}
	c := config.Default()
	c.Terminals.MaxRunning = 3
	for i, k := range c.Keys() {
		if k.Name != keys[i].Name || k.Name == "terminals.max_running" && k.Value != "3" {
			t.Errorf("key %d of another configuration is %+v", i, k)
		}
	}
}

// The defaults are within the allowed ranges: written out they are a valid file.
func TestDefaultsAreAllowed(t *testing.T) {
	c := config.Default()
	var b strings.Builder
	must.Get(c.WriteTo(&b))(t)
	got, err := config.Parse("default", []byte(b.String()))
	if diff := cmp.Diff(c, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
