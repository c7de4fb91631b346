package view

import (
	"strings"
	"testing"

	"tether/internal/testkit"
)

func TestPlainText(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	for _, c := range []struct{ in, want string }{
		{"one\r\ntwo\r\n", "one\ntwo\n"},
		{"\x1b]0;title\x07\x1b[1;31mred\x1b[0m\tx\n", "red     x\n"},
		{"10%\r20%\r100%\r\ndone\n", "100%\ndone\n"},
		{"%     \r \r\r\x1b[0m\x1b[J$ ls\r\n", "$ ls\n"},
		{"mistale\b\bke\n", "mistake\n"},
		{"über\b\b\b\b\b\b\b\n", "über\n"},
		{"bell\x07\x00\x0e\x7f\u009b\n", "bell\n"},
		{"a\x1b[5;1Hb\x1b[10Cc\x1b[Hd", "a\nb          c\nd\n"},
		{"prompt> ", "prompt> \n"},
		{"see \x1b]8;;https://a.example\x1b\\this\x1b]8;;\x1b\\!\n", "see this [https://a.example]!\n"},
		{"", ""},
		{long + "\n", long + "\n"},
		{"a\x1b[9Cb\n", "a         b\n"},
		{"longer\rl\x1b[K\n\x1b[H\x1b[2J\x1b[5;1Hnew", "l\nnew\n"},
	} {
		var whole, bytewise strings.Builder
		one := &Plain{Out: &whole}
		_, _ = one.Write([]byte(c.in))
		_ = one.Close()
		two := &Plain{Out: &bytewise}
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
	p := &Plain{Out: &out, Live: true}
	for _, c := range []struct{ in, want string }{
		{"Password: ", "Password: "},
		{"\xc3", "Password: "},
		{"\xa9\r\n", "Password: é\n"},
		{"10%\r", "Password: é\n"},
		{"20%", "Password: é\n20%"},
		{"\r30%", "Password: é\n20%\n30%"},
		{"\r\n", "Password: é\n20%\n30%\n"},
		{"\x1b]8;;https://a.example\ath", "Password: é\n20%\n30%\nth"},
		{"is\x1b]8;;\a\r\n", "Password: é\n20%\n30%\nthis\n"},
	} {
		_, _ = p.Write([]byte(c.in))
		if out.String() != c.want {
			t.Errorf("after %q: %q, want %q", c.in, out.String(), c.want)
		}
	}
}

// Bars read as they do at each other interface.
func TestPlainBars(t *testing.T) {
	for _, b := range testkit.Bars {
		for _, live := range []bool{false, true} {
			var out strings.Builder
			p := &Plain{Out: &out, Live: live}
			_, _ = p.Write([]byte(b.Output))
			_ = p.Close()
			if got := strings.TrimRight(out.String(), " \n"); got != strings.TrimRight(b.Text, "\n") {
				t.Errorf("%s: %q, want %q", b.Name, got, b.Text)
			}
		}
	}
}
