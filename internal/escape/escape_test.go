package escape_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"tether/internal/escape"
)

// text is the text that Scanner finds in pieces of a size.
func text(p []byte, size int) (out []byte) {
	var s escape.Scanner
	for piece := range slices.Chunk(p, size) {
		for len(piece) > 0 {
			kind, n := s.Token(piece)
			if kind == escape.Text {
				out = append(out, piece[:n]...)
			}
			piece = piece[n:]
		}
	}
	return out
}

func TestTextIsTheRest(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text", "a\tb\r\n\x07é", "a\tb\r\n\x07é"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"a private mode", "\x1b[?1049hfull", "full"},
		{"intermediate bytes", "\x1b[2 qbar\x1b(Bascii", "barascii"},
		{"a function of two bytes", "\x1bcnew\x1b7kept", "newkept"},
		{"a title, to BEL", "\x1b]2;title\x07x", "x"},
		{"a title, to ST", "\x1b]2;title\x1b\\x", "x"},
		{"a sequence that ends a title, as in xterm.js", "\x1b]2;ti\x1b[mtle\x1b\\x", "tlex"},
		{"a bell in device control", "\x1bPq\x07a\x1b\\x", "x"},
		{"a line feed in a cut sequence", "\x1b[31\nx\x1b\ny", "\nx\ny"},
		{"device control", "\x1bPq#0;2\x1b\\x\x1b_a\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\!", "xyz!"},
		{"ESC twice", "\x1b\x1b[mx", "x"},
		{"a character after ESC", "\x1bécole", "école"},
		{"a character within a sequence", "\x1b[é1mx", "x"},
		{"a sequence within a sequence, as when a program is killed", "\x1b[31\x1b[0mx", "x"},
		{"a string within a sequence", "\x1b[\x1b]2;title\x07x", "x"},
		{"cancelled sequences", "\x1b[3\x18a\x1b]2;t\x1ab\x1bPx\x1b\x18c\x1b\x18d", "abcd"},
		{"a string that does not end", "\x1b]2;title", ""},
		{"a sequence that does not end", "a\x1b[31", "a"},
	} {
		if got := string(text([]byte(c.in), 100)); got != c.want {
			t.Errorf("%s: %q of %q, want %q", c.name, got, c.in, c.want)
		}
	}
}

func TestParamsOfAControl(t *testing.T) {
	var s escape.Scanner
	var got []string
	for _, c := range []byte("a\x1b[1;2Hb\x1b[?25l\x1b[K\x1b]2;t\x07\x1b[" + string(bytes.Repeat([]byte("9"), 1000)) + "C") {
		if s.Next(c) == escape.Control {
			got = append(got, fmt.Sprintf("%s %c", s.Params(), c))
		}
	}
	want := []string{"1;2 H", "?25 l", " K", string(bytes.Repeat([]byte("9"), 64)) + " C"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("controls %q, want %q", got, want)
	}
}

func TestComplete(t *testing.T) {
	for in, want := range map[string]int{
		"\x1b[m": 3, "\x1b[1;31mred": 7, "\x1b[38:2::1:2:3mx": 14, "\x1b[?1049h": 8, "\x1b[>c": 4, "\x1b[1;31": 0, "\x1b[": 0, "\x1b": 0, "": 0,
		"\x1b[1?m": 0, "\x1b[??1h": 0, "\x1b[ q": 0, "\x1b[\x00m": 0, "\x1b[\x7fm": 0, "\x1b[1\x1b[m": 0, "\x1b]m": 0, "\x1bM": 0, "x\x1b[m": 0, "\x1b[é": 0,
	} {
		if got := escape.Complete([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestNextC1(t *testing.T) {
	const text = "é \u00a0\u0080x\u009f\xc2"
	for from, want := range map[int]int{0: 5, 5: 5, 6: 8, 9: 11, 11: 11} {
		if got := escape.NextC1([]byte(text), from); got != want {
			t.Errorf("from %d: %d, want %d", from, got, want)
		}
	}
}

// A sequence is under way from ESC to its last byte.
func TestOutside(t *testing.T) {
	var s escape.Scanner
	if !s.Outside() {
		t.Error("inside before the first byte")
	}
	for i, c := range []byte("\x1b[31m") {
		if s.Next(c); s.Outside() != (i == 4) {
			t.Errorf("after byte %d: outside is %v", i, s.Outside())
		}
	}
}

// A complete sequence is one token.
func FuzzComplete(f *testing.F) {
	for _, seed := range []string{"\x1b[1;31mred", "\x1b[?25l", "\x1b[1\x18", "\x1b[12"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var s escape.Scanner
		if n := escape.Complete(p); n > 0 {
			if kind, size := s.Token(p); kind != escape.Control || size != n {
				t.Errorf("%q: %d bytes, but the token is %v of %d", p, n, kind, size)
			}
		}
	})
}

// Text passes unchanged, after any removed sequence, and removing sequences twice changes
// nothing.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "a\x1b[1mb", "\x1b]0;t\x07é", "\x1bé", "\x1b\x1b", "\x1b[\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		once := text(p, 1000)
		if twice := text(once, 1000); !bytes.Equal(once, twice) {
			t.Errorf("%q of %q has sequences: %q", once, p, twice)
		}
		if bytewise := text(p, 1); !bytes.Equal(once, bytewise) {
			t.Errorf("%q of %q, byte by byte %q", once, p, bytewise)
		}
		if bytes.IndexByte(once, 0x1b) >= 0 {
			t.Errorf("%q of %q has an ESC", once, p)
		}
		if plain := append([]byte("\x1b[0m"), bytes.ReplaceAll(p, []byte{0x1b}, nil)...); !bytes.Equal(text(plain, 1000), plain[4:]) {
			t.Errorf("%q of %q: not all text", text(plain, 1000), plain)
		}
	})
}
