package plain_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tether/internal/plain"
	"tether/internal/testkit"
)

// divide writes output in pieces and returns the lines with their offsets, and the rest.
func divide(p []byte, pieces func() int) (lines []string) {
	var l plain.Lines
	var r plain.Renderer
	l.Spill = func(text []byte) { lines = append(lines, "spill "+string(text)) }
	l.Begin(100)
	at := int64(100)
	for len(p) > 0 {
		n := min(max(1, pieces()), len(p))
		l.Write(at, p[:n], func(start, _ int64, raw []byte) { lines = append(lines, fmt.Sprintf("%d %s", start, r.Text(raw))) })
		at, p = at+int64(n), p[n:]
	}
	return append(lines, fmt.Sprintf("%d+ %s", l.Start, r.Unfinished(l.Part)))
}

// The bounds and the text of a line do not depend on the division of the output into
// pieces.
func TestLinesDoNotDependOnPieces(t *testing.T) {
	parts := []string{"ready\r\n", "a\x1b[31mb\x1b[0mc\n", "10%\r20%\r\x1b[K30% done\r\n", "x\x1b[2Ay", "\x1b[?1049h", "\x1b]0;title\x07z\n", "caf\u00e9\n", "\u202ehidden\n",
		"ab\bc\n", "tab\tstop\n", "\x1bMup\n", "\r", "\x1b[1;3H", "\n", "half", "\x00nul\n", "\xff\xfe\n", strings.Repeat("l", 500) + "\n", "\x1b7", "\x1b8", "\x1b[5", "\x1b]0;t"}
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

// A line whose output is longer than is kept shows the same.
func TestLongLines(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a spinner", "Solving: |" + strings.Repeat("\b/\b-\b\\\b|", 9000) + "\bdone", "Solving: done"},
		{"a bar", strings.Repeat("\r\x1b[K\x1b[32m50%\x1b[0m of 端末", 9000) + "\n", "50% of 端末"},
		{"a bar that grows", strings.Repeat("\x1b[1m#\x1b[0m", 800) + strings.Repeat("\x1b[m", 9000) + "!", strings.Repeat("#", 800) + "!"},
		{"cut within a sequence", strings.Repeat("x\x1b[1;2;3m\b", 5000) + "\n", "x"},
		{"a title without an end", "a\x1b]0;" + strings.Repeat("t", 100_000), "a"},
		{"and with one", "a\x1b]0;" + strings.Repeat("t", 100_000) + "\x07b\n", "ab"},
	} {
		if got := divide([]byte(c.in), func() int { return 37 }); len(got) == 0 || !strings.HasSuffix(got[0], " "+c.want) {
			t.Errorf("%s: %.300q, want %.300q", c.name, got, c.want)
		}
	}
	long := strings.Repeat("0123456789", 10_000)
	var text strings.Builder
	for _, piece := range divide([]byte(long), func() int { return 1000 }) {
		_, piece, _ := strings.Cut(piece, " ")
		text.WriteString(piece)
	}
	if text.String() != long {
		t.Errorf("a long line has %d bytes, want %d", text.Len(), len(long))
	}
}

func TestText(t *testing.T) {
	var r plain.Renderer
	for in, want := range map[string]string{
		"plain": "plain", "end  \r\n": "end", "\x1b[1;31merror\x1b[0m: x\n": "error: x", "er\x1b[0mror\n": "error", "10%\r20%\r\n": "20%", "long\rst\n": "stng", "long\r\x1b[Kst\n": "st",
		"a\tb\n": "a       b", "x\x1b[2Cy\n": "x  y", "\x1b]8;;http://x\x07link\x1b]8;;\x07\n": "link", "er\u200bror\n": "error", "na\u00efve\n": "na\u00efve", "\x1b[2Kclean\n": "clean",
		strings.Repeat("x", 1500) + "\x1b[Kend": strings.Repeat("x", 1500) + "end", "é\tx\n": "é       x", "端\tx\n": "端      x", "up\x1b[2J": "up", "up\x1b[3A": "up",
		"a\u009b31mb\n": "ab", "\x1b[31": "", "a端\b\bX\n": "aX", "\x1b(0lqk\x1b(B\n": "┌─┐", "a\x07\x00b\x7f\n": "ab", "a\x1b7b\x1b8c\n": "ac",
	} {
		if got := string(r.Text([]byte(in))); got != want {
			t.Errorf("%.80q shows %.80q, want %.80q", in, got, want)
		}
	}
	r = plain.Renderer{Tabs: true, Links: true}
	for in, want := range map[string]string{
		"\x1b[1ma\x1b[0m\tb\n": "a\tb", "端\tb": "端\tb", "\x1b]8;;http://x\x07link\x1b]8;;\x07\n": "link [http://x]", "\x1b]8;;file:///a\x07a\x1b]8;;\x07\n": "a",
		"\x1b[32mLocal\x1b[0m: \x1b]8;;http://x/\x1b\\http://x\x1b]8;;\x1b\\\n": "Local: http://x",
	} {
		if got := string(r.Text([]byte(in))); got != want {
			t.Errorf("%.80q shows %.80q, want %.80q", in, got, want)
		}
	}
}

// What a line shows does not depend on the lines before, however many and short they are.
func TestLinesDoNotDependOnEachOther(t *testing.T) {
	var r plain.Renderer
	for i, in := range slices.Repeat([]string{"ab\rx", "\x1b[20h\b", "\x1b(0\b", "a\vb"}, 10_000) {
		if got, want := string(r.Text([]byte(in))), []string{"xb", "", "", "a  b"}[i%4]; got != want {
			t.Fatalf("line %d, %q, shows %q, want %q", i, in, got, want)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\x1b[2Ab\r\nc\rd\x1b[31mx"), 3)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		if len(p) > plain.MaxRaw {
			return
		}
		whole := divide(p, func() int { return 1 << 20 })
		if got := divide(p, func() int { return size%64 + 1 }); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Fatalf("in pieces of %d: %q\nwhole: %q", size, got, whole)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, line := range map[string]string{
		"plain": "a line of ordinary output from a build, eighty columns wide or nearly so\r\n", "coloured": "\x1b[32m✓\x1b[0m \x1b[1mtest\x1b[22m passed in \x1b[33m12ms\x1b[39m\r\n",
		"drawn": "\r\x1b[K 45%|████▌     | 45/100 [00:04<00:05, 9.89it/s]\r\x1b[K100%|██████████| 100/100\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(strings.Repeat(line, 1000))
			b.SetBytes(int64(len(data)))
			var l plain.Lines
			var r plain.Renderer
			for b.Loop() {
				l.Write(0, data, func(_, _ int64, raw []byte) { r.Text(raw) })
			}
		})
	}
}

// TestBars has its like at each interface.
func TestBars(t *testing.T) {
	for _, b := range testkit.Bars {
		var l plain.Lines
		var r plain.Renderer
		var lines []string
		add := func(_, _ int64, raw []byte) {
			if text := string(r.Text(raw)); text != "" || bytes.HasSuffix(raw, []byte{'\n'}) {
				lines = append(lines, text)
			}
		}
		l.Write(0, []byte(b.Output), add)
		add(0, 0, l.Part)
		if got := strings.Join(lines, "\n"); got != b.Text {
			t.Errorf("%s:\n%q, want\n%q", b.Name, got, b.Text)
		}
	}
}
