package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/internal/testkit/must"
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

[[terminal]]
name = "api"
line = "air"
lend = ["lab"]
ports = ["auto", 3000]

[[terminal]]
name = "docs"
line = "mkdocs serve"
audience = ["bob", "group:web", "agent:ci", "everyone"]
`))
	want := config.Default()
	want.Terminal = []config.Declared{
		{Name: "web", Command: []string{"npm", "run", "dev"}, Cwd: "~/src/site", Env: []string{"PORT=3000"}, Restart: config.RestartOnFailure},
		{Name: "logs", Line: "tail -f *.log | grep -v debug", Lend: []string{}, Private: true},
		{Name: "api", Line: "air", Lend: []string{"lab"}, Ports: []config.Port{config.AutoPort, 3000}},
		{Name: "docs", Line: "mkdocs serve", Audience: []string{"bob", "group:web", "agent:ci", "everyone"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	var b strings.Builder
	must.Get(got.WriteTo(&b))(t)
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
		{"for somebody and private", good + "private = true\naudience = [\"bob\"]", "f:5: terminal.0.audience: a private terminal is lent to nobody"},
		{"for a name that is none", good + "audience = [\"team:web\"]", `f:4: terminal.0.audience: "team:web" is not a name: NAME, group:NAME, agent:NAME or everyone, of letters, digits and . _ - @`},
		{"for too many", good + "audience = [" + strings.Repeat(`"bob",`, 65) + "]", "f:4: terminal.0.audience: there may be at most 64 names"},
		{"ports for nobody", good + "ports = [3000]", `f:4: terminal.0.ports: name the hosts whose users may fetch from them beside it: lend = ["NAME"]`},
		{"a port of the system", good + "lend = [\"lab\"]\nports = [80]", "f:5: terminal.0.ports.0: 80 is out of range: auto, or 1024 to 65535 (the ports that are open to those at the hosts of lend who may watch, for reading)"},
		{"no port", good + "lend = [\"lab\"]\nports = [\"web\"]", `f:5: terminal.0.ports.0: "web" must be auto, or 1024 to 65535 (the ports that are open to those at the hosts of lend who may watch, for reading)`},
		{"one port", good + "lend = [\"lab\"]\nports = 3000", "f:5: terminal.0.ports: 3000 is not a list of ports: auto, or 1024 to 65535 (the ports that are open to those at the hosts of lend who may watch, for reading)"},
		{"a port twice", good + "lend = [\"lab\"]\nports = [3000, 3000]", "f:5: terminal.0.ports: 3000 is there twice"},
		{"too many ports", good + "lend = [\"lab\"]\nports = [1024, 1025, 1026, 1027, 1028, 1029, 1030, 1031, 1032, 1033, 1034, 1035, 1036, 1037, 1038, 1039, 1040]", "f:5: terminal.0.ports: there may be at most 16"},
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

func TestReadyOfDeclaredTerminals(t *testing.T) {
	got, err := config.Parse("f", []byte(`
[[terminal]]
name = "web"
line = "npm run dev"
needs = ["db"]
agents = ["restart"]
ready = {port = 5173, timeout = "30s"}

[[terminal]]
name = "db"
line = "postgres"
ready = {command = ["pg_isready", "-q"]}

[[terminal]]
name = "api"
line = "api --port {port}"
port = "auto"
ready = {port = "{port}"}
`))
	want := config.Default()
	want.Terminal = []config.Declared{
		{Name: "web", Line: "npm run dev", Needs: []string{"db"}, Agents: []string{"restart"}, Ready: config.Ready{Port: 5173, Timeout: config.Duration(30 * time.Second)}},
		{Name: "db", Line: "postgres", Ready: config.Ready{Command: []string{"pg_isready", "-q"}}},
		{Name: "api", Line: "api --port {port}", Port: config.AutoPort, Ready: config.Ready{Port: config.GivenPort}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	if w, d := &got.Terminal[0], &got.Terminal[1]; w.Ready.Within() != 30*time.Second || d.Ready.Within() != config.ReadyTimeout || !w.LetsAgents("restart") || d.LetsAgents("restart") {
		t.Errorf("%+v", got.Terminal)
	}
	var b strings.Builder
	must.Get(got.WriteTo(&b))(t)
	back, err := config.Parse("f", []byte(b.String()))
	if diff := cmp.Diff(got, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s\n%s", err, diff, b.String())
	}
}

// The given port takes its place in the condition and the variables, and nowhere else.
func TestDeclaredAtPort(t *testing.T) {
	d := config.Declared{Name: "web", Line: "x {port}", Env: []string{"URL=http://localhost:{port}/"}, Port: config.AutoPort,
		Ready: config.Ready{Port: config.GivenPort, HTTP: "http://localhost:{port}/", Command: []string{"check", "{port}"}}}
	want := config.Declared{Name: "web", Line: "x {port}", Env: []string{"URL=http://localhost:3000/", "PORT=3000"}, Port: config.AutoPort,
		Ready: config.Ready{Port: 3000, HTTP: "http://localhost:3000/", Command: []string{"check", "3000"}}}
	if diff := cmp.Diff(want, d.At(3000)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(d, d.At(0)); diff != "" || d.Env[0] != "URL=http://localhost:{port}/" {
		t.Errorf("without a port: %s", diff)
	}
}

func TestProblemsOfReady(t *testing.T) {
	const web = "[[terminal]]\nname = \"web\"\nline = \"x\"\n"
	long := web // each needs all before it, which must not take for ever
	for i := range 90 {
		names := []string{`"web"`}
		for j := range i {
			names = append(names, fmt.Sprintf(`"t%d"`, j))
		}
		long += fmt.Sprintf("[[terminal]]\nname = \"t%d\"\nline = \"x\"\nneeds = [%s]\n", i, strings.Join(names, ", "))
	}
	for name, c := range map[string]struct{ text, want string }{
		"all of them":            {long, ""},
		"http of this machine":   {web + `ready = {http = "https://web.localhost:5173/health"}`, ""},
		"IPv6":                   {web + `ready = {http = "http://[::1]:5173"}`, ""},
		"two conditions":         {web + `ready = {port = 1, pattern = "x"}`, "f:4: terminal.0.ready: give one of port, pattern, http and command"},
		"a port that is none":    {web + `ready = {port = 70000}`, "f:4: terminal.0.ready.port: 70000 is out of range: {port}, or 1 to 65535 (it is ready when it listens on this TCP port)"},
		"a wrong pattern":        {web + `ready = {pattern = "("}`, "f:4: terminal.0.ready: pattern: error parsing regexp: missing closing ): `(`"},
		"a time for nothing":     {web + `ready = {timeout = "5s"}`, "f:4: terminal.0.ready: timeout needs a condition: port, pattern, http or command"},
		"the given port":         {web + "port = \"auto\"\nenv = [\"URL=http://localhost:{port}\"]\nready = {http = \"http://localhost:{port}/\"}", ""},
		"a given number":         {web + "port = 3000\nready = {port = \"{port}\"}", ""},
		"a port, not given":      {web + `ready = {port = "{port}"}`, `f:4: terminal.0.ready: {port} needs port = "auto" or a number beside it`},
		"a URL, not given":       {web + `ready = {http = "http://localhost:{port}/"}`, `f:4: terminal.0.ready: {port} needs port = "auto" or a number beside it`},
		"a word for a port":      {web + `port = "free"`, `f:4: terminal.0.port: "free" must be auto, or 1 to 65535 (the TCP port that it gets)`},
		"another word":           {web + "port = 1\nready = {port = \"auto\"}", `f:5: terminal.0.ready.port: "auto" must be {port}, or 1 to 65535 (it is ready when it listens on this TCP port)`},
		"a large port":           {web + `port = 65536`, "f:4: terminal.0.port: 65536 is out of range: auto, or 1 to 65535 (the TCP port that it gets)"},
		"a part of a port":       {web + `port = 1.5`, "f:4: terminal.0.port: 1.5 is not a port: auto, or 1 to 65535 (the TCP port that it gets)"},
		"no program":             {web + `ready = {command = []}`, `f:4: terminal.0.ready: command names no program; write command = ["pg_isready", "-q"]`},
		"another machine":        {web + `ready = {http = "http://example.com/"}`, `f:4: terminal.0.ready: http: "example.com" is not this machine; name localhost or 127.0.0.1`},
		"another address":        {web + `ready = {http = "http://10.0.0.1/"}`, `f:4: terminal.0.ready: http: "10.0.0.1" is not this machine; name localhost or 127.0.0.1`},
		"no URL":                 {web + `ready = {http = "localhost:5173"}`, `f:4: terminal.0.ready: http: "localhost:5173" is no URL such as http://localhost:5173/`},
		"an unknown name":        {web + `needs = ["db"]`, `f:4: terminal.0.needs: no terminal "db" is declared`},
		"itself":                 {web + `needs = ["web"]`, `f:4: terminal.0.needs: they need each other, so that none could start: web needs web`},
		"each other":             {web + "needs = [\"db\"]\n[[terminal]]\nname = \"db\"\nline = \"x\"\nneeds = [\"web\"]", `f:4: terminal.0.needs: they need each other, so that none could start: web needs db needs web`},
		"more than restart":      {web + `agents = ["kill"]`, `f:4: terminal.0.agents.0: "kill" must be one of restart (what agents may do with it, although it is yours: restart)`},
		"agents and private":     {web + "private = true\nagents = [\"restart\"]", "f:5: terminal.0.agents: a private terminal is hidden from agents"},
		"a NUL in the condition": {web + `ready = {command = ["a\u0000"]}`, "f:1: terminal.0.command: a NUL byte is in its values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text))
			if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
