package acp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tether/agent/acp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// TestCommands uses params that real agents send in terminal/create.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"run me.sh", "tool"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	line := func(s, name string) []acp.Command { return []acp.Command{{Line: s, Name: name}} }
	argv := func(name string, words ...string) acp.Command { return acp.Command{Argv: words, Name: name} }
	for _, c := range []struct {
		name, params string
		want         []acp.Command
	}{
		{"program and arguments", `"command":"npm","args":["test","--coverage"]`, []acp.Command{argv("npm test --coverage", "npm", "test", "--coverage")}},
		{"a shell line (claude-code-acp)", `"command":"git status && ls | wc -l"`, line("git status && ls | wc -l", "git status && ls | wc -l")},
		{"a shell that is given a script (Kimi Code)", `"command":"/bin/bash","args":["-c","cd '/work' && make"]`, []acp.Command{argv("cd '/work' && make", "/bin/bash", "-c", "cd '/work' && make")}},
		{"words", `"command":"ls -l"`, line("ls -l", "ls -l")},
		{"one word: a program, or what the shell makes of it", `"command":"make"`, []acp.Command{argv("make", "make"), {Line: "make", Name: "make"}}},
		{"a variable", `"command":"$EDITOR"`, line("$EDITOR", "$EDITOR")},
		{"an assignment", `"command":"A=1"`, line("A=1", "A=1")},
		{"several lines", "\"command\":\"set -e\\nmake\\n\"", line("set -e\nmake\n", "set -e")},
		{"a file with a space", `"command":"./run me.sh"`, []acp.Command{argv("./run me.sh", "./run me.sh")}},
		{"an absolute file", `"command":` + strconv.Quote(filepath.Join(dir, "tool")), []acp.Command{argv("", filepath.Join(dir, "tool"))}},
		{"a file that is in the way of a program", `"command":"tool"`, []acp.Command{argv("tool", "tool"), {Line: "tool", Name: "tool"}}},
		{"empty args", `"command":"a b","args":[]`, line("a b", "a b")},
		{"a whole number with a fraction", `"command":"a b","outputByteLimit":100.0`, line("a b", "a b")},
		{"null means absent", `"command":"a b","args":null,"env":null,"cwd":null,"outputByteLimit":null,"_meta":null`, line("a b", "a b")},
		{"variables", `"command":"a b","env":[{"name":"A","value":"1"},{"name":"B","value":""}]`, []acp.Command{{Line: "a b", Name: "a b", Env: []string{"A=1", "B="}}}},
		{"a long name", `"command":"` + strings.Repeat("ä ", 100) + `"`, line(strings.Repeat("ä ", 100), strings.Repeat("ä ", 29)+"ä…")},
		{"a name that would change the screen", `"command":"a \u001b[2J\u202eb"`, line("a \x1b[2J\u202eb", "a [2Jb")},
	} {
		got, err := acp.Commands(`{"sessionId":"s",`+c.params+`}`, dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i := range c.want {
			c.want[i].Cwd = dir
			if c.want[i].Name == "" && i < len(got) {
				c.want[i].Name = got[i].Name
			}
		}
		check.Equal(t, c.name, c.want, got)
	}
}

func TestBadCreate(t *testing.T) {
	for _, c := range []struct{ params, want string }{
		{`[]`, "params must be an object"},
		{`{"command":"a"}`, "sessionId is required"},
		{`{"sessionId":"s"}`, "command is required"},
		{`{"sessionId":"s","command":"a\ud83d"}`, "surrogate pair"},
		{`{"sessionId":"s","command":"a","args":["` + "a\xe9" + `"]}`, "not UTF-8"},
		{`{"sessionId":"s","command":7}`, "command has the wrong type: number"},
		{`{"sessionId":"s","command":"a","args":"b"}`, "args has the wrong type: string"},
		{`{"sessionId":"s","command":"a","args":[1]}`, "args has the wrong type: number"},
		{`{"sessionId":"s","command":"a","args":["b",null]}`, "args must be strings"},
		{`{"sessionId":"s","command":"a","env":{"A":"1"}}`, "env has the wrong type: object"},
		{`{"sessionId":"s","command":"a","env":[{"name":"A"}]}`, "needs a name and a value"},
		{`{"sessionId":"s","command":"a","env":[{"name":"A=B","value":"1"}]}`, "A=B"},
		{`{"sessionId":"s","command":"a","env":[{"name":"","value":"1"}]}`, "is not a valid variable"},
		{`{"sessionId":"s","command":"a","env":[{"name":"A","value":"a\u0000b"}]}`, "is not a valid variable"},
		{`{"sessionId":"s","command":"a","cwd":"b"}`, "not an absolute path"},
		{`{"sessionId":"s","command":"a","cwd":true}`, "cwd has the wrong type: bool"},
		{`{"sessionId":"s","command":"a","outputByteLimit":-1}`, "outputByteLimit has the wrong type: number -1"},
		{`{"sessionId":"s","command":"a","outputByteLimit":1.5}`, "outputByteLimit has the wrong type: number 1.5"},
		{`{"sessionId":"s","command":"a","outputByteLimit":"9"}`, "outputByteLimit has the wrong type: string"},
	} {
		_, err := acp.Commands(c.params, "/")
		var failure *acp.Failure
		if !errors.As(err, &failure) || failure.Kind != acp.Invalid || !strings.Contains(failure.Message, c.want) {
			t.Errorf("%s: %v, want something with %q", c.params, err, c.want)
		}
	}
}
