package output_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host/output"
	"tether/internal/jsonspan"
	"tether/internal/testkit/must"
)

// suffix tells whether short is the tail of long: the same parts from the back, except
// that the first of short may lack the beginning of its text.
func suffix(long, short []ahp.ContentPart) error {
	if len(short) > len(long) {
		return fmt.Errorf("%d parts of %d", len(short), len(long))
	}
	long = long[len(long)-len(short):]
	for i := range short {
		l, s := long[i], short[i]
		if i == 0 {
			text := s.Text()
			if !strings.HasSuffix(l.Text(), text) {
				return fmt.Errorf("the first part %.60q is no tail of %.60q", text, l.Text())
			}
			l.Value, l.Output, s.Value, s.Output = "", "", "", ""
		}
		if diff := cmp.Diff(l, s); diff != "" {
			return fmt.Errorf("part %d of %d: %s", i, len(short), diff)
		}
	}
	return nil
}

func textOf(parts []ahp.ContentPart) string { return ahp.TerminalState{Content: parts}.Text() }

// mirror is a content next to the state that the reducer makes of the same actions.
type mirror struct {
	content *output.Content
	state   ahp.TerminalState
	n       int // commands
}

func (m *mirror) text(s string, shared bool) {
	m.content.Text(s, shared)
	if s != "" {
		m.state = ahp.ReduceTerminal(m.state, ahp.TerminalData{Data: s})
	}
}

func (m *mirror) act(a ahp.Action) {
	m.content.Act(a)
	m.state = ahp.ReduceTerminal(m.state, a)
}

// step performs one action, chosen by op.
func (m *mirror) step(op byte, text string) {
	switch op % 8 {
	case 0:
		m.n++
		m.act(ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(m.n), CommandLine: text, Timestamp: int64(m.n)})
	case 1:
		code, ms := int64(op), float64(op)/3
		m.act(ahp.TerminalCommandFinished{CommandID: fmt.Sprint(m.n), ExitCode: &code, DurationMs: &ms})
	case 2:
		if op >= 250 {
			m.act(ahp.TerminalCleared{})
		}
	case 3:
		m.text(strings.Repeat(text, 1+int(op)), true)
	default:
		m.text(text, op%2 == 0)
	}
}

// check compares the content with the reducer's state, whole and for a few tails.
func (m *mirror) check(limit int) error {
	kept, real, _ := m.content.Sizes()
	if kept != real {
		return fmt.Errorf("cost is kept as %d, is %d", kept, real)
	}
	if kept > limit {
		return fmt.Errorf("cost is %d, limit %d", kept, limit)
	}
	for _, max := range []int{limit, limit / 3, 7} {
		parts, from, err := m.content.View(max)
		if err != nil {
			return err
		}
		if err := suffix(m.state.Content, parts); err != nil {
			return fmt.Errorf("view of %d: %w", max, err)
		}
		_, _, end := m.content.Sizes()
		if n := len(textOf(parts)); end-from != int64(n) {
			return fmt.Errorf("view of %d: from %d to %d are not %d bytes", max, from, end, n)
		}
	}
	return nil
}

func FuzzContent(f *testing.F) {
	f.Add(uint16(1000), []byte("hello\r\n\x00\x01\x03\x04wörld"))
	f.Add(uint16(64), []byte{0, 1, 2, 3, 250, 4, 3, 3, 255, 3, 251})
	f.Add(uint16(4000), []byte(strings.Repeat("\x03a line of text\n\x00\x04\x01", 40)))
	f.Fuzz(func(t *testing.T, limit uint16, script []byte) {
		limit = max(limit, 600) // a command part alone may cost this much
		m := mirror{content: output.NewContent(int(limit))}
		for len(script) > 0 {
			op := script[0]
			n := min(len(script)-1, int(op%17))
			m.step(op, strings.ToValidUTF8(string(script[1:1+n]), "\ufffd"))
			script = script[1+n:]
			must.Do(t, m.check(int(limit)))
		}
	})
}

func TestContentIsATailOfTheReducersText(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 600 + random.IntN(20_000)
		m := mirror{content: output.NewContent(limit)}
		for i := range 120 {
			text := strings.Repeat("zeile 界 \x1b[31m\"x\\", random.IntN(3)) + strings.Repeat("\n", random.IntN(3))
			m.step(byte(random.UintN(256)), text)
			if err := m.check(limit); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
	}
}

func TestContentIsCutAtTheStartOfALine(t *testing.T) {
	c := output.NewContent(2000)
	for i := range 1000 {
		c.Text(fmt.Sprintf("line %d\n", i), false)
	}
	parts, _, err := c.View(2000)
	must.Do(t, err)
	text := textOf(parts)
	if !strings.HasPrefix(text, "line ") || !strings.HasSuffix(text, "line 999\n") || len(text) < 1000 || len(text) > 2000 {
		t.Errorf("kept %d bytes, %.30q…, want 1000 to 2000 from the start of a line to the end", len(text), text)
	}
}

func TestContentBoundsEmptyCommands(t *testing.T) {
	c := output.NewContent(10_000)
	for i := range 100_000 {
		c.Act(ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(i), CommandLine: "true"})
	}
	parts, _, err := c.View(10_000)
	if err != nil || len(parts) > 200 || len(parts) < 50 {
		t.Errorf("%d parts, %v; want 50 to 200", len(parts), err)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\ude00"`, "\"\xff\"", `"\u001b[1m\n\\ud83d"`, `"界"`, `"`, `"\x"`} {
		f.Add([]byte(seed), []byte(`"\ude00tail"`), uint8(2))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, cut uint8) {
		clean, size, err := output.CleanText(a)
		want, wantErr := jsonspan.AppendUnquote(nil, a)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, decoding says %v", a, err, wantErr)
		}
		if err != nil {
			return
		}
		got, err := jsonspan.AppendUnquote(nil, clean)
		if err != nil || string(got) != string(want) || size != len(want) || !utf8.Valid(clean) {
			t.Fatalf("%q became %q (%v), size %d; want the text %q and %d", a, clean, err, size, want, len(want))
		}
		if other, _, err := output.CleanText(b); err == nil {
			joined := append(append([]byte(nil), clean[:len(clean)-1]...), other[1:]...)
			both, err := jsonspan.AppendUnquote(nil, joined)
			second, _ := jsonspan.AppendUnquote(nil, other)
			if err != nil || string(both) != string(want)+string(second) {
				t.Fatalf("%q and %q side by side decode to %q, want %q", clean, other, both, string(want)+string(second))
			}
		}
		if n := int(cut); n < len(want) {
			rest, left := output.SkipText(clean, n)
			text, _ := jsonspan.AppendUnquote(nil, rest)
			if !strings.HasSuffix(string(want), string(text)) || left != len(text) || len(want)-left < n || len(want)-left > n+3 {
				t.Fatalf("%d bytes dropped from %q leave %q (%d)", n, want, text, left)
			}
		}
	})
}
