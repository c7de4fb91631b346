package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for systems without zones

	"tether/agent/config"
)

func TestNotify(t *testing.T) {
	const whole = "name = \"a\"\non = [\"ready\"]\nto = \"desktop\"\n"
	for text, want := range map[string]string{
		whole: "",
		"name = \"a\"\non = [\"long_command\", \"pattern\"]\nto = \"phone\"\nlonger_than = \"5m\"\npattern = '(?i)error'\nterminals = [\"web\", \"test-*\", \"~/src\", \"~\"]\nowners = [\"agent\"]\nquiet = \"22:00-07:30\"\nper_hour = 3\n": "",
		"on = [\"ready\"]\nto = \"desktop\"\n":                                                            "notify.0.name: each rule needs one",
		"name = \"a b\"\non = [\"ready\"]\nto = \"desktop\"\n":                                            "must be of A-Z",
		"name = \"a\"\nto = \"desktop\"\n":                                                                "notify.0.on: each rule needs one",
		"name = \"a\"\non = [\"redy\"]\nto = \"desktop\"\n":                                               "notify.0.on",
		"name = \"a\"\non = [\"ready\"]\n":                                                                "notify.0.to: each rule needs one",
		"name = \"a\"\non = [\"ready\"]\nto = \"https://x/y\"\n":                                          "notify.0.to",
		whole + "longer_than = \"1m\"\n":                                                                  `it counts only with on = ["long_command"]`,
		"name = \"a\"\non = [\"long_command\"]\nto = \"x\"\n":                                             `on = ["long_command"] needs it`,
		whole + "pattern = \"x\"\n":                                                                       `it counts only with on = ["pattern"]`,
		"name = \"a\"\non = [\"pattern\"]\nto = \"x\"\n":                                                  `on = ["pattern"] needs it`,
		"name = \"a\"\non = [\"pattern\"]\npattern = \"(\"\nto = \"x\"\n":                                 "error parsing regexp",
		"name = \"a\"\non = [\"pattern\"]\npattern = \"" + strings.Repeat("x", 1001) + "\"\nto = \"x\"\n": "at most 1000",
		whole + "terminals = [\"src/app\"]\n":                                                             "must be a name",
		whole + "terminals = [\"\"]\n":                                                                    "must be a name",
		whole + "quiet = \"22-7\"\n":                                                                      "must be two different times",
		whole + "quiet = \"07:00-07:00\"\n":                                                               "must be two different times",
		whole + "quiet = \"24:00-07:00\"\n":                                                               "must be two different times",
		whole + "per_hour = 0\n":                                                                          "notify.0.per_hour",
		whole + "\n[[notify]]\n" + whole:                                                                  "is the name of the rule number 1 already",
		strings.Repeat("name = \"x\"\n", 0) + manyRules(21):                                               "there may be at most 20",
	} {
		_, err := config.Parse("f", []byte("[[notify]]\n"+text))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\ngave %s\nwant %s", text, got, want)
		}
	}
}

// manyRules is the text of n rules without the first line.
func manyRules(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("name = \"r%d\"\non = [\"ready\"]\nto = \"desktop\"\n", i))
	}
	return strings.Join(all, "[[notify]]\n")
}

func TestNotifyCovers(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		terminals, owners string
		want              bool
	}{
		{``, ``, true},
		{`"web"`, ``, true},
		{`"we*"`, ``, true},
		{`"*b"`, `"user"`, true},
		{`"w"`, ``, false},
		{`"web"`, `"agent"`, false},
		{`"~/src"`, ``, true},
		{`"~"`, ``, true},
		{`"~/other", "x"`, ``, false},
		{`"~/other", "web"`, ``, true},
	} {
		settings, err := config.Parse("f", fmt.Appendf(nil, "[[notify]]\nname = \"a\"\non = [\"ready\"]\nto = \"desktop\"\nterminals = [%s]\nowners = [%s]\n", c.terminals, c.owners))
		if err != nil {
			t.Fatal(err)
		}
		if got := settings.Notify[0].Covers("user", "web", []string{home + "/src/app"}, home); got != c.want {
			t.Errorf("terminals %s, owners %s: %t", c.terminals, c.owners, got)
		}
	}
}

// A quiet time is of the wall clock: over midnight, and through the two days in which
// clocks are changed.
func TestQuietUntil(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const layout = "2006-01-02 15:04 -0700"
	for _, c := range []struct{ quiet, at, want string }{
		{"22:00-07:30", "2026-06-01 21:59 +0200", ""},
		{"22:00-07:30", "2026-06-01 22:00 +0200", "2026-06-02 07:30 +0200"},
		{"22:00-07:30", "2026-06-02 00:00 +0200", "2026-06-02 07:30 +0200"},
		{"22:00-07:30", "2026-06-02 07:29 +0200", "2026-06-02 07:30 +0200"},
		{"22:00-07:30", "2026-06-02 07:30 +0200", ""},
		{"12:00-13:00", "2026-06-02 12:30 +0200", "2026-06-02 13:00 +0200"},
		{"12:00-13:00", "2026-06-02 13:00 +0200", ""},
		{"22:00-07:00", "2026-12-31 23:00 +0100", "2027-01-01 07:00 +0100"},
		{"22:00-07:00", "2026-03-28 23:00 +0100", "2026-03-29 07:00 +0200"}, // clocks go forward: an hour less
		{"22:00-07:00", "2026-10-24 23:00 +0200", "2026-10-25 07:00 +0100"}, // and back: an hour more
		{"22:00-02:30", "2026-03-29 01:30 +0100", "2026-03-29 03:30 +0200"}, // a time that this day does not have
		{"22:00-02:30", "2026-10-25 02:10 +0100", "2026-10-25 02:30 +0100"}, // a time that was there an hour before, too
		{"", "2026-06-02 03:00 +0200", ""},
	} {
		at, err := time.Parse(layout, c.at)
		if err != nil {
			t.Fatal(err)
		}
		rule := config.Notify{Quiet: c.quiet}
		until, quiet := rule.QuietUntil(at.In(berlin))
		if got := until.Format(layout); quiet != (c.want != "") || quiet && got != c.want {
			t.Errorf("%s at %s: %t until %s, want %q", c.quiet, c.at, quiet, got, c.want)
		}
	}
}
