package shellint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBashBasic(t *testing.T) {
	for _, path := range versions(t, "bash") {
		t.Run(path, func(t *testing.T) {
			s := startShell(t, shell{argv: []string{path}, files: map[string]string{".bashrc": "PS1='" + ready + "'\n"}})
			s.waitPrompt(0)
			s.typeLines("echo hi", "false", "", "(exit 7)", "echo $?", "cd /tmp; echo ab")
			want := []ran{{"echo hi", 0}, {"false", 1}, {"(exit 7)", 7}, {"echo $?", 0}, {"cd /tmp; echo ab", 0}}
			if diff := cmp.Diff(want, s.commands()); diff != "" {
				t.Error(diff, string(s.raw))
			}
		})
	}
}
