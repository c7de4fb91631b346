package shellint_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
)

const zshPrompt = "PS1='" + ready + "'\n"

// forZsh runs f with each zsh there is.
func forZsh(t *testing.T, f func(t *testing.T, z shell)) {
	for _, path := range versions(t, "zsh") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			f(t, shell{argv: []string{path}})
		})
	}
}

// zshWith starts z with the text as ~/.zshrc and waits for its prompt.
func zshWith(t *testing.T, z shell, rc string) *session {
	t.Helper()
	z.files = map[string]string{".zshrc": zshPrompt + rc}
	return begin(t, z)
}

func TestZshCodes(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "setopt interactive_comments\n")
		s.typeLines("echo hi", "false", "", "(exit 7)", "echo $?", "true | false", "false | true", "! false", "! true", "setopt pipefail",
			"false | true", "echo ${pipestatus[@]}", "x=$(exit 6); echo $?", "nosuchcommand-x", "f() { return 9; }; f", "printf 'no newline'",
			"sh -c 'kill -9 $$'", "[[ a == b ]]", "true &", "wait", "# comment", " echo hidden", "cd /tmp", "echo done")
		s.wantCommands([]ran{{"echo hi", 0}, {"false", 1}, {"(exit 7)", 7}, {"echo $?", 0}, {"true | false", 1}, {"false | true", 0}, {"! false", 0},
			{"! true", 1}, {"setopt pipefail", 0}, {"false | true", 1}, {"echo ${pipestatus[@]}", 0}, {"x=$(exit 6); echo $?", 0},
			{"nosuchcommand-x", 127}, {"f() { return 9; }; f", 9}, {"printf 'no newline'", 0}, {"sh -c 'kill -9 $$'", 137}, {"[[ a == b ]]", 1},
			{"true &", 0}, {"wait", 0}, {" echo hidden", 0}, {"cd /tmp", 0}, {"echo done", 0}})
		s.wantOutput("echo hi", "hi\r\n")
		s.wantOutput("false", "")
		s.wantOutput("printf 'no newline'", "no newline") // zsh's sign for the missing newline comes after
		s.wantOutput("echo ${pipestatus[@]}", "1 0\r\n")
		s.wantCwd("/tmp")
	})
}

func TestZshKeys(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "bindkey -e\n")
		s.typeKeys("\r", ready)
		s.typeKeys("echo abandoned", "abandoned")
		s.interruptPrompt()
		s.typeKeys("for i in 1 2\r", "> ")
		s.interruptPrompt()
		s.typeKeys(child("exec sleep 30")+"\r", "started\r\n")
		s.typeKeys("\x03", ready)
		s.typeKeys(child("exec sleep 31")+"\r", "started\r\n")
		s.typeKeys("\x1a", ready)
		s.typeLines("kill -9 %1; wait")
		s.typeLines(child("kill -STOP $$; echo again"))
		s.typeLines("fg")
		s.typeKeys("\x0c", ready) // redraw
		s.typeLines("echo $?")
		s.wantCommands([]ran{{child("exec sleep 30"), 130}, {child("exec sleep 31"), 148}, {"kill -9 %1; wait", 0},
			{child("kill -STOP $$; echo again"), 147}, {"fg", 0}, {"echo $?", 0}})
	})
}

// A background job may end at any moment: zsh reports it at once, and loses the text that
// it was about to print.
func TestZshJobsThatEnd(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "")
		for i := range testkit.Rounds(t, 50, 2000) {
			s.typeLines(fmt.Sprintf("sleep 0.00%02d & true; sleep 0.00%02d; (exit %d)", i%37, i%31, i%7))
			all := s.commands()
			if last := all[len(all)-1]; len(all) != i+1 || last.Exit != int64(i%7) {
				raw, _ := s.written()
				t.Fatalf("command %d of %d is %v\n%q", i+1, len(all), last, tail(raw))
			}
		}
	})
}

func TestZshMultiLine(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "")
		s.typeKeys("cat <<X\r", "> ")
		s.typeKeys("one; \\two\r", "> ")
		s.typeKeys("X\r", ready)
		s.typeKeys("echo 'a\r", "> ")
		s.typeKeys("b'\r", ready)
		s.typeKeys("for i in 1 2\r", "> ")
		s.typeKeys("do echo $i\r", "> ")
		s.typeKeys("done\r", ready)
		s.wantCommands([]ran{{"cat <<X\none; \\two\nX", 0}, {"echo 'a\nb'", 0}, {"for i in 1 2\ndo echo $i\ndone", 0}})
	})
}

// Redrawn, replaced and coloured prompts make no command.
func TestZshPrompts(t *testing.T) {
	rcs := map[string]string{
		"RPROMPT":              "RPROMPT='right'\n",
		"two lines":            "PS1=$'above\\n" + ready + "'\n",
		"set by precmd":        "precmd() { PS1='" + ready + "' }\n",
		"set by a hook":        "autoload -Uz add-zsh-hook; theme() { PROMPT='" + ready + "' }; add-zsh-hook precmd theme\n",
		"grows by a hook":      "PS1=; grow() { PS1=\"${PS1%%ready*}" + ready + "\" }; precmd_functions+=(grow)\n",
		"transient":            "finish() { PROMPT='> '; zle reset-prompt; PROMPT='" + ready + "' }; zle -N zle-line-finish finish\n",
		"reset-prompt":         "init() { zle reset-prompt }; zle -N zle-line-init init\n",
		"exported":             "export PS1\n",
		"read-only":            "typeset -r PS1\n",
		"no percent":           "setopt no_prompt_percent\n",
		"substitution":         "setopt prompt_subst; PS1='$(true)" + ready + "'\n",
		"bang":                 "setopt prompt_bang\n",
		"no prompt_sp":         "unsetopt prompt_sp\n",
		"no prompt_cr":         "unsetopt prompt_cr\n",
		"end-of-line mark":     "PROMPT_EOL_MARK='%Bno newline%b'\n",
		"empty mark":           "PROMPT_EOL_MARK=\n",
		"exported mark":        "export PROMPT_EOL_MARK='~'\n",
		"precmd emptied later": "x() { precmd_functions=() }; preexec_functions+=(x)\n",
		"preexec emptied":      "x() { (( n++ )) && preexec_functions=() }; precmd_functions+=(x)\n",
		"hooks before ours":    "y() { false }; add() { precmd_functions=(y $precmd_functions); precmd_functions[(r)add]=() }; precmd_functions+=(add)\n",
		"failing hooks":        "precmd() { return 3 }; preexec() { return 4 }\n",
		"printing hooks":       "precmd() { print before }; preexec() { print start }\n",
		"marks of a theme":     "PS1=$'%{\\e]133;A\\a%}" + ready + "%{\\e]133;B\\a%}'; preexec() { print -n '\\e]133;C\\a' }\n",
		"clear the screen key": "bindkey '^X' clear-screen\n",
	}
	forZsh(t, func(t *testing.T, z shell) {
		for name, rc := range rcs {
			t.Run(name, func(t *testing.T) {
				s := zshWith(t, z, rc)
				s.typeLines("false", "", "echo $?; (exit 3)", "true")
				s.wantCommands([]ran{{"false", 1}, {"echo $?; (exit 3)", 3}, {"true", 0}})
			})
		}
	})
}

func TestZshHostileFiles(t *testing.T) {
	rcs := map[string]string{
		"functions":     "builtin() { : }\nprint() { echo HIJACKED }\nprintf() { : }\nemulate() { : }\nsetopt() { : }\nzmodload() { : }\n",
		"aliases":       "alias builtin=false local=false print=false -g A=B REPLY=x marks=y\nalias -g '='='x'\n",
		"options":       "setopt nounset ksh_arrays sh_word_split glob_subst null_glob no_clobber warn_create_global rc_expand_param\n",
		"more options":  "setopt ksh_glob sh_glob posix_builtins posix_identifiers csh_null_glob no_multi_func_def err_return 2>/dev/null; true\n",
		"emulation":     "emulate ksh; PS1='" + ready + "'\n",
		"sh emulation":  "emulate sh; PS1='" + ready + "'\n",
		"allexport":     "setopt all_export\n",
		"trace":         "setopt xtrace; PS4='+ '\n",
		"IFS":           "IFS=_0123456789\n",
		"traps":         "TRAPZERR() { print err }; TRAPDEBUG() { print debug >/dev/null }; trap 'print exit' EXIT\n",
		"history":       "setopt hist_ignore_space hist_ignore_all_dups hist_reduce_blanks extended_history; HISTSIZE=3 SAVEHIST=3\n",
		"no history":    "HISTSIZE=0; unset HISTFILE\n",
		"failing lines": "setopt nounset; echo $unset_variable; typeset -r A=1; A=2; PS1='" + ready + "'\n",
		"return":        "return 3\n",
		"syntax error":  "if fi\n",
		"own ZDOTDIR":   "export ZDOTDIR=/nowhere\n",
	}
	forZsh(t, func(t *testing.T, z shell) {
		for name, rc := range rcs {
			t.Run(name, func(t *testing.T) {
				s := zshWith(t, z, rc)
				s.typeLines("(exit 3)", "true | (exit 4)", "", "x=1", " echo hidden", "echo $?", "echo $?", "cd /tmp")
				s.wantCommands([]ran{{"(exit 3)", 3}, {"true | (exit 4)", 4}, {"x=1", 0}, {" echo hidden", 0}, {"echo $?", 0}, {"echo $?", 0}, {"cd /tmp", 0}})
				s.wantCwd("/tmp")
			})
		}
	})
}

func TestZshEnds(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		for line, code := range map[string]int64{"exit 5": 5, "exec sh -c 'exit 6'": 6, "set -e; false": 1, "kill -9 $$": 137} {
			s := zshWith(t, z, "")
			s.typeLines("true")
			s.send(line + "\r")
			s.waitEnd()
			s.wantCommands([]ran{{"true", 0}, {line, code}})
		}
	})
}

func TestZshMovedOutput(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "")
		s.typeLines("exec >out", "echo hidden", "false", "exec >/dev/tty", "exec 2>err", "false", "exec 2>/dev/tty")
		s.wantCommands([]ran{{"exec >out", 0}, {"echo hidden", 0}, {"false", 1}, {"exec >/dev/tty", 0}, {"exec 2>err", 0}, {"false", 1}, {"exec 2>/dev/tty", 0}})
		out, err := os.ReadFile(filepath.Join(s.home, "out"))
		if err != nil || !strings.Contains(string(out), "hidden\n") || strings.Contains(string(out), testNonce) {
			t.Errorf("out is %q, %v", out, err)
		}
	})
}

// The user's start-up files are read in zsh's own order from where the user has them.
func TestZshStartupFiles(t *testing.T) {
	tests := []struct {
		name   string
		login  bool
		env    []string
		files  map[string]string
		want   string
		zdot   string
		exists string
	}{
		{name: "home", want: "env rc "},
		{name: "login", login: true, want: "env profile rc login "},
		{name: "ZDOTDIR", env: []string{"ZDOTDIR=HOME/z"}, want: "zenv zrc ", zdot: "HOME/z"},
		{name: "set by .zshenv", files: map[string]string{".zshenv": "echo -n 'env ' >>$LOG; export ZDOTDIR=$HOME/z\n"}, want: "env zrc ", zdot: "HOME/z"},
	}
	forZsh(t, func(t *testing.T, z shell) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s := &session{t: t, home: t.TempDir(), dir: t.TempDir(), done: make(chan struct{})}
				z.opts.Login = tt.login
				z.env = nil
				for _, v := range tt.env {
					z.env = append(z.env, strings.ReplaceAll(v, "HOME", s.home))
				}
				z.files = map[string]string{}
				for _, name := range []string{"env", "profile", "rc", "login"} {
					z.files[".z"+strings.Replace("sh"+name, "shprofile", "profile", 1)] = "echo -n '" + name + " ' >>$LOG\n" + zshPrompt
					z.files["z/.z"+strings.Replace("sh"+name, "shprofile", "profile", 1)] = "echo -n 'z" + name + " ' >>$LOG\n" + zshPrompt
				}
				for _, name := range []string{"", "z/"} { // .zlogin, not .zshlogin
					z.files[name+".zlogin"] = z.files[name+".zshlogin"]
					delete(z.files, name+".zshlogin")
				}
				for name, text := range tt.files {
					z.files[name] = text
				}
				s.start(z)
				s.waitPrompt(0)
				s.typeLines(`echo " ${ZDOTDIR-unset} $(typeset -p ZDOTDIR 2>/dev/null)" >>$LOG`)
				got := strings.ReplaceAll(strings.Join(s.log(), "|"), s.home, "HOME")
				want := tt.want + " unset "
				if tt.zdot != "" {
					want = tt.want + " HOME/z export ZDOTDIR=HOME/z"
				}
				if got != want && got != strings.Replace(want, "export ZDOTDIR", "typeset -x ZDOTDIR", 1) {
					t.Errorf("read %q, want %q", got, want)
				}
				s.wantCommands([]ran{{`echo " ${ZDOTDIR-unset} $(typeset -p ZDOTDIR 2>/dev/null)" >>$LOG`, 0}})
			})
		}
	})
}

// Pasted lines each are a command.
func TestZshPaste(t *testing.T) {
	forZsh(t, func(t *testing.T, z shell) {
		s := zshWith(t, z, "")
		s.typeKeys("x\x7fy", "y")
		s.typeKeys("\x7f\x1b[200~echo four\nfalse\necho five\x1b[201~", "five")
		from := s.offset()
		s.send("\r")
		s.wait("the last line", func() bool { return s.closed() >= 1 && bytes.Contains(s.clean[from:], []byte("five\r\n")) })
		s.typeLines("true")
		for _, c := range s.commands() {
			if c.Exit < 0 {
				t.Errorf("%q has no exit code", c.Line)
			}
		}
	})
}

var zshSession = []string{
	"echo hi", "false", "", "(exit 7)", "echo $? >>out-text", "true | false | true", `echo "${pipestatus[@]}" >>out-text`, "! true", "echo word last",
	"echo $_ >>out-text", "setopt pipefail", "false | true", "x=5", "export Y=6", "alias ll='ls -l'", "f() { return 3; }", "f", "[[ a = b ]]",
	"((1 - 1))", "sleep 0 & wait", "cd /tmp", "cd - >/dev/null", "echo $OLDPWD >>out-text", "setopt extended_glob", "trap 'echo bye >>out-text' EXIT",
	"TRAPZERR() { echo err $? >>out-text }", "false", "unfunction TRAPZERR", "  echo space", "echo space", "echo space", "fc -l -2 >>out-text",
	"for i in 1 2; do echo $i; done", "setopt nounset", "echo ${z-unset} >>out-text", "echo $z", "echo $? >>out-text", "unsetopt nounset",
	"test -t 0", "test -t 1", "echo $# $0 >>out-text", "nosuchcommand-x", "sh -c 'kill -9 $$'", "eval 'false'", "command false", "unset Y",
	"readonly R=1", "R=2", "echo $? >>out-text", "setopt >out-set", "trap >out-trap", "print -l ${(ok)functions} | grep -v __tether >out-functions",
	"alias >out-alias", "export -p | grep -v ' _=' >out-export", "env | grep -v '^_=' | sort >out-env", "jobs >out-jobs", "zmodload >out-modules",
	"print -r -- $PROMPT $RPROMPT >out-prompt", "bindkey >out-keys", "zle -l >out-widgets",
	"print -l ${(ok)parameters} | grep -Ev '__tether|PROMPT_EOL_MARK|pre(cmd|exec)_functions' >out-parameters", "zsh -fic 'functions; echo $ZDOTDIR' >out-nested 2>&1",
}

func TestZshSame(t *testing.T) {
	const note = "note() { echo $? >>~/out-codes }; precmd_functions+=(note)\n"
	rcs := map[string]string{
		"hooks":   note + "setopt interactive_comments; SAVEHIST=100\n",
		"options": note + "setopt hist_ignore_space hist_ignore_dups inc_append_history prompt_subst ksh_arrays; SAVEHIST=100\n",
		"precmd":  "precmd() { echo $? >>~/out-codes }\npreexec() { print -r -- \"$1|$2|$3\" >>~/out-lines }\nSAVEHIST=50\n",
	}
	forZsh(t, func(t *testing.T, z shell) {
		for name, rc := range rcs {
			t.Run(name, func(t *testing.T) {
				z.files = map[string]string{".zshrc": zshPrompt + rc}
				wantSame(t, z, zshSession)
			})
		}
	})
}
