package view

import (
	"strings"
	"testing"
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
	} {
		_, _ = p.Write([]byte(c.in))
		if out.String() != c.want {
			t.Errorf("after %q: %q, want %q", c.in, out.String(), c.want)
		}
	}
}

// A line of cursor movements is written in pieces, too: each few bytes may be a thousand blanks.
func TestPlainTextBoundsALineOfMovements(t *testing.T) {
	var out strings.Builder
	p := &Plain{Out: &out}
	_, _ = p.Write([]byte(strings.Repeat("\x1b[1000C", 100)))
	if kept := 100*maxColumns - out.Len(); kept > 2*maxLine {
		t.Errorf("it keeps %d bytes of a line, more than %d", kept, 2*maxLine)
	}
}
