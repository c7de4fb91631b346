package plain_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tether/internal/plain"
)

// oneByOne is the text of a line for each line that Lines finds in the output.
func oneByOne(output []byte) (all []string) {
	var l plain.Lines
	r := plain.Renderer{Tabs: true}
	l.Begin(0)
	spilled := ""
	l.Spill = func(text []byte) { spilled += string(text) }
	l.Write(0, output, func(_, _ int64, raw []byte) {
		all = append(all, spilled+string(r.Text(raw)))
		spilled = ""
	})
	if rest := spilled + string(r.Text(l.Part)); rest != "" {
		all = append(all, rest)
	}
	return all
}

func inBulk(b *plain.Bulk, output []byte) (all []string) {
	text := string(b.Text(output, nil))
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimRight(line, " \r\n"))
	}
	if n := len(all); n > 0 && all[n-1] == "" && !strings.HasSuffix(text, "\n") {
		all = all[:n-1]
	}
	return all
}

// A search in bulk sees the lines that are shown one by one.
func TestBulk(t *testing.T) {
	parts := []string{"ready\r\n", "a\x1b[31mb\x1b[0mc\n", "10%\r20%\r\x1b[K30% done\r\n", "x\x1b[2Ay", "\x1b[?1049h", "caf\u00e9\n", "\u202ehidden\n", "ok \u2713\n", "ab\bc\n", "tab\tstop\n",
		"\r", "\x1b[1;3H", "\n", "half", "\x00nul\n", "\xff\xfe\n", strings.Repeat("l", 500) + "\n", "\x1b[5", "\x1b[2Kx\n", "\x1b[38;5;1mred\x1b[m ", "na\u0303o\n", "\x7f"}
	rnd := rand.New(rand.NewPCG(3, 4))
	var b, again plain.Bulk
	for range 3000 {
		var in bytes.Buffer
		for range rnd.IntN(20) {
			in.WriteString(parts[rnd.IntN(len(parts))])
		}
		if got, want := inBulk(&b, in.Bytes()), oneByOne(in.Bytes()); !slices.Equal(got, want) {
			t.Fatalf("%q\nin bulk:    %q\none by one: %q", in.Bytes(), got, want)
		}
		text := b.Text(in.Bytes(), nil)
		if got, want := b.Line(text, len(text)), bytes.Count(in.Bytes(), []byte{'\n'}); got != want {
			t.Fatalf("%q has %d lines in %q, want %d", in.Bytes(), got, text, want)
		}
		if got := again.Text(in.Bytes(), b.Drawn); !bytes.Equal(got, text) || again.Line(got, len(got)) != b.Line(text, len(text)) || len(again.Drawn) > 0 {
			t.Fatalf("%q with known lines has %d lines in %q, and %q without", in.Bytes(), again.Line(got, len(got)), got, text)
		}
	}
}

func BenchmarkBulk(b *testing.B) {
	for name, line := range map[string]string{
		"plain":    "a line of ordinary output from a build, eighty columns wide or nearly so\r\n",
		"coloured": "\x1b[32m✓\x1b[0m \x1b[1mtest\x1b[22m passed in \x1b[33m12ms\x1b[39m\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			output := bytes.Repeat([]byte(line), 1000)
			b.SetBytes(int64(len(output)))
			var bulk plain.Bulk
			for b.Loop() {
				bulk.Text(output, nil)
			}
		})
	}
}
