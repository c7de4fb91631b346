package shellint_test

import (
	"path/filepath"
	"strings"
	"testing"
)

const fishPrompt = "function fish_prompt; builtin echo -n '" + ready + "'; end\nfunction fish_greeting; end\n"

// forFish runs f with each fish there is.
func forFish(t *testing.T, f func(t *testing.T, sh shell)) {
	for _, path := range versions(t, "fish") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			f(t, shell{argv: []string{path}})
		})
	}
}

func fishWith(t *testing.T, sh shell, rc string) *session {
	t.Helper()
	sh.files = map[string]string{".config/fish/conf.d/prompt.fish": fishPrompt, ".config/fish/config.fish": rc}
	return begin(t, sh)
}

func TestFishCodes(t *testing.T) {
	forFish(t, func(t *testing.T, sh shell) {
		s := fishWith(t, sh, "")
		s.typeLines("echo hi", "false", "", "sh -c 'exit 7'", "echo $status", "true | false", "false | true", "not false", "not true",
			"echo $pipestatus", "nosuchcommand-x", "function f; return 9; end; f", "printf 'no newline'", "sh -c 'kill -9 $fish_pid' ; true",
			"sh -c 'kill -9 $$'", "test a = b", "true &", "wait", "# comment", " echo hidden", "cd /tmp", "echo done; sh -c 'exit 4'")
		s.wantCommands([]ran{{"echo hi", 0}, {"false", 1}, {"sh -c 'exit 7'", 7}, {"echo $status", 0}, {"true | false", 1}, {"false | true", 0},
			{"not false", 0}, {"not true", 1}, {"echo $pipestatus", 0}, {"nosuchcommand-x", 127}, {"function f; return 9; end; f", 9},
			{"printf 'no newline'", 0}, {"sh -c 'kill -9 $fish_pid' ; true", 0}, {"sh -c 'kill -9 $$'", 137}, {"test a = b", 1}, {"true &", 0},
			{"wait", 0}, {" echo hidden", 0}, {"cd /tmp", 0}, {"echo done; sh -c 'exit 4'", 4}})
		s.wantOutputHas("echo $status", "7\r\n")
		s.wantCwd("/tmp")
	})
}

func TestFishKeys(t *testing.T) {
	forFish(t, func(t *testing.T, sh shell) {
		s := fishWith(t, sh, "")
		s.typeKeys("\r", ready)
		s.typeKeys("echo abandoned", "abandoned")
		s.interruptPrompt()
		s.typeKeys(child("exec sleep 30")+"\r", "started\r\n")
		s.typeKeys("\x03", ready)
		s.typeKeys(child("exec sleep 31")+"\r", "started\r\n")
		s.typeKeys("\x1a", ready)
		s.typeLines("kill -9 %1; wait")
		s.typeLines("echo $status")
		got := s.commands()
		if len(got) < 2 || got[0] != (ran{child("exec sleep 30"), 130}) || got[1].Line != child("exec sleep 31") {
			t.Errorf("commands %v", got)
		}
	})
}

func TestFishMultiLine(t *testing.T) {
	forFish(t, func(t *testing.T, sh shell) {
		s := fishWith(t, sh, "")
		s.typeKeys("for i in 1 2\r", "\r\n")
		s.typeKeys("echo $i; true \\\\ 'a\r", "\r\n")
		s.typeKeys("b'\r", "\r\n")
		s.typeKeys("end\r", ready)
		s.typeLines("true")
		// fish itself indents continuation lines.
		got := s.commands()
		if len(got) != 2 || strings.ReplaceAll(got[0].Line, "\n    ", "\n") != "for i in 1 2\necho $i; true \\\\ 'a\nb'\nend" || got[0].Exit != 0 {
			t.Errorf("commands %v", got)
		}
	})
}

func TestFishEnds(t *testing.T) {
	forFish(t, func(t *testing.T, sh shell) {
		for line, code := range map[string]int64{"exit 5": 5, "exec sh -c 'exit 6'": 6, "kill -9 $fish_pid": 137} {
			s := fishWith(t, sh, "")
			s.typeLines("true")
			s.send(line + "\r")
			s.waitEnd()
			s.wantCommands([]ran{{"true", 0}, {line, code}})
		}
	})
}

func TestFishHostileFiles(t *testing.T) {
	rcs := map[string]string{
		"functions":       "function printf; end\nfunction echo; end\nfunction set_color; end\n",
		"events":          "function e --on-event fish_preexec; false; end\nfunction d --on-event fish_postexec; true; end\nfunction p --on-event fish_prompt; false; end\n",
		"status":          "false\n",
		"syntax error":    "end\n",
		"abbreviations":   "abbr --add echo 'echo x'\nalias cd='cd'\n",
		"right prompt":    "function fish_right_prompt; echo right; end\nfunction fish_mode_prompt; echo m; end\n",
		"vi keys":         "fish_vi_key_bindings\nfunction fish_mode_prompt; end\n",
		"own marks":       "function fish_prompt; printf '\\e]133;A\\a" + ready + "\\e]133;B\\a'; end\n",
		"private":         "set -g fish_private_mode 1\n",
		"changed later":   "function change --on-event fish_postexec; function fish_prompt; echo -n '" + ready + "'; end; end\n",
		"repaint":         "function paint --on-event fish_prompt; commandline -f repaint; end\n",
		"locale":          "set -gx LC_ALL C\n",
		"exported status": "set -gx __tether_text x\n",
	}
	forFish(t, func(t *testing.T, sh shell) {
		for name, rc := range rcs {
			t.Run(name, func(t *testing.T) {
				s := fishWith(t, sh, rc)
				s.typeLines("sh -c 'exit 3'", "false | sh -c 'exit 4'", "", "true", " true; true", "builtin echo $status", "builtin cd /tmp")
				s.wantCommands([]ran{{"sh -c 'exit 3'", 3}, {"false | sh -c 'exit 4'", 4}, {"true", 0}, {" true; true", 0}, {"builtin echo $status", 0}, {"builtin cd /tmp", 0}})
				s.wantCwd("/tmp")
			})
		}
	})
}

var fishSession = []string{
	"echo hi", "false", "", "sh -c 'exit 7'", "echo $status >>out-text", "true | false | true", "echo $pipestatus >>out-text", "not true", "set x 5",
	"set -gx Y 6", "alias ll 'ls -l'", "function f; return 3; end", "f", "test a = b", "sleep 0 & ; wait", "cd /tmp", "cd -", "  echo space", "echo space",
	"echo space", "for i in 1 2; echo $i; end", "echo $undefined >>out-text", "nosuchcommand-x", "sh -c 'kill -9 $$'", "eval false", "command false",
	"set -e Y", "echo $CMD_DURATION | string length >/dev/null", "functions -n | string split ', ' | grep -v __tether >out-functions",
	"set -x | grep -v '^_ ' >out-export", "set -U >out-universal", "env | grep -v '^_=' | sort >out-env", "jobs >out-jobs", "bind >out-keys",
	"functions fish_prompt >out-prompt", "abbr --show >out-abbreviations", "status features >out-features",
	"fish --no-config -ic 'functions -n; set -g' | grep -c __tether >out-nested", "history search --max 5 >out-history",
}

func TestFishSame(t *testing.T) {
	rcs := map[string]string{
		"events": "function note --on-event fish_postexec; echo $status $pipestatus >>~/out-codes; end\nfunction line --on-event fish_preexec; echo \"$argv\" >>~/out-lines; end\n",
		"prompt": "function fish_prompt; echo $status >>~/out-codes; echo -n '" + ready + "'; end\n",
	}
	forFish(t, func(t *testing.T, sh shell) {
		for name, rc := range rcs {
			t.Run(name, func(t *testing.T) {
				sh.files = map[string]string{".config/fish/config.fish": fishPrompt + rc, "history": ""}
				wantSame(t, sh, fishSession)
			})
		}
	})
}
