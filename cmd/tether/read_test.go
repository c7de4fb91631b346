package main

import (
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// read prints plain text if its output cannot show colours, and the requested form otherwise.
func TestReadIsPlainInAPipe(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	const coloured = "\x1b[31mred\x1b[0m"
	command(t, "run", "--private", "--name", "c", "--", "sh", "-c", `printf '\033]0;title\007\033[31mred\033[0m\n'`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"read c", "red\n"},
		{"read --follow c", "red\n"},
		{"read --color never c", "red\n"},
		{"read --color always c", coloured},
		{"read --raw c", "\x1b]0;title\x07" + coloured + "\r\n"},
	} {
		out, err := exec.Command("tether", strings.Fields(c.args)...).Output()
		if err != nil || !strings.Contains(string(out), c.want) || strings.HasPrefix(c.want, "red") && string(out) != c.want {
			t.Errorf("tether %s: %q, %v; want %q", c.args, out, err, c.want)
		}
	}
	if _, status := command(t, "read", "--color", "pink", "c"); status != 2 {
		t.Errorf("--color pink: status %d", status)
	}
	for env, want := range map[string]bool{"A=1": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		name, value, _ := strings.Cut(env, "=")
		t.Setenv(name, value)
		p := sit(t, "read", "c")
		p.sees("red")
		p.exits(0)
		if got := strings.Contains(p.shown(), "\x1b[0m"); got != want {
			t.Errorf("with %s at a terminal: colours %v, want %v", env, got, want)
		}
		t.Setenv(name, "")
	}
}
