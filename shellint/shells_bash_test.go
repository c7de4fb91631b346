package shellint_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/shellint"
)

const bashPrompt = "PS1='" + ready + "'\n"

// forBash runs f with each bash there is, and once more with the DEBUG trap that stands
// in for PS0 before 4.4.
func forBash(t *testing.T, f func(t *testing.T, b shell)) {
	for _, path := range versions(t, "bash") {
		for _, debug := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/debug=%t", filepath.Base(path), debug), func(t *testing.T) {
				t.Parallel()
				f(t, shell{argv: []string{path}, opts: shellint.InjectOptions{DebugTrap: debug}})
			})
		}
	}
}

// bashWith starts b with the text as ~/.bashrc and waits for its prompt.
func bashWith(t *testing.T, b shell, rc string) *session {
	t.Helper()
	b.files = map[string]string{".bashrc": bashPrompt + rc}
	s := startShell(t, b)
	s.waitPrompt(0)
	return s
}

func TestBashCodes(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "")
		s.typeLines("echo hi", "false", "", "(exit 7)", "echo $?", "true | false", "false | true", "! false", "! true",
			"set -o pipefail", "false | true", "echo ${PIPESTATUS[@]}", "x=$(exit 6); echo $?", "nosuchcommand-x", "f() { return 9; }; f",
			"echo a && (exit 3); echo b", "printf 'no newline'", "sh -c 'kill -9 $$'", "[[ a == b ]]", "((0))", "true &", "wait", "# comment",
			"cd /tmp", "echo done")
		want := []ran{{"echo hi", 0}, {"false", 1}, {"(exit 7)", 7}, {"echo $?", 0}, {"true | false", 1}, {"false | true", 0}, {"! false", 0},
			{"! true", 1}, {"set -o pipefail", 0}, {"false | true", 1}, {"echo ${PIPESTATUS[@]}", 0}, {"x=$(exit 6); echo $?", 0},
			{"nosuchcommand-x", 127}, {"f() { return 9; }; f", 9}, {"echo a && (exit 3); echo b", 0}, {"printf 'no newline'", 0},
			{"sh -c 'kill -9 $$'", 137}, {"[[ a == b ]]", 1}, {"((0))", 1}, {"true &", 0}, {"wait", 0}, {"cd /tmp", 0}, {"echo done", 0}}
		s.wantCommands(want)
		s.wantOutput("echo $?", "7\r\n")
		if !older(b, "3.2") { // which clears it in PROMPT_COMMAND
			s.wantOutput("echo ${PIPESTATUS[@]}", "1 0\r\n")
		}
		s.wantOutput("x=$(exit 6); echo $?", "6\r\n")
		s.wantOutput("printf 'no newline'", "no newline")
		s.wantCwd("/tmp")
	})
}

func TestBashKeys(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "")
		s.typeKeys("\r", ready)
		s.typeKeys("echo abandoned", "abandoned")
		s.interruptPrompt()
		s.interruptPrompt()
		s.typeKeys("for i in 1 2\r", "> ")
		s.typeKeys("do", "do")
		s.interruptPrompt()
		s.typeKeys(child("exec sleep 30")+"\r", "started\r\n")
		s.typeKeys("\x03", ready)
		s.typeKeys(child("exec sleep 31")+"\r", "started\r\n")
		s.typeKeys("\x1a", ready)
		s.typeLines("kill -9 %1; wait")
		s.typeLines(child("kill -STOP $$; echo again"))
		s.typeLines("fg")
		s.typeKeys(child("exec cat")+"\r", "started\r\n")
		s.typeKeys("line\r", "line\r\nline\r\n")
		s.typeKeys("\x04", ready)
		s.typeKeys("\x0c", ready) // redraw
		s.typeKeys("\x12star", "star")
		s.typeKeys("\x07", ready)
		s.typeLines("echo $?")
		s.wantCommands([]ran{{child("exec sleep 30"), 130}, {child("exec sleep 31"), 148}, {"kill -9 %1; wait", 0},
			{child("kill -STOP $$; echo again"), 147}, {"fg", 0}, {child("exec cat"), 0}, {"echo $?", 0}})
	})
}

func TestBashMultiLine(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "")
		want := []ran{}
		for _, line := range []string{
			"cat <<X\none; \\two\n\nü\nX",
			"echo 'a\nb'",
			"for i in 1 2\ndo echo $i\ndone",
			"for i in ü\ndo\n  echo $i; false\ndone",
			"if false\nthen\n  true\nelif true # why\nthen false\nfi",
			"case x in\nx) echo one\n  echo two;;\n*) ;;\nesac",
			"f() {\n  echo 'x\n; y'\n}; f",
			"while false\ndo :; done | cat",
			"(\n  echo in\n  exit 3\n)",
			"true &&\n  false ||\ntrue",
			"x=(1\n2)",
		} {
			lines := strings.Split(line, "\n")
			for _, l := range lines[:len(lines)-1] {
				s.typeKeys(l+"\r", "> ")
			}
			s.typeLines(lines[len(lines)-1])
			want = append(want, ran{line, s.commands()[len(want)].Exit})
		}
		s.typeKeys("echo x \\\r", "> ")
		s.typeLines("y")
		want = append(want, ran{"echo x y", 0})
		s.typeLines("shopt -s lithist")
		s.typeKeys("if true\r", "> ")
		s.typeKeys("then false\r", "> ")
		s.typeLines("fi")
		want = append(want, ran{"shopt -s lithist", 0}, ran{"if true\nthen false\nfi", 1})
		if trapped(b) || older(b, "4.4", "5.0", "5.1") { // the lines are as bash keeps them
			for i, c := range s.commands() {
				want[i].Line = c.Line
			}
		}
		s.wantCommands(want)
		s.wantOutputHas(s.commands()[2].Line, "1\r\n2\r\n")
	})
}

// older reports whether b is one of these versions.
func older(b shell, versions ...string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return strings.HasSuffix(b.argv[0], "bash-"+v) })
}

// trapped says that this bash is older than PS0.
func trapped(b shell) bool {
	return older(b, "3.2", "4.3")
}
