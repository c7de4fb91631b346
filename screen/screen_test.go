package screen_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tether/screen"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"lines", "$ npm run dev\r\nServer started on port 3000\r\n", "$ npm run dev\nServer started on port 3000\n"},
		{"a line without an end", "a\r\nPassword: ", "a\nPassword: "},
		{"an empty line between", "a\r\n\r\nb\r\n", "a\n\nb\n"},
		{"colours", "\x1b[1;31merror\x1b[0m: \x1b[38;5;12mfile\x1b[m\r\n", "error: file\n"},
		{"a progress line", "10%\r50%\r100%\r\ndone\r\n", "100%\ndone\n"},
		{"a shorter line over a longer one", "downloading\r\x1b[Kok\r\n", "ok\n"},
		{"progress on two lines", "a 10%\r\nb 10%\r\n\x1b[2Aa 99%\r\nb 99%\r\n", "a 99%\nb 99%\n"},
		{"backspace", "abd\bc\r\n", "abc\n"},
		{"tab stops", "a\tb\r\n", "a       b\n"},
		{"the bell and a title", "\a\x1b]0;title\a\x1b]2;other\x1b\\x\r\n", "x\n"},
		{"a link", "\x1b]8;;https://example.com\x1b\\text\x1b]8;;\x1b\\\r\n", "text\n"},
		{"a device control string", "\x1bP+q544e\x1b\\x\x1b_G\x1b\\y\r\n", "xy\n"},
		{"8-bit controls", "\u009b31mred\u009d0;t\u009c\u0090q\u009c!\r\n", "red!\n"},
		{"shell marks", "\x1b]133;A\a$ \x1b]133;B\als\r\n\x1b]133;C\ax\r\n\x1b]133;D;0\a", "$ ls\nx\n"},
		{"a screen that was cleared", "before\r\n\x1b[H\x1b[2Jafter\r\n", "before\nafter\n"},
		{"a reset", "before\r\n\x1bcafter\r\n", "before\nafter\n"},
		{"a full-screen program that ended", "a\r\n\x1b[?1049hEDITOR\x1b[?1049lb\r\n", "a\nb\n"},
		{"a full-screen program that runs", "a\r\n\x1b[?1049h\x1b[HEDITOR\x1b[3;1Hline", "a\nEDITOR\n\nline"},
		{"a line broken at the margin", strings.Repeat("x", 100) + "\r\ny\r\n", strings.Repeat("x", 100) + "\ny\n"},
		{"a long line that scrolled away", strings.Repeat("x", 100) + strings.Repeat("\r\n", 30) + "y", strings.Repeat("x", 100) + strings.Repeat("\n", 30) + "y"},
		{"wide characters at the margin", strings.Repeat("a", 79) + "界b\r\n", strings.Repeat("a", 79) + "界b\n"},
		{"combining characters", "e\u0301 n\u0303\r\n", "e\u0301 n\u0303\n"},
		{"too many of them", "e" + strings.Repeat("\u0301", 100) + "\r\n", "e" + strings.Repeat("\u0301", 8) + "\n"},
		{"one with nothing to combine with", "\u0301a\r\n", "a\n"},
		{"line drawing", "\x1b(0lqk\x1b(B\r\nlqk\r\n", "┌─┐\nlqk\n"},
		{"no UTF-8", "a\xffb\xc3(\r\n", "a\uFFFDb\uFFFD(\n"},
		{"half a character at the end", "a\xe4\xb8", "a"},
		{"half a sequence at the end", "a\x1b[3", "a"},
		{"DEL and NUL", "a\x7f\x00b\r\n", "ab\n"},
		{"directional overrides", "user\u202egnp.exe\u202c \u2066x\u2069\u200f\u061c\r\n", "usergnp.exe x\n"},
		{"tag characters", "hi\U000e0049\U000e0067\U000e006e\U000e006f\U000e007f\r\n", "hi\n"},
		{"variation selectors", "a\ufe0f\U000e0100b\r\n", "ab\n"},
		{"zero width", "a\u200b\u200c\u200d\u2060\ufeffb\u00ad\r\n", "ab\n"},
		{"line separators", "a\u2028b\u2029c\r\n", "abc\n"},
		{"fillers", "a\u3164\u115fb\r\n", "ab\n"},
		{"an insert mode", "bc\x1b[4h\ra\x1b[4l\r\n", "abc\n"},
		{"deleted and inserted lines", "a\r\nb\r\nc\x1b[2;1H\x1b[M\x1b[L\x1b[2;1Hx", "a\nx\nc\n"},
		{"a scrolling region", "top\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc\x1b[r", "top\nb\nc\n"},
		{"origin mode", "\x1b[3;5r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy", "\n\nx\n\ny"},
		{"no wrapping", "\x1b[?7l" + strings.Repeat("x", 100) + "y\r\n", strings.Repeat("x", 79) + "y\n"},
		{"repetition", "ab\x1b[3b\r\n\x1b[3b", "abbbb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := screen.Render([]byte(c.in), 80, 24); got != c.want {
				t.Errorf("%q\ngot  %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	s := screen.New(20, 4)
	s.Write([]byte("one\r\ntwo\r\nthree\r\nfour\r\nfive\x1b[2;3H"))
	if got, want := s.Text(), "two\nthree\nfour\nfive"; got != want {
		t.Errorf("the screen shows %q, want %q", got, want)
	}
	if col, row := s.Cursor(); col != 2 || row != 1 {
		t.Errorf("the cursor is at %d,%d, want 2,1", col, row)
	}
	s.Resize(3, 2)
	if got, want := s.Text(), "two\nthr"; got != want {
		t.Errorf("after it became smaller %q, want %q", got, want)
	}
	s.Resize(0, 100000)
	if cols, rows := s.Size(); cols != 1 || rows != 1000 {
		t.Errorf("size %dx%d, want the bounds", cols, rows)
	}
}

// Rows that no longer fit when the screen shrinks are not lost.
func TestResizeKeepsHistory(t *testing.T) {
	s := screen.New(20, 6)
	s.Write([]byte("a\r\nb\r\nc\r\nd"))
	s.Resize(20, 2)
	if got, _ := s.History(); got != "a\nb\nc\nd" || s.Text() != "c\nd" {
		t.Errorf("history %q, screen %q", got, s.Text())
	}
	s.Resize(20, 6)
	s.Write([]byte("\r\ne"))
	if got, _ := s.History(); got != "a\nb\nc\nd\ne" {
		t.Errorf("after it grew again: %q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := screen.New(80, 24)
	for i := range 100_000 {
		fmt.Fprintf(s, "line %d of many, with some text after it\r\n", i)
	}
	text, trimmed := s.History()
	if !trimmed || len(text) > 2*screen.MaxHistory+80*24 || len(text) < screen.MaxHistory/2 {
		t.Errorf("%d bytes, trimmed %t", len(text), trimmed)
	}
	if !strings.HasPrefix(text, "line ") || !strings.HasSuffix(text, "line 99999 of many, with some text after it\n") {
		t.Errorf("it begins with %.40q and ends with %q", text, text[len(text)-60:])
	}
	s.Keep(100)
	if text, trimmed := s.History(); !trimmed || len(text) > 100+80*24 {
		t.Errorf("after Keep: %d bytes, trimmed %t", len(text), trimmed)
	}
}

func TestPending(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{
		{"", 0}, {"abc", 0}, {"a\x1b", 1}, {"a\x1b[", 2}, {"a\x1b[31", 4}, {"a\x1b[31m", 0}, {"a\xe4\xb8", 2}, {"a世", 0},
		{"x\x1b]0;title", 9}, {"x\x1b]0;title\a", 0}, {"\x1b[31m\x1b[", 2}, {"\x1b(", 2},
	} {
		for _, whole := range []bool{true, false} {
			s := screen.New(80, 24)
			if whole {
				s.Write([]byte(c.in))
			} else {
				for i := range len(c.in) {
					s.Write([]byte{c.in[i]})
				}
			}
			if got := s.Pending(); got != c.want {
				t.Errorf("%q in one piece %t: %d bytes pending, want %d", c.in, whole, got, c.want)
			}
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\x1b[31mb\x07\r\n": "a[31mb", "x\u202ey\U000e0041": "xy", "a\xffb": "a\uFFFDb", "\u0085\u009b": "",
	} {
		if got := screen.Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got, want := screen.CleanLines("a\tb\r\n\x1b[31mc\u202e\n"), "a\tb\n[31mc\n"; got != want {
		t.Errorf("lines: %q, want %q", got, want)
	}
}

// No part of any stream reaches a reader without a terminal as a control, or costs more
// than its share.
func TestHostile(t *testing.T) {
	for _, in := range []string{
		"\x1b[999999999999999999999C.", "\x1b[" + strings.Repeat("9;", 1000) + "H", "\x1b[-1;-1Hx", "\x1b[1000S", "\x1b[65536bx",
		strings.Repeat("\x1b[1000S", 1000), strings.Repeat("x\x1b[65536b", 100), strings.Repeat("\x1b[1000;1000Hx\x1b[2J", 1000),
		strings.Repeat("\x1b]0;", 1000), strings.Repeat("\x1b[1000L\x1b[1000M", 1000), strings.Repeat("\x1b[1000@", 1000), strings.Repeat("\x1b[1000P", 1000),
		"\x1b[?1049h" + strings.Repeat("\x1b[?1049l\x1b[?1049h", 1000),
	} {
		for _, size := range [][2]int{{80, 24}, {1000, 1000}, {1, 1}} {
			text := screen.Render([]byte(in), size[0], size[1])
			if len(text) > 4*screen.MaxHistory {
				t.Errorf("%.40q on %v: %d bytes", in, size, len(text))
			}
			checkSafe(t, text)
		}
	}
}

// checkSafe fails for characters that text for a model must not contain.
func checkSafe(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%.80q is not UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r >= 0xe0000 && r <= 0xe0fff || r >= 0xfe00 && r <= 0xfe0f) {
			t.Errorf("%.80q holds %U", text, r)
			return
		}
	}
}

// FuzzScreen cuts a stream in two anywhere: the screen is the same. With any input, its
// text is safe.
func FuzzScreen(f *testing.F) {
	for _, s := range []string{
		"hello\r\nworld", "\x1b[31mred\x1b[m\r\n", "\x1b[2;3r\x1b[5;5Hx\x1b[?1049hy", "世界\xe4\xb8", "\x1b]8;;x\x1b\\y", "a\x1b[3bz\u0301", "\x9b31m", "\xc2\x9b2J\u202e",
		"\x1b(0qqq\x0f\x1b[4habc\x1b[2@", "\x1b[1;1H\x1b[0K\x1b[99L\x1b[99T",
	} {
		f.Add([]byte(s), uint8(3), uint8(10), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, at, cols, rows uint8) {
		one, two := screen.New(int(cols), int(rows)), screen.New(int(cols), int(rows))
		one.Write(data)
		cut := min(int(at), len(data))
		two.Write(data[:cut])
		two.Write(data[cut:])
		a, _ := one.History()
		b, _ := two.History()
		ac, ar := one.Cursor()
		bc, br := two.Cursor()
		if a != b || one.Text() != two.Text() || ac != bc || ar != br || one.Pending() != two.Pending() {
			t.Fatalf("%q cut at %d: %q, %q; %d,%d, %d,%d; pending %d, %d", data, cut, a, b, ac, ar, bc, br, one.Pending(), two.Pending())
		}
		late := screen.NewState(one.Size())
		late.Write(one.Replay())
		if c, r := late.Cursor(); !bytes.Equal(one.Replay(), two.Replay()) || late.Text() != one.Text() || c != ac || r != ar {
			t.Fatalf("%q cut at %d: replayed as %q, %q, which shows %q at %d,%d; want %q at %d,%d", data, cut, one.Replay(), two.Replay(), late.Text(), c, r, one.Text(), ac, ar)
		}
		if p := one.Pending(); p > len(data) || p < 0 {
			t.Fatalf("%q: %d bytes pending", data, p)
		}
		c, r := one.Size()
		if ac < 0 || ac >= c || ar < 0 || ar >= r {
			t.Fatalf("%q: the cursor is at %d,%d of %dx%d", data, ac, ar, c, r)
		}
		checkSafe(t, a)
		checkSafe(t, one.Text())
		one.Resize(int(rows), int(cols))
		one.Write(data)
		one.Replay()
		one.Resize(int(cols), int(rows))
		one.Advance(data)
		one.Replay()
		one.History()
	})
}

// A stream that goes on at the border that Pending names shows the same as one that was
// never cut, as long as it only prints lines.
func TestGoesOnAtBorder(t *testing.T) {
	data := []byte("one \x1b[1mtwo\x1b[0m 世界\r\nthree \x1b]8;;http://x\x1b\\four\x1b]8;;\x1b\\\r\n")
	want := screen.Render(data, 80, 24)
	for i := range data {
		a := screen.New(80, 24)
		a.Write(data[:i])
		border := i - a.Pending()
		got := screen.Render(data[:border], 80, 24) + screen.Render(data[border:], 80, 24)
		if got != want {
			t.Errorf("cut at %d, border %d: %q, want %q", i, border, got, want)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	for name, line := range map[string]string{
		"plain":    "a line of ordinary output from a build, eighty columns wide or nearly so\r\n",
		"coloured": "\x1b[32m✓\x1b[0m \x1b[1mtest\x1b[22m passed in \x1b[33m12ms\x1b[39m\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			data := bytes.Repeat([]byte(line), 64<<10/len(line))
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				screen.Render(data, 80, 24)
			}
		})
	}
}

func TestBeforeCursor(t *testing.T) {
	for _, c := range []struct{ name, tail, want string }{
		{"a prompt", "done\r\nName: ", "Name:"},
		{"text behind the cursor", "Name: default\x1b[7D", "Name:"},
		{"wide characters", "名前: abc\x1b[3D", "名前:"},
		{"combining characters", "Ne\u0301ve\u0301: abc\x1b[3D", "Ne\u0301ve\u0301:"},
		{"at the right margin", strings.Repeat("x", 20), strings.Repeat("x", 20)},
		{"an empty line", "text\r\n", ""},
		{"a line that scrolled up", "Name: \x1b[2A", ""},
	} {
		if got := screen.BeforeCursor([]byte(c.tail), 20, 4); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
