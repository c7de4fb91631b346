package shellint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A line is exact or unknown, never another command's.
func TestBashHistory(t *testing.T) {
	unknown := "" // then the daemon uses the typed line; these tests type without telling the tracker
	tests := []struct {
		name, rc string
		lines    []string
		want     []ran
	}{
		{"plain, duplicates", "", []string{"echo a", "echo a", " echo b"}, []ran{{"echo a", 0}, {"echo a", 0}, {" echo b", 0}}},
		{"ignorespace", "HISTCONTROL=ignorespace", []string{"echo a", " echo b", "echo a"}, []ran{{"echo a", 0}, {unknown, 0}, {"echo a", 0}}},
		{"ignoredups", "HISTCONTROL=ignoredups", []string{"echo a", "echo a", "false", " false"}, []ran{{"echo a", 0}, {"echo a", 0}, {"false", 1}, {" false", 1}}},
		{"ignoreboth", "HISTCONTROL=ignoreboth", []string{"echo a", "echo a", " echo c", "echo d"}, []ran{{"echo a", 0}, {unknown, 0}, {unknown, 0}, {"echo d", 0}}},
		{"erasedups", "HISTCONTROL=erasedups", []string{"echo a", "echo b", "echo a", "echo a", "echo b"},
			[]ran{{"echo a", 0}, {"echo b", 0}, {"echo a", 0}, {"echo a", 0}, {"echo b", 0}}},
		{"erasedups and ignorespace", "HISTCONTROL=ignorespace:erasedups", []string{"echo a", "echo b", " echo c", "echo a", "echo b"},
			[]ran{{"echo a", 0}, {"echo b", 0}, {unknown, 0}, {"echo a", 0}, {"echo b", 0}}},
		{"HISTIGNORE", "HISTIGNORE='echo b*'", []string{"echo a", "echo b", "echo a"}, []ran{{"echo a", 0}, {unknown, 0}, {"echo a", 0}}},
		{"HISTIGNORE and ignoredups", "HISTIGNORE='echo b*' HISTCONTROL=ignoredups", []string{"echo a", "echo b", "echo c"},
			[]ran{{"echo a", 0}, {unknown, 0}, {"echo c", 0}}},
		{"HISTTIMEFORMAT", "HISTTIMEFORMAT='%F %T '", []string{"echo a", "false"}, []ran{{"echo a", 0}, {"false", 1}}},
		{"history off", "", []string{"echo a", "set +o history", "echo b", "set -o history", "echo c"},
			[]ran{{"echo a", 0}, {"set +o history", 0}, {unknown, 0}, {unknown, 0}, {"echo c", 0}}},
		{"no history", "HISTSIZE=0", []string{"echo a", "false"}, []ran{{unknown, 0}, {unknown, 1}}},
		{"full history", "HISTSIZE=2", []string{"echo a", "echo b", "echo c", "echo d"}, []ran{{"echo a", 0}, {"echo b", 0}, {"echo c", 0}, {"echo d", 0}}},
		{"cleared", "", []string{"echo a", "history -c", "echo b"}, []ran{{"echo a", 0}, {"history -c", 0}, {"echo b", 0}}},
		{"shared through the file", "shopt -s histappend; PROMPT_COMMAND='history -a; history -c; history -r'", []string{"echo a", "echo b", "false"},
			[]ran{{"echo a", 0}, {"echo b", 0}, {"false", 1}}},
		{"expansion", "", []string{"echo a", "!!", "echo !$"}, []ran{{"echo a", 0}, {"echo a", 0}, {"echo a", 0}}},
		{"comment between", "HISTCONTROL=ignorespace", []string{"# comment", " echo b"}, []ran{{unknown, 0}}},
		{"bytes", "", []string{`echo 'a;b\c' "“ü” ✜ %d %s \x3b"`}, []ran{{`echo 'a;b\c' "“ü” ✜ %d %s \x3b"`, 0}}},
		{"number in front", "", []string{"5 2>&-", "*x 2>&-"}, []ran{{"5 2>&-", 127}, {"*x 2>&-", 127}}},
	}
	forBash(t, func(t *testing.T, b shell) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				b.untold = true
				s := bashWith(t, b, tt.rc+"\n")
				s.typeLines(tt.lines...)
				s.wantCommands(tt.want)
			})
		}
	})
}

func TestBashEnds(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		last  string
		want  []ran
	}{
		{"exit", []string{"true"}, "exit 5", []ran{{"true", 0}, {"exit 5", 5}}},
		{"exec", []string{"false"}, "exec sh -c 'exit 6'", []ran{{"false", 1}, {"exec sh -c 'exit 6'", 6}}},
		{"set -e", []string{"set -e", "true"}, "false", []ran{{"set -e", 0}, {"true", 0}, {"false", 1}}},
		{"killed", []string{"true"}, "kill -9 $$", []ran{{"true", 0}, {"kill -9 $$", 137}}},
		{"end of input", []string{"true"}, "\x04", []ran{{"true", 0}}},
	}
	forBash(t, func(t *testing.T, b shell) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s := bashWith(t, b, "")
				s.typeLines(tt.lines...)
				s.send(strings.TrimSuffix(tt.last+"\r", "\x04\r"))
				if tt.last == "\x04" {
					s.send(tt.last)
				}
				s.waitEnd()
				s.wantCommands(tt.want)
			})
		}
	})
}

// set -e at the prompt: a line that fails without ending the shell must not end it in our
// hooks.
func TestBashErrexitGoesOn(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "set -e\n")
		s.typeLines("! true", "false && true", "echo $?", "if false; then :; fi", "echo on")
		s.wantCommands([]ran{{"! true", 1}, {"false && true", 1}, {"echo $?", 0}, {"if false; then :; fi", 0}, {"echo on", 0}})
		s.wantOutput("echo $?", "1\r\n")
	})
}

func TestBashPromptCommand(t *testing.T) {
	tests := []struct {
		name, rc string
		change   string // typed between
		logged   bool   // $LOG holds what the user's command saw
		quiet    bool   // our hooks are gone for good
	}{
		{"string", "PROMPT_COMMAND='note; false'", "", true, false},
		{"exported string", "export PROMPT_COMMAND='note; false'", "", true, false},
		{"array", "PROMPT_COMMAND=(note false)", "", true, false},
		{"ends in a semicolon", "PROMPT_COMMAND='note;'", "", true, false},
		{"ends in a comment", "PROMPT_COMMAND='note # x'", "", true, false},
		{"appended later", "PROMPT_COMMAND=", "PROMPT_COMMAND+='; note'", false, false},
		{"put before later", "PROMPT_COMMAND=:", "PROMPT_COMMAND='false; '$PROMPT_COMMAND", false, false},
		{"replaced later", "PROMPT_COMMAND=:", "PROMPT_COMMAND=false", false, true},
		{"unset later", "PROMPT_COMMAND=:", "unset PROMPT_COMMAND", false, true},
		{"array replaced later", "PROMPT_COMMAND=:", "PROMPT_COMMAND=(false false)", false, true},
		{"element added later", "PROMPT_COMMAND=:", "PROMPT_COMMAND+=(false)", false, false},
		{"read-only", "readonly PROMPT_COMMAND=note", "", true, true},
	}
	forBash(t, func(t *testing.T, b shell) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				if tt.quiet && (b.opts.DebugTrap || trapped(b)) {
					t.Skip("the DEBUG trap needs PROMPT_COMMAND")
				}
				s := bashWith(t, b, "note() { echo \"$? $_\" >>\"$LOG\"; }\n"+tt.rc+"\n")
				want := []ran{{"(exit 3)", 3}}
				s.typeLines("(exit 3)")
				if tt.change != "" {
					s.typeLines(tt.change)
					want = append(want, ran{tt.change, 0})
				}
				s.typeLines("false", "", "echo $?", "(exit 4)", "true | false", "true last", "echo $_")
				want = append(want, ran{"false", 1}, ran{"echo $?", 0}, ran{"(exit 4)", 4}, ran{"true | false", 1}, ran{"true last", 0}, ran{"echo $_", 0})
				s.wantCommands(want)
				if got := strings.TrimSuffix(s.output("echo $?"), "\x1b[?2004h"); got != "1\r\n" {
					t.Errorf("output of echo $? is %q", got)
				}
				if got := strings.TrimSuffix(s.output("echo $_"), "\x1b[?2004h"); got != "last\r\n" {
					t.Errorf("output of echo $_ is %q", got)
				}
				if tt.logged {
					var codes []string
					for _, line := range s.log()[1:] {
						codes = append(codes, line[:1])
					}
					if got := strings.Join(codes, ""); got != "31104100" {
						t.Errorf("the user's PROMPT_COMMAND saw codes %s", got)
					}
				}
			})
		}
	})
}

func TestBashPromptvars(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "")
		s.typeLines("echo a", "shopt -u promptvars; echo b", "false", "", "(exit 3)", "echo c; echo d", "shopt -s promptvars", "(exit 4)", "", "true", "trap -p DEBUG")
		s.wantCommands([]ran{{"echo a", 0}, {"shopt -u promptvars; echo b", 0}, {"false", 1}, {"(exit 3)", 3}, {"echo c; echo d", 0},
			{"shopt -s promptvars", 0}, {"(exit 4)", 4}, {"true", 0}, {"trap -p DEBUG", 0}})
		s.wantOutput("echo c; echo d", "c\r\nd\r\n")
		if _, clean := s.written(); strings.Contains(clean, "__tether") && !b.opts.DebugTrap && !trapped(b) {
			t.Errorf("our names show:\n%s", clean)
		}
	})
}

func TestBashMovedOutput(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		s := bashWith(t, b, "")
		s.typeLines("exec >out", "echo hidden", "false", "exec >/dev/tty")
		from := s.offset()
		s.send("exec 2>err\r") // no prompt to see
		s.wait("end of exec", func() bool { return s.closed() == 5 })
		s.send("echo a\r")
		s.wait("end of echo", func() bool { return s.closed() == 6 })
		s.send("exec 2>/dev/tty; false\r")
		s.waitPrompt(from)
		s.wantCommands([]ran{{"exec >out", 0}, {"echo hidden", 0}, {"false", 1}, {"exec >/dev/tty", 0}, {"exec 2>err", 0},
			{"echo a", 0}, {"exec 2>/dev/tty; false", 1}})
		out, err := os.ReadFile(filepath.Join(s.home, "out"))
		if err != nil || string(out) != "hidden\n" {
			t.Errorf("out is %q, %v", out, err)
		}
	})
}

func TestBashTypeahead(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		b.files = map[string]string{".bashrc": bashPrompt + "read -r line <wait\n"}
		b.fifo = "wait"
		s := startShell(t, b)
		s.send("echo one\rfalse\recho three; (exit 3)\r") // before the first prompt
		write(t, filepath.Join(s.home, "wait"), "go\n")
		s.wait("three commands", func() bool { return s.closed() == 3 })
		s.wantCommands([]ran{{"echo one", 0}, {"false", 1}, {"echo three; (exit 3)", 3}})
	})
}

// Lines that are pasted at once run without a prompt between them; the DEBUG trap takes
// them for one.
func TestBashPaste(t *testing.T) {
	forBash(t, func(t *testing.T, b shell) {
		if trapped(b) {
			t.Skip("no bracketed paste before bash 4.4")
		}
		s := bashWith(t, b, "bind 'set enable-bracketed-paste on' 2>/dev/null\n")
		s.typeKeys("x\x7fy\x7f", "y") // readline is there
		s.typeKeys("\x1b[200~echo four\nfalse\necho five\x1b[201~", "five")
		from := s.offset()
		s.send("\r")
		s.waitPrompt(from)
		want := []ran{{"echo four", 0}, {"false", 1}, {"echo five", 0}}
		if raw, _ := s.written(); strings.Count(raw, "633;C") == 1 {
			want = []ran{{"echo four", 0}}
		}
		s.wantCommands(want)
	})
}
