package shellint_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// The tests here run in every shell: programs, files and other shells inside it.

// kind holds the differences between the shells in these tests.
type kind struct {
	name   string
	rc     string // start-up file
	prompt string // its text for the prompt
	status string // how $? is written
}

var kinds = []kind{
	{"bash", ".bashrc", bashPrompt, "$?"},
	{"zsh", ".zshrc", "PS1='" + ready + "'\n", "$?"},
	{"fish", ".config/fish/config.fish", "function fish_prompt; echo -n '" + ready + "'; end\nfunction fish_greeting; end\n", "$status"},
}

// forShells runs f with each kind and version of shell.
func forShells(t *testing.T, f func(t *testing.T, k kind, sh shell)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for _, path := range versions(t, k.name) {
				t.Run(filepath.Base(path), func(t *testing.T) {
					t.Parallel()
					f(t, k, shell{argv: []string{path}, files: map[string]string{k.rc: k.prompt}})
				})
			}
		})
	}
}

func begin(t *testing.T, sh shell) *session {
	t.Helper()
	s := startShell(t, sh)
	s.waitPrompt(0)
	return s
}

// A file that is printed can neither end a command, nor name one, nor move the directory.
func TestSpoof(t *testing.T) {
	const end = "\a"
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		var text strings.Builder
		for _, mark := range []string{"D;0", "E;rm -rf /", "C", "P;Cwd=/etc", "A", "B"} {
			for _, ps := range []string{"633", "133", "0633"} {
				fmt.Fprintf(&text, "\x1b]%s;%s%s\x1b]%s;%s;wrong-nonce%s", ps, mark, end, ps, mark, end)
			}
		}
		write(t, filepath.Join(s.home, "evil"), text.String()+"seen\n")
		s.typeLines("cat evil; sh -c 'exit 3'", "true")
		s.wantCommands([]ran{{"cat evil; sh -c 'exit 3'", 3}, {"true", 0}})
		s.wantCwd(s.home)
		if _, clean := s.written(); strings.Contains(clean, "]633") || strings.Contains(clean, "]133") {
			t.Errorf("marks are left in the clean output")
		}
	})
}

// The nonce is in no place where a program or a nested shell finds it, and its file is
// gone.
func TestNonceIsGone(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		sh.files[k.rc] = "env >out-env; sh -c 'cat \"$DIR\"/* \"$DIR\"/.z*' >out-dir 2>/dev/null\n" + k.prompt
		s := &session{t: t, home: t.TempDir(), dir: t.TempDir(), done: make(chan struct{})}
		sh.env = []string{"DIR=" + s.dir}
		s.start(sh)
		s.waitPrompt(0)
		s.typeLines("env >out-later", "set >out-set")
		for _, name := range []string{"out-env", "out-later"} {
			text, err := os.ReadFile(filepath.Join(s.home, name))
			if err != nil || bytes.Contains(text, []byte(testNonce)) || bytes.Contains(bytes.ToLower(text), []byte("tether_")) {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
		// fish reads our file after the user's.
		if text, err := os.ReadFile(filepath.Join(s.home, "out-dir")); err != nil || len(text) > 0 && k.name != "fish" {
			t.Errorf("while the user's file is read the folder's files hold %q, %v", text, err)
		}
		for _, path := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.p.Pid(), path))
			if err == nil && bytes.Contains(text, []byte(testNonce)) {
				t.Errorf("%s of the shell has the nonce", path)
			}
		}
	})
}

// A shell inside is one command, and silent.
func TestNestedShell(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		for _, inner := range kinds {
			path, err := exec.LookPath(inner.name)
			if err != nil {
				continue
			}
			write(t, filepath.Join(s.home, inner.rc), inner.prompt)
			from := s.offset()
			s.send(path + "\r")
			s.waitPrompt(from)
			s.typeUnreported("echo inside", "sh -c 'exit 3'", "exit")
			s.wantOutputHas(path, "inside")
		}
		s.typeLines("true")
		want := []ran{}
		for _, inner := range kinds {
			if path, err := exec.LookPath(inner.name); err == nil {
				want = append(want, ran{path, 3})
			}
		}
		s.wantCommands(append(want, ran{"true", 0}))
	})
}

// Full-screen programs, a reset terminal, and a multiplexer that eats marks: one command
// each.
func TestScreens(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		var want []ran
		full := func(program, line, quit string) {
			if _, err := exec.LookPath(program); err != nil {
				t.Logf("%s is not installed", program)
				return
			}
			s.typeKeys(line+"\r", "\x1b[?1049h")
			s.typeUntil(quit, ready)
			s.send("\x15") // takes back text that was typed once more to a program that was only slow
			want = append(want, ran{line, 0})
		}
		write(t, filepath.Join(s.home, "text"), strings.Repeat("line\n", 100))
		full("vim", "vim -u NONE -n text", "ZQ")
		full("less", "less text", "q")
		for _, line := range []string{`printf '\033c'`, `printf '\033[3J\033[2J\033[H'`} {
			s.typeLines(line)
			want = append(want, ran{line, 0})
		}
		if _, err := exec.LookPath("tmux"); err == nil {
			line := "tmux -f /dev/null -L tether" + filepath.Base(s.dir) + k.name + " new 'printf \"\\033]633;D;5;" + testNonce + "\\007\"; sleep 0.1; exit 4'"
			s.typeLines(line)
			want = append(want, ran{line, 0})
		}
		s.typeLines("true")
		s.wantCommands(append(want, ran{"true", 0}))
	})
}

// Any line arrives whole, however long and with any content.
func TestLongLines(t *testing.T) {
	lines := []string{
		": '" + strings.Repeat("0123456789", 20) + "'",
		": '" + strings.Repeat(`a;b\c `, 250) + "'",
		": '" + strings.Repeat("ü“✜” ", 300) + "'",
	}
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		var want []ran
		for _, line := range lines {
			s.typeLines(line)
			want = append(want, ran{line, 0})
		}
		line := ": 'tab\tescape\x1bdelete\x7fend'" // control characters are typed after Ctrl-V
		if k.name != "fish" {
			s.typeLines(strings.NewReplacer("\t", "\x16\t", "\x1b", "\x16\x1b", "\x7f", "\x16\x7f").Replace(line))
			want = append(want, ran{line, 0})
		}
		s.wantCommands(want)
	})
}

// Directories arrive whole, with any bytes in their names.
func TestDirectories(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		s.wantCwd(s.home)
		for i, name := range []string{"a;b", `c\d`, "ü ✜", "x;wrong-nonce", "n\nl", "\x1b[31m"} {
			parent := filepath.Join(s.home, fmt.Sprint("d", i))
			must.Do(t, os.MkdirAll(filepath.Join(parent, name), 0o700))
			s.typeLines("cd " + parent + "/*")
			s.wantCwd(filepath.Join(parent, name))
		}
	})
}

// Hostile start-up files: lines, exit codes and the results of the user's own code stay
// right.
func TestHostileFiles(t *testing.T) {
	bash := map[string]string{
		"functions": "builtin() { :; }\nprintf() { echo HIJACKED; }\necho() { command echo \"$@\"; }\ntest() { return 1; }\n[() { return 1; }\n" +
			"command() { return 5; }\nshopt() { return 1; }\nhistory() { :; }\n",
		"half of the functions": "printf() { echo HIJACKED; }\necho() { command echo \"$@\"; }\ntest() { return 1; }\nlocal() { :; }\neval() { :; }\ntrap() { :; }\n",
		"aliases":               "alias builtin=false printf=false local=false return=false export=false command=false echo='echo '\n",
		"options":               "set -uf -o pipefail -o noclobber; shopt -s extglob nullglob failglob nocasematch nocaseglob dotglob\n",
		"posix":                 "set -o posix\n",
		"allexport":             "set -a\n",
		"trace":                 "set -x; PS4='+ '\n",
		"keywords":              "set -k\n",
		"IFS":                   "IFS=_\n",
		"IFS of digits":         "IFS=0123456789\n",
		"IFS empty":             "IFS=\n",
		"traps":                 "trap 'echo err >&2' ERR; trap 'echo debug $BASH_COMMAND >/dev/null' DEBUG; trap 'echo return' RETURN\n",
		"traps with functrace":  "set -TE; trap 'echo err' ERR; trap 'echo debug' DEBUG; trap 'echo return' RETURN; trap 'echo chld' CHLD\n",
		"read-only PS1":         "readonly PS1\n",
		"read-only PS0":         "PS0='started '; readonly PS0\n",
		"read-only others":      "readonly IFS HISTTIMEFORMAT='%F ' LC_ALL=C\n",
		"PROMPT_COMMAND":        "PROMPT_COMMAND='false; unset nothing; (exit 9)'; HISTTIMEFORMAT='%F %T '\n",
		"failing lines":         "set -u; echo $unset_variable; readonly A=1; A=2; echo ${x?no}; PS1='" + ready + "'\n",
		"return":                "return 3\n",
		"syntax error":          "if fi\n",
		"unset":                 "unset PROMPT_COMMAND PS0 HISTCMD SHELLOPTS 2>/dev/null\n",
		"extdebug":              "shopt -s extdebug\n",
		"no promptvars":         "shopt -u promptvars\n",
		"prompt with a code":    "PS1='$? $(exit 4)" + ready + "'\n",
		"prompt set each time":  "PROMPT_COMMAND='PS1=\"" + ready + "\"'\n",
		"GLOBIGNORE, CDPATH":    "GLOBIGNORE='*'; CDPATH=/tmp; POSIXLY_CORRECT=1\n",
	}
	untrappable := map[string]string{ // the DEBUG trap's limits
		"functions":            "trap and history are called by builtin",
		"traps with functrace": "a line that is a subshell is seen twice",
		"read-only others":     "a line that is a subshell is known from the history only",
	}
	forBash(t, func(t *testing.T, b shell) {
		for name, rc := range bash {
			t.Run(name, func(t *testing.T) {
				if why := untrappable[name]; why != "" && (b.opts.DebugTrap || trapped(b)) {
					t.Skip(why)
				}
				b.untold = true
				s := bashWith(t, b, rc)
				s.typeLines("(exit 3)", "true | (exit 4)", "", "x=1", "sh -c 'exit 6' || true", "for i in 1 2; do :; done", "cd /tmp")
				want := []ran{{"(exit 3)", 3}, {"true | (exit 4)", 4}, {"x=1", 0}, {"sh -c 'exit 6' || true", 0},
					{"for i in 1 2; do :; done", 0}, {"cd /tmp", 0}}
				if name == "read-only others" {
					for i := range want {
						want[i].Line = "" // no way to see the history without the times
					}
				}
				s.wantCommands(want)
				s.wantCwd("/tmp")
			})
		}
	})
}

// A terminal that changes its size, at an empty prompt, in a half typed line and under a
// command, makes no command.
func TestResize(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		s := begin(t, sh)
		resize := func(cols uint16) {
			t.Helper()
			must.Do(t, s.p.Resize(pty.Size{Cols: cols, Rows: 24}))
		}
		resize(60)
		s.typeLines("true")
		s.typeKeys("echo half", "half")
		resize(100)
		s.typeLines(" typed")
		s.send(child("read -r line; exit 3") + "\r")
		s.wait("child", func() bool { return bytes.Contains(s.clean, []byte("started\r\n")) })
		resize(80)
		from := s.offset()
		s.send("\r")
		s.waitPrompt(from)
		s.wantCommands([]ran{{"true", 0}, {"echo half typed", 0}, {child("read -r line; exit 3"), 3}})
	})
}

// A background job ends its line at once; the shell's message when it is done belongs to
// no command.
func TestBackgroundJob(t *testing.T) {
	forShells(t, func(t *testing.T, k kind, sh shell) {
		if k.name == "fish" {
			t.Skip("fish says nothing of jobs that end well")
		}
		sh.fifo = "wait"
		s := begin(t, sh)
		s.typeLines("cat wait &")
		from := s.offset()
		write(t, filepath.Join(s.home, "wait"), "")
		s.typeUntilAfter(from, "\r", "one") // Done, done; zsh may say it at once
		s.typeLines("(exit 2)")
		s.wantCommands([]ran{{"cat wait &", 0}, {"(exit 2)", 2}})
		for _, line := range []string{"cat wait &", "(exit 2)"} {
			if out := s.output(line); strings.Contains(out, "one") {
				t.Errorf("output of %q is %q", line, out)
			}
		}
	})
}
