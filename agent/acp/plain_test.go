package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/agent/acp"
	"tether/internal/testkit"
)

func TestPlain(t *testing.T) {
	for _, c := range []struct{ name, in, lines, last string }{
		{"lines of a terminal", "one\r\ntwo\r\n", "one\ntwo\n", ""},
		{"no line end yet", "one\r\ntwo", "one\n", "two"},
		{"colours", "\x1b[1;31mred\x1b[0m plain\r\n", "red plain\n", ""},
		{"a title", "\x1b]0;title\x07a\x1b]2;t\x1b\\b\r\n", "ab\n", ""},
		{"a hyperlink", "\x1b]8;;https://x.example\x1b\\text\x1b]8;;\x1b\\\n", "text [https://x.example]\n", ""},
		{"a link to a file", "\x1b]8;;file:///x\atext\x1b]8;;\a\n", "text\n", ""},
		{"other strings", "\x1bPq#0\x1b\\a\x1b_x\x1b\\b\x1b(Bc\x1b=d\n", "abcd\n", ""},
		{"progress", "10%\r50%\r100%\r\n", "100%\n", ""},
		{"progress that gets shorter", "downloading\rdone\x1b[K\r\n", "done\n", ""},
		{"written over without erasing", "downloading\rdone\r\n", "doneloading\n", ""},
		{"erased line", "working\x1b[2K\rdone\r\n", "done\n", ""},
		{"backspace", "abc\b\bX\r\n", "aXc\n", ""},
		{"backspaces over a wide character", "a端\b\bX\r\n", "aX\n", ""},
		{"columns", "a\x1b[5Gb\x1b[2Dc\x1b[3Cd\r\n", "a  cb  d\n", ""},
		{"a hostile column", "\x1b[99999999Gx\r\n", strings.Repeat(" ", 999) + "x\n", ""},
		{"tabs", "a\tb\n", "a       b\n", ""},
		{"blanks at the end", "a \nPassword: ", "a\n", "Password: "},
		{"other rows", "a\x1b[3;1H\x1b[2Jb\x1b[A", "a\nb\n", ""},
		{"control characters", "a\x00b\x07c\x7fd\x0ee\n", "abcde\n", ""},
		{"C1 controls, direction and tags", "a\u0086\u009b1mb\u202ec\u2066d\U000e0041e\u200f\n", "abcde\n", ""},
		{"a long line", strings.Repeat("x", 100_000) + "\n", strings.Repeat("x", 100_000) + "\n", ""},
	} {
		lines, last := acp.Plain(c.in)
		if lines != c.lines || last != c.last {
			t.Errorf("%s: %.200q gives %.200q and %.200q, want %.200q and %.200q", c.name, c.in, lines, last, c.lines, c.last)
		}
	}
}

// Output in pieces that end at characters gives the same text as the whole output, and
// the text has no control characters.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"10%\r\x1b[K50%\r\n", "\x1b]0;t\x07a\b\u202eb\x1b[3Dc", strings.Repeat("abc端", 900) + "\r\x1b[2C!\n"} {
		f.Add(s, uint8(1))
		f.Add(s, uint8(7))
	}
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		if !utf8.ValidString(in) {
			t.Skip("what comes is text")
		}
		lines, last := acp.Plain(in)
		var pieces []string
		for rest := in; rest != ""; {
			n := min(int(size)+1, len(rest))
			for !utf8.ValidString(rest[:n]) {
				n++
			}
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if l, r := acp.Plain(pieces...); l != lines || r != last {
			t.Errorf("in %d pieces %.200q gives %.200q and %.200q, at once %.200q and %.200q", len(pieces), in, l, r, lines, last)
		}
		if !utf8.ValidString(lines + last) {
			t.Errorf("%.200q gives %.200q, which is no text", in, lines+last)
		}
		for _, r := range lines + last {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Errorf("%.200q gives %q in %.200q", in, r, lines+last)
			}
		}
	})
}

func limitOf(n uint64) *uint64 { return &n }

func TestOutputLimit(t *testing.T) {
	for _, c := range []struct {
		name      string
		limit     *uint64
		ansi      bool
		in        []string
		want      string
		truncated bool
	}{
		{"nothing", nil, false, nil, "", false},
		{"no limit", nil, false, []string{"a\r\n", "b"}, "a\nb", false},
		{"zero", limitOf(0), false, []string{"a\r\n"}, "", true},
		{"zero of nothing", limitOf(0), false, nil, "", false},
		{"fits", limitOf(4), false, []string{"abc\r\n"}, "abc\n", false},
		{"from the front", limitOf(4), false, []string{"abcdef\r\n"}, "def\n", true},
		{"at a character", limitOf(5), false, []string{"端末\r\n"}, "末\n", true},
		{"within a line", limitOf(3), false, []string{"abcdef"}, "def", true},
		{"larger than int64", limitOf(1<<64 - 1), false, []string{"a"}, "a", false},
		{"with escape sequences", nil, true, []string{"\x1b[31mred\x1b[0m\r", "\nx\ry"}, "\x1b[31mred\x1b[0m\nx\ry", false},
		{"not within a sequence", limitOf(12), true, []string{"\x1b[31mred\x1b[0mand\r\n"}, "\x1b[0mand\n", true},
		{"erased in time", limitOf(4), false, []string{"abcdef\r\x1b[K"}, "", false},
	} {
		quoted, truncated := acp.Output(c.limit, c.ansi, c.in...)
		var got string
		if err := json.Unmarshal([]byte(quoted), &got); err != nil {
			t.Errorf("%s: %q: %v", c.name, quoted, err)
		}
		if got != c.want || truncated != c.truncated {
			t.Errorf("%s: %q, truncated %v, want %q, %v", c.name, got, truncated, c.want, c.truncated)
		}
	}
}

// The kept output is the end of the whole output, within the limit, and valid UTF-8.
func FuzzOutputLimit(f *testing.F) {
	f.Add("abc\r\n端末\x1b[1mx", uint16(5), false)
	f.Add("abc\r\n端末\x1b[1mx", uint16(5), true)
	f.Fuzz(func(t *testing.T, in string, limit uint16, ansi bool) {
		in = strings.ToValidUTF8(in, "")
		all, _ := acp.Output(nil, ansi, in)
		quoted, truncated := acp.Output(limitOf(uint64(limit)), ansi, in)
		var whole, got string
		if json.Unmarshal([]byte(all), &whole) != nil || json.Unmarshal([]byte(quoted), &got) != nil {
			t.Fatalf("no JSON: %.100q, %.100q", all, quoted)
		}
		if !strings.HasSuffix(whole, got) || len(got) > int(limit) || !utf8.ValidString(got) || truncated != (len(whole) > int(limit)) || !truncated && got != whole {
			t.Errorf("limit %d of %.200q: %.200q, truncated %v", limit, whole, got, truncated)
		}
	})
}

// Bars read as they do at each other interface.
func TestPlainBars(t *testing.T) {
	for _, b := range testkit.Bars {
		lines, last := acp.Plain(b.Output)
		if got := strings.TrimRight(lines+last, " \n"); got != strings.TrimRight(b.Text, "\n") {
			t.Errorf("%s: %q, want %q", b.Name, got, b.Text)
		}
	}
}
