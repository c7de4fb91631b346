package events

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// divide feeds output in pieces and returns the lines with their offsets, and the rest.
func divide(p []byte, pieces func() int) (lines []string) {
	var s splitter
	var r renderer
	s.begin(100)
	at := int64(100)
	for len(p) > 0 {
		n := min(max(1, pieces()), len(p))
		s.feed(at, p[:n], func(start int64, text []byte) {
			for len(text) > 0 {
				n := firstEnd(text)
				if n == 0 {
					panic("a run of lines does not end with one")
				}
				lines = append(lines, fmt.Sprintf("%d %s", start, r.text(text[:n])))
				start, text = start+int64(n), text[n:]
			}
		})
		at, p = at+int64(n), p[n:]
	}
	return append(lines, fmt.Sprintf("%d+ %s", s.start, r.text(s.part)))
}

// The bounds and the text of a line do not depend on the division of the output into pieces.
func TestLinesDoNotDependOnPieces(t *testing.T) {
	parts := []string{"ready\r\n", "a\x1b[31mb\x1b[0mc\n", "10%\r20%\r\x1b[K30% done\r\n", "x\x1b[2Ay", "\x1b[?1049h", "\x1b]0;title\x07z\n", "caf\u00e9\n", "\u202ehidden\n",
		"ab\bc\n", "tab\tstop\n", "\x1bMup\n", "\r", "\x1b[1;3H", "\n", "half", "\x00nul\n", "\xff\xfe\n", strings.Repeat("l", 500) + "\n"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b bytes.Buffer
		for range rnd.IntN(20) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		whole := divide(b.Bytes(), func() int { return 1 << 20 })
		for _, size := range []int{1, 2, 3, 7, 50} {
			if got := divide(b.Bytes(), func() int { return rnd.IntN(size) + 1 }); fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Fatalf("%q\nin pieces: %q\nwhole:     %q", b.Bytes(), got, whole)
			}
		}
	}
}

func TestTextOfLines(t *testing.T) {
	var r renderer
	for in, want := range map[string]string{
		"plain": "plain", "end  \r\n": "end", "\x1b[1;31merror\x1b[0m: x\n": "error: x", "er\x1b[0mror\n": "error", "10%\r20%\r\n": "20%", "long\rst\n": "stng", "long\r\x1b[Kst\n": "st",
		"a\tb\n": "a       b", "x\x1b[2Cy\n": "x  y", "\x1b]8;;http://x\x07link\x1b]8;;\x07\n": "link [http://x]", "\x1b]8;;file:///a\x07a\x1b]8;;\x07\n": "a",
		"\x1b[32mLocal\x1b[0m: \x1b]8;;http://x/\x1b\\http://x\x1b]8;;\x1b\\\n": "Local: http://x", "er\u200bror\n": "error", "na\u00efve\n": "na\u00efve", "\x1b[2Kclean\n": "clean",
		strings.Repeat("x", 5000): strings.Repeat("x", maxText), strings.Repeat("x", 1500) + "\x1b[Kend": strings.Repeat("x", 1500) + "end",
	} {
		if got := string(r.text([]byte(in))); got != want {
			t.Errorf("%.80q shows %.80q, want %.80q", in, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for text, literal := range map[string]string{
		`ready in \d+`: "ready in ", `(?i)error`: "", `error|warn`: "", `^\[(info)\] (server) up$`: "server", `ab`: "", `(abc)+`: "abc", `(abc)*`: "", `x{2}yyyy`: "yyyy",
	} {
		p, err := newPattern(text)
		if err != nil || string(p.literal) != literal {
			t.Errorf("%q: literal %q, %v; want %q", text, p.literal, err, literal)
		}
	}
	for _, text := range []string{"", "(", `\1`, strings.Repeat("a", maxPattern+1), `((a{100}){10}){10}`} {
		if _, err := newPattern(text); err == nil {
			t.Errorf("%.40q is taken", text)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\x1b[2Ab\r\nc\rd\x1b[31mx"), 3)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		if len(p) > maxRaw/2 {
			return
		}
		whole := divide(p, func() int { return 1 << 20 })
		if got := divide(p, func() int { return size%64 + 1 }); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("in pieces of %d: %q\nwhole: %q", size, got, whole)
		}
	})
}
