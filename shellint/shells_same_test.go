package shellint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
)

// timestamps are the lines that bash writes into the history file if HISTTIMEFORMAT is
// set.
var timestamps = regexp.MustCompile(`(?m)^#\d+$`)

// traces types lines, leaves the shell, and returns the contents of files in its home
// named out-*, and the history.
func traces(t *testing.T, sh shell, lines []string) map[string]string {
	t.Helper()
	s := startShell(t, sh)
	s.waitPrompt(0)
	s.typeUnreported(lines...) // a bash without PS0 does not report all
	s.send("exit\r")
	s.waitEnd()
	names := must.Get(filepath.Glob(filepath.Join(s.home, "out-*")))(t)
	found := map[string]string{}
	for _, name := range append(names, filepath.Join(s.home, "history")) {
		text := must.Get(os.ReadFile(name))(t)
		found[filepath.Base(name)] = timestamps.ReplaceAllString(strings.ReplaceAll(string(text), s.home, "HOME"), "#time")
	}
	return found
}

// wantSame compares a session with integration to one without.
func wantSame(t *testing.T, sh shell, lines []string) {
	t.Helper()
	plain := sh
	plain.plain = true
	want := traces(t, plain, lines)
	got := traces(t, sh, lines)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without (-) and with integration (+):\n%s", diff)
	}
	if len(want["out-codes"]) < len(lines) {
		t.Errorf("the test itself is broken, it noted %q", want["out-codes"])
	}
}

// bashSession is an ordinary afternoon; values that differ by nature (pids, times) are
// kept out of the files.
var bashSession = []string{
	"echo hi", "false", "", "(exit 7)", "echo $? >>out-text", "true | false | true", `echo "${PIPESTATUS[@]}" >>out-text`, "! true", "echo word last",
	"echo $_ >>out-text", "set -o pipefail", "false | true", "x=5", "export Y=6", "alias ll='ls -l'", "f() { return 3; }", "f", "[[ a = b ]]",
	"((1 - 1))", "sleep 0 & wait", "cd /tmp", "cd - >/dev/null", "echo $OLDPWD >>out-text", "shopt -s extglob", "trap 'echo bye >>out-text' EXIT",
	"trap 'echo err $? >>out-text' ERR", "false", "trap - ERR", "  echo space", "echo space", "echo space", "!!", "history 3 >>out-text",
	"for i in 1 2; do echo $i; done", "for i in 1 2\rdo echo $i\rdone", "cat <<X\rone; \\\r\r  two\rX", "if true\rthen\r\r  echo x\rfi", "echo 'a\r b'",
	"f() {\r{ cat <<A; }\rA\r}", "echo a \\\rb", "x=$(cat <<A\rb\r(\rA\r)", "echo \"$x\" $(\recho in\r) >>out-text",
	"case x in\r(x) echo $(case y in\ry) echo z;; esac) >>out-text;;\resac", "cat <<A <<'B' >>out-text\ra $(echo $?)\rA\rb $(\rB",
	"while read -r l; do\recho \"$l\" # why (\rdone <<<'a\rb' >>out-text", "echo ${x:-a\rb} \"c\rd\" >>out-text", "[[ a\r]]",
	"z=(1\r2)", "echo `echo a\rb` >>out-text 2>&1", "alias two='echo 1; echo'\rtwo \\\r  2 >>out-text", "f2()\r{\r\r# comment\rreturn 4; }", "f2",
	"! {\rtrue &&\rfalse; }", "time {\r:; } 2>/dev/null", "(exit 5) |\rcat", "for ((i=0;\ri<2; i++)); do\r:\rdone", "select a in b\rdo break; done <<<1",
	"set -u", "echo ${z-unset} >>out-text", "echo $z", "echo $? >>out-text", "set +u", "test -t 0", "test -t 1",
	"echo $LINENO $BASH_SUBSHELL $# $0 >>out-text", "echo $- >>out-text", "nosuchcommand-x", "sh -c 'kill -9 $$'", "eval 'false'", "command false",
	"unset Y", "readonly R=1", "R=2", "echo $? >>out-text", "set -o >out-set", "shopt >out-shopt", "trap -p >out-trap",
	"declare -F | grep -v __tether >out-functions", "alias >out-alias", "export -p | grep -v _= >out-export",
	"env | grep -v ^_= | sort >out-env", "jobs >out-jobs", "printf '%s\\n' \"${!BASH_@}\" >out-names",
	"bash --norc -ic 'declare -F; declare -p PROMPT_COMMAND' >out-nested 2>&1",
}

func TestBashSame(t *testing.T) {
	rcs := map[string]string{
		"string":     "PROMPT_COMMAND='echo $? >>~/out-codes'\n",
		"array":      "PROMPT_COMMAND=('echo $? >>~/out-codes' false 'case $_ in \"\"|*bashrc|__tether) ;; *) echo \"$_\" ;; esac >>~/out-last')\n",
		"exported":   "export PS1; PROMPT_COMMAND='echo $? >>~/out-codes'\n",
		"history":    "HISTCONTROL=ignoreboth:erasedups HISTIGNORE='ls*' HISTTIMEFORMAT='%F '; PROMPT_COMMAND='echo $? >>~/out-codes; history -a'\n",
		"DEBUG trap": "trap 'case $BASH_COMMAND in *__tether*) ;; *) echo \"$? $BASH_COMMAND\" >>~/out-debug ;; esac' DEBUG\nPROMPT_COMMAND='echo $? >>~/out-codes'\n",
		"options":    "set -o functrace -o errtrace; shopt -s nullglob failglob nocasematch; set -o noclobber; PROMPT_COMMAND='echo $? >>~/out-codes'\n",
	}
	forBash(t, func(t *testing.T, b shell) {
		for name, rc := range rcs {
			if b.opts.DebugTrap && name != "string" && name != "DEBUG trap" {
				continue // the others make no difference to it
			}
			t.Run(name, func(t *testing.T) {
				if name == "array" && (trapped(b) || older(b, "4.4", "5.0")) {
					t.Skip("PROMPT_COMMAND is no array before bash 5.1")
				}
				if (trapped(b) || b.opts.DebugTrap) && name == "exported" {
					t.Skip("PS1 is exported with our pieces before bash 4.4")
				}
				b.files = map[string]string{".bashrc": bashPrompt + rc}
				lines := bashSession
				if trapped(b) || b.opts.DebugTrap {
					lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasSuffix(line, "out-trap") })
				}
				if older(b, "3.2") { // it does not bring PIPESTATUS back after hooks, and parses less
					lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, "PIPESTATUS") || strings.Contains(line, "\r") })
				}
				wantSame(t, b, lines)
			})
		}
	})
}
