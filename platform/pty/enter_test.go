package pty_test

import (
	"strings"
	"testing"

	"tether/platform/pty"
)

func TestEnter(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{[]string{""}, ""},
		{[]string{"ls\n"}, "ls\r"},
		{[]string{"ls\r"}, "ls\r"},
		{[]string{"a\r\nb\n\nc"}, "a\rb\r\rc"},
		{[]string{"\n"}, "\n"}, // Ctrl+J
		{[]string{"a", "\n", "b"}, "a\nb"},
		{[]string{"a\r", "\n", "b\n"}, "a\rb\r"},
		{[]string{"a\r", "\nb\n"}, "a\rb\r"},
		{[]string{"\r", "\r"}, "\r\r"},
		{[]string{"\r", "", "\n"}, "\r"},
		{[]string{"\n\n"}, "\r\r"},
	} {
		if got := typed(c.pieces); got != c.want {
			t.Errorf("%q is typed as %q, want %q", c.pieces, got, c.want)
		}
	}
}

func typed(pieces []string) string {
	var e pty.Enter
	var b strings.Builder
	for _, p := range pieces {
		b.Write(e.Feed([]byte(p)))
	}
	return b.String()
}

// In any pieces, only line ends are changed, and no line is lost.
func FuzzEnter(f *testing.F) {
	f.Add("a\r\nb\nc\r", 2, 4)
	f.Add("\n", 0, 1)
	f.Fuzz(func(t *testing.T, text string, i, j int) {
		if i < 0 || j < i || j > len(text) {
			return
		}
		got := typed([]string{text[:i], text[i:j], text[j:]})
		want := strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(text)
		if strings.ReplaceAll(got, "\n", "\r") != want { // one that came alone is a key of its own
			t.Errorf("%q in pieces is typed as %q", text, got)
		}
	})
}
