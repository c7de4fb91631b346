package main

import (
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit"
)

func TestPlainText(t *testing.T) {
	long := strings.Repeat("é", maxLine)
	for _, c := range []struct{ in, want string }{
		{"one\r\ntwo\r\n", "one\ntwo\n"},
		{"\x1b]0;title\x07\x1b[1;31mred\x1b[0m\tx\n", "red\tx\n"},
		{"10%\r20%\r100%\r\ndone\n", "100%\ndone\n"},
		{"%     \r \r\r\x1b[0m\x1b[J$ ls\r\n", "$ ls\n"},
		{"mistale\b\bke\n", "mistake\n"},
		{"über\b\b\b\b\b\b\b\n", "\n"},
		{"bell\x07\x00\x0e\x7f\u009b\n", "bell\n"},
		{"a\x1b[5;1Hb\x1b[10Cc\x1b[Hd", "a\nb          c\nd\n"},
		{"prompt> ", "prompt> \n"},
		{"", ""},
		{long + "\n", long + "\n"},
		{"a\x1b[999999999Cb\n", "a" + strings.Repeat(" ", maxColumns) + "b\n"},
	} {
		var whole, bytewise strings.Builder
		one := &plainText{out: &whole}
		_, _ = one.Write([]byte(c.in))
		_ = one.Close()
		two := &plainText{out: &bytewise}
		for i := range len(c.in) {
			_, _ = two.Write([]byte{c.in[i]})
		}
		_ = two.Close()
		if whole.String() != c.want || bytewise.String() != c.want {
			t.Errorf("%.60q: %.60q, byte by byte %.60q, want %.60q", c.in, whole.String(), bytewise.String(), c.want)
		}
	}
}

// Followed output is shown before its line is complete.
func TestPlainTextLive(t *testing.T) {
	var out strings.Builder
	p := &plainText{out: &out, live: true}
	for _, c := range []struct{ in, want string }{
		{"Password: ", "Password: "},
		{"\xc3", "Password: "},
		{"\xa9\r\n", "Password: é\n"},
		{"10%\r", "Password: é\n"},
		{"20%", "Password: é\n20%"},
		{"\r30%", "Password: é\n20%\n30%"},
		{"\r\n", "Password: é\n20%\n30%\n"},
	} {
		_, _ = p.Write([]byte(c.in))
		if out.String() != c.want {
			t.Errorf("after %q: %q, want %q", c.in, out.String(), c.want)
		}
	}
}

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
