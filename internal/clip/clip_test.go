package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tether/internal/clip"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s            string
		n            int
		text, marked string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abc", 2, "ab", "ab…"},
		{"abc", 0, "", "…"},
		{"aé", 2, "a", "a…"},
		{"a€b", 3, "a", "a…"},
		{"a€b", 4, "a€", "a€…"},
		{"😀😀", 7, "😀", "😀…"},
		{"😀", 3, "", "…"},
		{"ab\xffcd", 3, "ab\xff", "ab\xff…"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80…"},
	} {
		if got := clip.Text(c.s, c.n); got != c.text {
			t.Errorf("Text(%q, %d) is %q, want %q", c.s, c.n, got, c.text)
		}
		if got := clip.Marked(c.s, c.n); got != c.marked {
			t.Errorf("Marked(%q, %d) is %q, want %q", c.s, c.n, got, c.marked)
		}
	}
}

func TestLast(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"", 1, ""}, {"a", 1, "a"}, {"a\nb", 1, "b"}, {"a\nb\n", 1, "b\n"}, {"a\nb\n", 2, "a\nb\n"}, {"\n\n", 1, "\n"}, {"a\n\nb", 2, "\nb"}, {"a\nb", 9, "a\nb"}} {
		if got := clip.Last(c.s, c.n); got != c.want {
			t.Errorf("Last(%q, %d) is %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// Valid UTF-8 stays valid, and as much of it as fits is kept.
func FuzzText(f *testing.F) {
	f.Add("a€😀", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 0 || n > len(s) {
			return
		}
		got := clip.Text(s, n)
		if !strings.HasPrefix(s, got) || len(got) > n || len(got) <= n-utf8.UTFMax {
			t.Errorf("Text(%q, %d) is %q", s, n, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Text(%q, %d) is %q, which ends within a character", s, n, got)
		}
	})
}

func TestChars(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü€", 4, "äöü€"}, {"日本語です", 3, "日本…"}, {"äöü€x", 4, "äöü…"}, {"a b c", 3, "a…"}, {"abc", 1, "…"}, {"a\xffbc", 3, "a\xff…"}, {"abc", 0, ""}} {
		if got := clip.Chars(c.s, c.n); got != c.want {
			t.Errorf("Chars(%q, %d) is %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
