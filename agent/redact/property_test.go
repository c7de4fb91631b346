package redact_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// pieces are the parts of random text.
func pieces(t testing.TB, random *rand.Rand) []string {
	all := []string{
		"plain text\r\n", "é", "🙂 ", "\x1b[31mred\x1b[0m", "\x1b", "]", "\x1b[", "5i", "\a", "\x1b\\", "\x18", "\u009c", "\u009d", "\x1b]8;;https://x\a", "\x1b]8;;file:x\a",
		"\x1b]2;title\a", "\x1b]52;c;aGk=\a", "\x1bPq~~\x1b\\", "\x1bP$qm\x1b\\", "\x1b_Ga=T;AAAA\x1b\\", "\x1b]1337;File=inline=1:AAAA\a", "\x1b_", "\x1b^", "\x1bZ", "\x00",
		"hunter2-", "value", "hunter2-value", "corp-123456", "corp-", "sk-", "ghp_", "eyJ", ".", " ", "x", "://u:", "pass@", strings.Repeat("long ", 300), "\x1b[" + strings.Repeat("1;", 505), strings.Repeat("A", 3000),
		"-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "s", "g", "-",
	}
	for _, form := range redact.TokenForms() {
		all = append(all, made(t, form[1], random))
	}
	return all
}

// floods use up each allowance.
var floods = []string{strings.Repeat("\x1b]2;t\a", 250), strings.Repeat("\x1b[23t", 250), strings.Repeat("\x1b]9;t\a", 4)}

func randomText(random *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range random.IntN(60) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// Any division of the text into calls gives the same result, and output never changes
// later.
func TestSplitIndependence(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	r := compile(t, redact.Options{Tokens: true, Images: 50, Patterns: []string{`corp-[0-9]{6}`, `A{20,}`}}, "hunter2-value")
	all := append(pieces(t, random), floods...)
	for range testkit.Rounds(t, testkit.Load(80, 20), 100_000) {
		text := randomText(random, all)
		whole := inPieces(t, r, text, func(rest string) int { return len(rest) })
		for range 4 {
			if got := inPieces(t, r, text, randomCut(random)); got != whole {
				t.Fatalf("%q\nis shown as %q\nin pieces  as %q", text, whole, got)
			}
		}
		check(t, r, text, whole)
	}
}

// check tests the invariants of any output.
func check(t testing.TB, r *redact.Rules, text, got string) {
	t.Helper()
	if len(got) != len(text) {
		t.Fatalf("%d bytes are shown as %d", len(text), len(got))
	}
	if !utf8.ValidString(got) {
		t.Fatalf("%q is shown as invalid %q", text, got)
	}
	if again := shown(r, got); strings.Contains(got, "hunter2-value") {
		t.Fatalf("%q is shown as %q, then %q", text, got, again)
	}
	if n := strings.Count(got, "\x1b]2;"); n > 600 {
		t.Fatalf("%q is shown with %d titles", text, n)
	}
	for _, never := range []string{"\x1b]52", "\x1b^", "\x1bX", "\x1bZ", "\x1b]8;;file", "\x1b[5i"} {
		if strings.Contains(got, never) {
			t.Fatalf("%q is shown as %q, which has %q", text, got, never)
		}
	}
}

func FuzzFilter(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	all := append(pieces(f, random), floods...)
	for range 20 {
		f.Add(randomText(random, all), uint64(random.Uint32()))
	}
	r := compile(f, redact.Options{Tokens: true, Images: 50, Patterns: []string{`corp-[0-9]{6}`, `A{20,}`}}, "hunter2-value")
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if !utf8.ValidString(text) {
			return
		}
		whole := inPieces(t, r, text, func(rest string) int { return len(rest) })
		if got := inPieces(t, r, text, randomCut(rand.New(rand.NewPCG(seed, 1)))); got != whole {
			t.Fatalf("%q\nis shown as %q\nin pieces  as %q", text, whole, got)
		}
		check(t, r, text, whole)
	})
}

// At a place where a filter is at rest, a new filter continues with the same result.
func TestAtRest(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	r := compile(t, redact.Options{Tokens: true, Images: 1 << 30}, "hunter2-value")
	all := pieces(t, random)
	for range testkit.Rounds(t, testkit.Load(80, 40), 50_000) {
		text := randomText(random, all)
		whole := inPieces(t, r, text, func(rest string) int { return len(rest) })
		f, at := redact.NewFilter(r, 0), 0
		for at < len(text) && !(at > len(text)/2 && f.AtRest()) {
			n := 1
			for at+n < len(text) && !utf8.RuneStart(text[at+n]) {
				n++
			}
			f.Feed([]byte(text[at : at+n]))
			at += n
		}
		if got := shown(r, text[at:]); at < len(text) && got != whole[at:] {
			// A new filter cannot see a word that began before it.
			if strings.ContainsAny(text[at-1:at], " \n\x1b\\") {
				t.Fatalf("%q\nis shown as %q\nfrom %d on as %q", text, whole, at, got)
			}
		}
	}
}
