package events

import (
	"bytes"
	"strings"
	"testing"

	"tether/internal/plain"
	"tether/internal/testkit"
)

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

// Bars read as they do at each other interface.
func TestBars(t *testing.T) {
	for _, b := range testkit.Bars {
		var split plain.Lines
		var r plain.Renderer
		var lines []string
		see := func(_, _ int64, raw []byte) {
			if text := visible(&r, raw); len(text) > 0 || bytes.HasSuffix(raw, []byte{'\n'}) {
				lines = append(lines, string(text))
			}
		}
		split.Write(0, []byte(b.Output), see)
		see(0, 0, split.Part)
		if got := strings.Join(lines, "\n"); got != b.Text {
			t.Errorf("%s: %q, want %q", b.Name, got, b.Text)
		}
	}
}
