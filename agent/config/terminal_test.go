package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
)

func TestDeclaredTerminals(t *testing.T) {
	got, err := config.Parse("f", []byte(`
[[terminal]]
name = "web"
command = ["npm", "run", "dev"]
cwd = "~/src/site"
env = ["PORT=3000"]
restart = "on-failure"

[[terminal]]
name = "logs"
line = "tail -f *.log | grep -v debug"
lend = []
private = true
`))
	want := config.Default()
	want.Terminal = []config.Declared{
		{Name: "web", Command: []string{"npm", "run", "dev"}, Cwd: "~/src/site", Env: []string{"PORT=3000"}, Restart: config.RestartOnFailure},
		{Name: "logs", Line: "tail -f *.log | grep -v debug", Lend: []string{}, Private: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	var b strings.Builder
	if _, err := got.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	back, err := config.Parse("f", []byte(b.String()))
	if diff := cmp.Diff(got, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
}

func TestProblemsOfDeclaredTerminals(t *testing.T) {
	const good = "[[terminal]]\nname = \"web\"\nline = \"x\"\n"
	for _, c := range []struct{ name, text, want string }{
		{"no name", "[[terminal]]\nline = \"x\"", `f:1: terminal.0.name: each terminal needs one, such as "web"`},
		{"nothing to run", "\n[[terminal]]\nname = \"web\"", `f:2: terminal.0.command: what runs is missing: command = ["npm", "run", "dev"], or line = "npm run dev" for a shell`},
		{"both", good + "command = [\"x\"]", "f:3: terminal.0.line: give either a command or a line"},
		{"twice", good + good, `f:5: terminal.1.name: "web" is the name of the terminal number 1 already`},
		{"a name like a path", "[[terminal]]\nname = \"..\"\nline = \"x\"", `f:2: terminal.0.name: ".." cannot be a name; choose another`},
		{"a name like an id", "[[terminal]]\nname = \"pty-abcdefgh\"\nline = \"x\"", `f:2: terminal.0.name: "pty-abcdefgh" must begin neither with "-" nor, as an id does, with "pty-"`},
		{"a name of words", "[[terminal]]\nname = \"a b\"\nline = \"x\"", `f:2: terminal.0.name: "a b" must be of A-Z a-z 0-9 . _ : @ -`},
		{"a long name", "[[terminal]]\nname = \"" + strings.Repeat("a", 65) + "\"\nline = \"x\"",
			`f:2: terminal.0.name: "` + strings.Repeat("a", 60) + `…" is longer than 64 bytes`},
		{"a long name that is cut at a character", "[[terminal]]\nname = \"" + strings.Repeat("a", 59) + "ééé\"\nline = \"x\"",
			`f:2: terminal.0.name: "` + strings.Repeat("a", 59) + `…" is longer than 64 bytes`},
		{"a relative directory", good + "cwd = \"src\"", `f:4: terminal.0.cwd: "src" must be an absolute path or begin with "~/"`},
		{"a secret instead of a variable", good + "env = [\"hunter2\"]", "f:4: terminal.0.env: an entry is not of the form NAME=value"},
		{"lent and private", good + "private = true\nlend = [\"work\"]", "f:5: terminal.0.lend: a private terminal is lent to nobody"},
		{"a NUL", "[[terminal]]\nname = \"web\"\nline = \"x\\u0000\"", "f:1: terminal.0.command: a NUL byte is in its values"},
		{"another restart", good + "restart = \"often\"", `f:4: terminal.0.restart: "often" must be one of never, on-failure, always (when to restart the terminal after it exits)`},
		{"a line as command", "[[terminal]]\nname = \"web\"\ncommand = \"npm run dev\"", `f:3: terminal.0.command: "npm run dev" is not a list of strings (the program and its arguments)`},
		{"one table", "[terminal]\nname = \"web\"", "f:1: terminal: a table is not a list of tables: write its name in double brackets (terminals that the daemon starts)"},
		{"a misspelt key", good + "restrat = \"never\"", "f:4: terminal.0.restrat: there is no such key; did you mean terminal.0.restart?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\ngave  %v\nwant  %s", c.text, err, c.want)
			}
		})
	}
	var many strings.Builder
	for i := range 101 {
		many.WriteString("[[terminal]]\nname = \"t" + strings.Repeat("x", i%60) + string(rune('a'+i/60)) + "\"\nline = \"x\"\n")
	}
	if _, err := config.Parse("f", []byte(many.String())); err == nil || !strings.HasSuffix(err.Error(), "terminal.100: there may be at most 100") {
		t.Errorf("a hundred and one: %v", err)
	}
}
