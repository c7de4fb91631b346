package redact_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit/must"
	"tether/screen"
)

// safely returns text as a person's own terminal gets it, in pieces of the size that next
// returns.
func safely(o redact.Options, text string, next func() int) string {
	s := redact.NewSafe(o)
	var out []byte
	for len(text) > 0 {
		n := min(max(next(), 1), len(text))
		out = s.Append(out, []byte(text[:n]))
		text = text[n:]
	}
	return string(s.End(out))
}

func whole() int { return 1 << 30 }

// Every sequence that draws reaches the person's own terminal unchanged, and no other
// does, in any division.
func TestSafeSequences(t *testing.T) {
	table := must.Get(os.ReadFile("testdata/sequences.txt"))(t)
	o := redact.Options{Images: 1 << 20}
	for line := range strings.Lines(string(table)) {
		fields := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 3)
		if len(fields) < 3 {
			continue
		}
		sequence, err := strconv.Unquote(`"` + strings.NewReplacer(`\"`, `\"`, `"`, `\"`).Replace(fields[2]) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		text := "a" + sequence + "z"
		got := safely(o, text, whole)
		if passes := got == text; passes != (fields[0] == "pass") {
			t.Errorf("%s: %q is shown as %q", fields[1], text, got)
		}
		if !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "z") {
			t.Errorf("%s: of %q, text is missing in %q", fields[1], text, got)
		}
		for size := 1; size < 6; size++ {
			if again := safely(o, text, func() int { return size }); again != got {
				t.Errorf("%s: in pieces of %d: %q is shown as %q, want %q", fields[1], size, text, again, got)
			}
		}
	}
}

func TestSafe(t *testing.T) {
	for _, c := range []struct {
		name     string
		o        redact.Options
		in, want string
	}{
		{"clipboard", redact.Options{}, "a\x1b]52;c;eA==\ab", "ab"},
		{"questions", redact.Options{}, "a\x1b[c\x1b[6n\x05\x1b]11;?\a\x1bP+q544e\x1b\\b", "ab"},
		{"bytes that are no UTF-8", redact.Options{}, "a\xffb\xe2\x82", "a\ufffdb\ufffd\ufffd"},
		{"strings leave no filler", redact.Options{}, "a\x1b]1337;Copy=:x\ab\x1b_secret\x1b\\c", "a\x1b\x1b\\b\x1b\x1b\\c"},
		{"a link to a file", redact.Options{FileLinks: true}, "\x1b]8;;file:///x\a", "\x1b]8;;file:///x\a"},
		{"bells", redact.Options{}, "a\a", "a\a"},
		{"no bells", redact.Options{Silent: true}, "a\ab\x1b[\a1mc\x1b]0;t\ad\x1b(\aBe", "ab\x1b[1mc\x1b]0;t\ad\x1b(Be"},
		{"no notifications", redact.Options{Silent: true}, "\x1b]9;x\a\x1b]777;notify;a;b\a\x1b]9;4;1;5\a", "\x1b\x1b\\\x1b\x1b\\\x1b]9;4;1;5\a"},
		{"an open sequence", redact.Options{}, "a\x1b[6", "a\x1b[6\x18"},
		{"an open string", redact.Options{Images: 100}, "a\x1bPq~~", "a\x1bPq~~\x1b\\"},
		{"an open question", redact.Options{}, "a\x1b]52;c;ZX", "a"},
	} {
		for size := 1; size < 8; size++ {
			if got := safely(c.o, c.in, func() int { return size }); got != c.want {
				t.Errorf("%s: in pieces of %d: %q is shown as %q, want %q", c.name, size, c.in, got, c.want)
			}
		}
	}
}

// A Safe that is at rest does the same as a new one. Whatever was printed, the terminal
// is in no sequence at the end.
func TestSafeAtRest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	pieces := []string{"text", "é", "\x1b", "[", "]", "6n", "52;c;", "\x1b[31m", "\a", "\x1b\\", "\x18", "\x1bP", "q", "\u009b", "\xc2", "8;;http://x", "\x1b_G", "\x05", "1337;File=inline=1:"}
	for range 20_000 {
		var text string
		for range rng.IntN(12) {
			text += pieces[rng.IntN(len(pieces))]
		}
		s := redact.NewSafe(redact.Options{})
		out := s.Append(nil, []byte(text))
		const more = "x\x1b[1my\x1b[c"
		if s.AtRest() {
			if got, want := string(s.End(s.Append(nil, []byte(more)))), safely(redact.Options{}, more, whole); got != want {
				t.Fatalf("%q is at rest, and then %q is shown as %q, not as %q", text, more, got, want)
			}
			continue
		}
		sc := screen.NewState(80, 24)
		sc.Write(s.End(out))
		if sc.Pending() > 0 {
			t.Fatalf("%q ends in a sequence: %q", text, safely(redact.Options{}, text, whole))
		}
	}
}
