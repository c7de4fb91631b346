package shellint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/shellint"
)

// ble.sh reads lines in place of readline. Of lines that are typed while it loads it puts
// all into the history, then runs one after the other, and expands PS0 once. Each is
// reported exactly, or as unknown, and never as another one.

// typedAhead are lines of which the last entry of the history names at most one.
var typedAhead = []string{"echo AAA", "false", " echo hidden", "(exit 9)", "true"}

var ranAhead = []ran{{"echo AAA", 0}, {"false", 1}, {" echo hidden", 0}, {"(exit 9)", 9}, {"true", 0}}

// likeBlesh does what matters here, at the second prompt: by then ble.sh has its hooks.
const likeBlesh = `
BLE_VERSION=0.4.0-test _ble_attached= HISTCONTROL=ignorespace
blehook() { hook=${1#PREEXEC!=}; }
status() { return "$1"; }
attach() {
  (( prompts++ == 1 )) || return
  _ble_attached=1 lines=()
  while IFS= read -r line; do
    lines+=("$line")
    [[ $line == ' '* ]] || history -s -- "$line"
  done <~/typed
  code=0
  for line in "${lines[@]}"; do
    if [[ ${hook-} ]]; then status "$code"; "$hook" "$line"; fi
    if [[ ! ${ps0+x} ]]; then ps0=${PS0@P}; fi
    printf %s "$ps0"
    eval "$line"; code=$?
  done
  _ble_attached=
  return "$code"
}
prompts=0
PROMPT_COMMAND=attach
`

func TestBashLikeBlesh(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		if b.opts.DebugTrap || trapped(b) {
			t.Skip("needs PS0")
		}
		b.untold = true
		b.files = map[string]string{".bashrc": bashPrompt + likeBlesh, "typed": strings.Join(typedAhead, "\n") + "\n"}
		s := startShell(t, b)
		s.waitPrompt(0)
		s.send("true\r")
		s.wait("six commands", func() bool { return s.closed() == 6 })
		s.wantCommands(append([]ran{{"true", 0}}, ranAhead...))
	})
}

// BLESH names a ble.sh: its source is not part of the project.
func TestBlesh(t *testing.T) {
	blesh := os.Getenv("BLESH")
	if blesh == "" {
		t.Skip("BLESH does not name a ble.sh")
	}
	load := "source " + blesh + " --noattach --rcfile /dev/null\n"
	for _, c := range []struct{ name, rc string }{
		{"attached in a start-up file", load + "read -r line <wait\n[[ ! ${BLE_VERSION-} ]] || ble-attach\n"},
		{"attached at the prompt", "source " + blesh + " --attach=prompt --rcfile /dev/null\nread -r line <wait\n"},
		{"hidden lines", "HISTCONTROL=ignoreboth\n" + load + "read -r line <wait\nble-attach\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startShell(t, shell{argv: []string{shellPath(t, "bash")}, files: map[string]string{".bashrc": bashPrompt + c.rc}, fifo: "wait",
				env: []string{"USER=nobody"}, untold: true, answers: true})
			for _, line := range typedAhead {
				s.send(line + "\r")
			}
			write(t, filepath.Join(s.home, "wait"), "go\n")
			s.wait("five commands", func() bool { return s.closed() == 5 })
			s.wantCommands(ranAhead)
			for i, line := range []string{"echo later", "echo later", " (exit 3)"} {
				s.send(line + "\r")
				s.wait(line, func() bool { return s.closed() == 6+i })
			}
			s.wantCommands(append(ranAhead[:5:5], ran{"echo later", 0}, ran{"echo later", 0}, ran{" (exit 3)", 3}))
		})
	}
}

// The bytes that bash with ble.sh wrote when three lines were typed while it loaded.
func TestBleshRecording(t *testing.T) {
	raw := must.Get(os.ReadFile("testdata/blesh-typeahead.bin"))(t)
	want := `open#1"echo AAA"1 close#1(0,1) open#2"false"1 close#2(1,1) open#3"(exit 9)"1 close#3(9,1)`
	for _, size := range []int{1, 7, len(raw)} {
		if got := storyOf(new(shellint.Tracker), string(raw), testNonce, size); got != want {
			t.Errorf("in pieces of %d:\n got %s\nwant %s", size, got, want)
		}
	}
}
