package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/config"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// If the home directory is unknown, directories below it that must not be lent may be
// anywhere.
func TestLendRulesWithoutAHome(t *testing.T) {
	for effect, want := range map[string]string{"never": "never", "yes": "no"} {
		c := must.Get(config.Parse("f", []byte("[lend]\ndefault = \"no\"\n[[lend.rules]]\neffect = \""+effect+"\"\ndirectories = [\"~/secret\"]\n")))(t)
		if got := c.Lend.Effect(config.Lending{Door: "cli", Owner: "user", Host: "lab", Dirs: []string{testkit.Abs("/home/x/secret")}}, ""); got != want {
			t.Errorf("%s below a home that is not known: %s, want %s", effect, got, want)
		}
	}
}

// The first rule that fits counts, but never always does.
func TestLendRules(t *testing.T) {
	home, work := testkit.Abs("/home/x"), testkit.Abs("/work")
	c := must.Get(config.Parse("f", []byte(`
[lend]
default = "no"
[[lend.rules]]
effect = "yes"
directories = ['`+work+`']
owners = ["user"]
[[lend.rules]]
effect = "no"
directories = ['`+work+`']
[[lend.rules]]
effect = "yes"
doors = ["config"]
[[lend.rules]]
effect = "never"
directories = ["~/secret"]
[[lend.rules]]
effect = "never"
hosts = ["shared"]
owners = ["agent"]
`)))(t)
	for _, q := range []struct {
		name, door, owner, host string
		dirs                    []string
		want                    string
	}{
		{"no rule", "cli", "user", "lab", []string{home}, "no"},
		{"by directory", "cli", "user", "lab", []string{work}, "yes"},
		{"below it", "cli", "user", "lab", []string{filepath.Join(work, "a", "b")}, "yes"},
		{"beside it", "cli", "user", "lab", []string{work + "shop"}, "no"},
		{"another owner", "mcp", "agent", "lab", []string{work}, "no"},
		{"by door", "config", "user", "lab", []string{home}, "yes"},
		{"never, before others", "config", "user", "lab", []string{filepath.Join(home, "secret", "x")}, "never"},
		{"by another name of the directory", "cli", "user", "lab", []string{work, filepath.Join(home, "secret")}, "never"},
		{"by host", "mcp", "agent", "shared", []string{work}, "never"},
		{"by host, not its owner", "cli", "user", "shared", []string{work}, "yes"},
	} {
		if got := c.Lend.Effect(config.Lending{Door: q.door, Owner: q.owner, Host: q.host, Dirs: q.dirs}, home); got != q.want {
			t.Errorf("%s: %s, want %s", q.name, got, q.want)
		}
	}
}

func TestLendProblems(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`default = "never"`, `"never" must be one of yes, no`},
		{`redact_patterns = ["("]`, "number 1: error parsing regexp"},
		{`redact_patterns = ["a", "b*"]`, "number 2 fits the empty text"},
		{`redact_patterns = ["` + strings.Repeat("a", 501) + `"]`, "longer than 500 bytes"},
		{`redact_env = ["*"]`, "must be a variable's name"},
		{`redact_env = ["A=B"]`, "must be a variable's name"},
		{"[[lend.rules]]\nowners = [\"user\"]", "each rule needs one"},
		{"[[lend.rules]]\neffect = \"no\"\ndirectories = [\"relative\"]", "must be an absolute path"},
		{"[[lend.rules]]\neffect = \"no\"\ndoors = [\"web\"]", "must be one of cli, mcp, acp, ws, ahp, config"},
		{`images = "2"`, "is not a size"},
	} {
		if _, err := config.Parse("f", []byte("[lend]\n"+c.text+"\n")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

// As root only a configuration that says so lends terminals that nobody asked to lend.
func TestLendAsRoot(t *testing.T) {
	rules := func(effects ...string) config.Lend {
		l := config.Default().Lend
		for _, e := range effects {
			l.Rules = append(l.Rules, config.LendRule{Effect: e})
		}
		return l
	}
	for _, c := range []struct {
		name         string
		lend         config.Lend
		user, asRoot string // effects
	}{
		{"default", rules(), config.LendYes, config.LendNo},
		{"a rule that lends", rules(config.LendYes), config.LendYes, config.LendNo},
		{"a rule that does not", rules(config.LendNo), config.LendNo, config.LendNo},
		{"never", rules(config.LendNever), config.LendNever, config.LendNever},
	} {
		q := config.Lending{Door: "cli", Owner: "user", Host: "h", Root: true}
		if got := c.lend.Effect(q, ""); got != c.asRoot {
			t.Errorf("%s: as root %s, want %s", c.name, got, c.asRoot)
		}
		c.lend.AsRoot = true
		if got := c.lend.Effect(q, ""); got != c.user {
			t.Errorf("%s: as root that may lend %s, want %s", c.name, got, c.user)
		}
		c.lend.AsRoot, q.Root = false, false
		if got := c.lend.Effect(q, ""); got != c.user {
			t.Errorf("%s: %s, want %s", c.name, got, c.user)
		}
	}
}

// A rule about a directory that is a link applies to its target, by whichever path one
// gets there.
func TestLendRulesFollowLinks(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	home := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	real := filepath.Join(home, "data", "secret")
	must.Do(t, os.MkdirAll(filepath.Join(real, "deep"), 0o700))
	must.Do(t, os.Symlink(real, filepath.Join(home, "secret")))
	l := config.Lend{Default: config.LendYes, Rules: []config.LendRule{{Effect: config.LendNever, Directories: []string{"~/secret", "~/missing"}}}}
	for dir, want := range map[string]string{
		real: config.LendNever, filepath.Join(real, "deep"): config.LendNever, filepath.Join(home, "secret"): config.LendNever,
		filepath.Join(home, "data"): config.LendYes, filepath.Join(home, "missing"): config.LendNever,
	} {
		if got := l.Effect(config.Lending{Dirs: []string{dir}}, home); got != want {
			t.Errorf("in %s it is %s, want %s", dir, got, want)
		}
	}
}

// Where the disk takes names of another case for the same, so do rules.
func TestLendRulesKnowADirectoryInAnotherCase(t *testing.T) {
	home := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(home, "Private", "deep"), 0o700))
	want := config.LendNever
	if _, err := os.Stat(filepath.Join(home, "pRIVATE")); err != nil {
		want = config.LendYes // it is another directory
	}
	l := config.Lend{Default: config.LendYes, Rules: []config.LendRule{{Effect: config.LendNever, Directories: []string{"~/pRIVATE"}}}}
	for _, dir := range []string{"Private", filepath.Join("Private", "deep")} {
		if got := l.Effect(config.Lending{Dirs: []string{filepath.Join(home, dir)}}, home); got != want {
			t.Errorf("in %s it is %s, want %s", dir, got, want)
		}
	}
}
