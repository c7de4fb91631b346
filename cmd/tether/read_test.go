package main

import (
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// read prints plain text if its output cannot show colours, and the requested form
// otherwise.
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

// What read shows at a terminal does not act on it: no question, clipboard, notification,
// bell, font, file or print. --raw shows every byte.
func TestReadIsHarmlessAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	const hostile = `\005|\033[c|\033]50;?\007|\033]50;fixed\007|\033]1337;File=name=eA==:AAAA\007|\033]1337;Copy=:x\007|\033P@kitty-cmd{}\033\\|\033P$qm\033\\|` +
		`\033]52;c;eA==\007|\033[5i|\033[21t|\033]9;note\007|\033]777;notify;a;b\007|\033[?2048h|\033[?2031h|\033_Ga=q,i=1;AAAA\033\\|\007`
	command(t, "run", "--private", "--name", "c", "--", "sh", "-c", `printf 'first \033[31mred\033[0m `+hostile+` last\n'`)
	printed := strings.NewReplacer(`\005`, "\x05", `\007`, "\a", `\033`, "\x1b", `\\`, `\`).Replace(hostile)
	for _, args := range [][]string{{"read", "c"}, {"read", "--color", "always", "c"}, {"read", "--follow", "c"}, {"read", "--tail", "1", "c"}} {
		p := sit(t, args...)
		p.exits(0)
		if !strings.Contains(p.shown(), "first \x1b[31mred\x1b[0m ") || !strings.Contains(p.shown(), "| last") {
			t.Errorf("%q shows %q", args, p.shown())
		}
		for never := range strings.SplitSeq(printed, "|") {
			if strings.Contains(p.shown(), never) {
				t.Errorf("%q: %q is in %q", args, never, p.shown())
			}
		}
	}
	p := sit(t, "read", "--raw", "c")
	p.sees(printed, " last")
	p.exits(0)
}
