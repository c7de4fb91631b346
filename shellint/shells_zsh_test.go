package shellint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestZshBasic(t *testing.T) {
	for _, path := range versions(t, "zsh") {
		t.Run(path, func(t *testing.T) {
			s := startShell(t, shell{argv: []string{path}, files: map[string]string{".zshrc": "PS1='" + ready + "'\n"}})
			s.waitPrompt(0)
			s.typeLines("echo hi", "false", "", "(exit 7)", "echo $?", "cd /tmp; echo ab")
			want := []ran{{"echo hi", 0}, {"false", 1}, {"(exit 7)", 7}, {"echo $?", 0}, {"cd /tmp; echo ab", 0}}
			if diff := cmp.Diff(want, s.commands()); diff != "" {
				t.Error(diff, string(s.raw))
			}
		})
	}
}

func TestFishBasic(t *testing.T) {
	for _, path := range versions(t, "fish") {
		t.Run(path, func(t *testing.T) {
			s := startShell(t, shell{argv: []string{path}, files: map[string]string{".config/fish/config.fish": "function fish_prompt; echo -n '" + ready + "'; end\n"}})
			s.waitPrompt(0)
			s.typeLines("echo hi", "false", "", "sh -c 'exit 7'", "echo $status", "cd /tmp; echo ab")
			want := []ran{{"echo hi", 0}, {"false", 1}, {"sh -c 'exit 7'", 7}, {"echo $status", 0}, {"cd /tmp; echo ab", 0}}
			if diff := cmp.Diff(want, s.commands()); diff != "" {
				t.Error(diff, string(s.raw))
			}
		})
	}
}
