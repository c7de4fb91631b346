package redact_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// naive redacts a text in the plainest way: each form of each value, each known token at
// each place, each expression over the whole text. It first removes complete colour
// sequences, the only ones that it knows. It is for whole texts in which no secret
// continues behind a line's end.
type naive struct {
	forms    []string         // of values
	tokens   []*regexp.Regexp // by their index in redact.TokenForms
	patterns []*regexp.Regexp
}

func newNaive(values, patterns []string) *naive {
	n := &naive{}
	for _, v := range values {
		n.forms = append(n.forms, redact.FormsOf(v)...)
	}
	for _, form := range redact.TokenForms() {
		n.tokens = append(n.tokens, regexp.MustCompile(`^(?:`+form[1]+`)`))
	}
	for _, p := range append(redact.Contexts(), patterns...) {
		n.patterns = append(n.patterns, regexp.MustCompile(p))
	}
	return n
}

func (n *naive) shown(coloured string) string {
	var text string
	var at []int // by index in text: that in coloured
	seam, from := map[int]bool{}, 0
	for _, m := range append(colour.FindAllStringIndex(coloured, -1), []int{len(coloured), len(coloured)}) {
		for ; from < m[0]; from++ {
			text, at = text+coloured[from:from+1], append(at, from)
		}
		from = m[1]
		seam[len(text)] = true
	}
	secret := make([]bool, len(text))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			secret[i] = true
		}
	}
	for i := range text {
		for _, form := range n.forms {
			if strings.HasPrefix(text[i:], form) {
				hide(i, i+len(form))
			}
		}
		for k, form := range redact.TokenForms() {
			if strings.HasPrefix(text[i:], form[0]) && (seam[i] || wordBegins.MatchString(text[max(0, i-1):i])) {
				end := i + len(n.tokens[k].FindString(text[i:]))
				for to := i + 1; end == i && to < len(text) && text[to-1] > ' '; to++ {
					if seam[to] && n.tokens[k].MatchString(text[i:to]) {
						end = to
					}
				}
				hide(i+len(form[0]), end)
			}
		}
	}
	for _, p := range n.patterns {
		for _, m := range p.FindAllStringSubmatchIndex(text, -1) {
			if len(m) > 2 {
				m = m[2:]
			}
			if redact.Labelled(p.String()) {
				m[0] += redact.PrefixLen(text[m[0]:m[1]])
			}
			hide(m[0], m[1])
		}
	}
	for _, m := range redact.FindNamed(text) {
		hide(m[0], m[1])
	}
	out := []byte(coloured)
	for i := range secret {
		if secret[i] && text[i] >= 0x20 && text[i] != 0x7f {
			out[at[i]] = '*'
		}
	}
	return string(out)
}

var (
	wordBegins = regexp.MustCompile(`(?:^|[^A-Za-z0-9_])$`)
	colour     = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

// innocent is output without secrets, full of their beginnings.
func innocent() []string {
	all := []string{"disk-usage ", "task-17.spec.ts ", "https://example/x ", "linting ", "version ", "hunter ", "corp-12 ", "aws ", "-----", "eyJ", "\r\n", "\t", "é", "端末", "° "}
	for line := range strings.Lines(string(coloured(4 << 10))) {
		all = append(all, line)
	}
	for n := range 20 {
		all = append(all, fmt.Sprintf("%d\r\n", 1000000+n), fmt.Sprintf(`{"id":%d,"tags":["a",%d]}`+"\n", n, n), fmt.Sprintf("\x1b[32m  CC\x1b[0m [%3d%%] src/obj/%x.o\r\n", n, n*7919))
	}
	return all
}

func TestReference(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	random := rand.New(rand.NewPCG(11, 12))
	values, patterns := []string{"hunter2-value", "line one\nanother line", "x=y&z/é"}, []string{`corp-[0-9]{6}`, `A{20,}`, `(?mi:pin: *(\d+))`, `(?m:^key .*$)`}
	for _, c := range []struct {
		name     string
		patterns []string
		ahead    bool
	}{{"known forms", nil, true}, {"patterns", patterns, true}, {"a pattern of one character", append(patterns, `%+`), false}} {
		r := compile(t, redact.Options{Tokens: true, Patterns: c.patterns}, values...)
		if r.LooksAhead() != c.ahead {
			t.Errorf("%s: looks ahead %v", c.name, r.LooksAhead())
		}
		secrets := []string{"hunter2-value", "another line", "x=y&z/é", "x%3Dy%26z%2F%C3%A9", "corp-123456", "\nkey of all\n", "Pin: 42", strings.Repeat("A", 30), "%%",
			"authorization: bearer abcdef0123456789 ", "x-api-key: 0123456789abc ", "aws_session_token=0123456789abcdefgh ", "pg://u:secret@db ",
			"\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}
		for _, form := range redact.TokenForms() {
			secrets = append(secrets, made(t, form[1], random))
		}
		plain, reference := innocent(), newNaive(values, c.patterns)
		for range testkit.Rounds(t, testkit.Load(6, 2), 20_000) {
			var b strings.Builder
			for range random.IntN(40) {
				all := plain
				if random.IntN(4) == 0 {
					all = secrets
				}
				piece := all[random.IntN(len(all))]
				b.WriteString(piece)
				if random.IntN(8) == 0 && !strings.ContainsAny(piece, "\x1b\n") { // most are no secrets then
					b.WriteString(strings.ToValidUTF8(piece[:random.IntN(len(piece))], ""))
				}
			}
			text := b.String() + "\n.\n"
			if len(text) > 4000 {
				continue
			}
			want := reference.shown(text)
			if got := shown(r, text); got != want {
				t.Fatalf("%s: %q\nis shown as %q\nwant        %q", c.name, text, got, want)
			}
			if got := inPieces(t, r, text, func(string) int { return 1 }); got != want {
				t.Fatalf("%s: %q\nbyte by byte is shown as %q\nwant %q", c.name, text, got, want)
			}
		}
	}
}

// The search for the beginnings of patterns finds the same three places at a time and one
// by one.
func TestBeginnings(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	all := append(pieces(t, random), innocent()...)
	for _, patterns := range [][]string{nil, {`corp-[0-9]{6}`, `[äö]{2,}x`}, {`[^x]`}} {
		r := compile(t, redact.Options{Tokens: true, Patterns: patterns}, "hunter2-value", "ghij0123456789")
		for range testkit.Rounds(t, testkit.Load(40, 10), 20_000) {
			text := []byte(randomText(random, all))
			for i := 0; i <= len(text); i++ {
				found, first := r.Beginning(text, i)
				if found != first {
					t.Fatalf("patterns %q: in %q from %d on at %d, want %d", patterns, text, i, found, first)
				}
				i = max(i, found-random.IntN(10))
			}
		}
	}
}

// Escape sequences that stand close together are judged alike a block at a time and byte
// by byte.
func TestDenseSequences(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	r := compile(t, redact.Options{Images: 50})
	parts := []string{"\x1b", "\x1b[", "\x1b[", "\x1b[1", "0", "22", ";", "?", "<", "m", "m", "H", "t", "i", "Z", "]0;", "\a", "\x18", "\x1a", "\x7f", "\x00", "\u009b", "\u009d", "é",
		"\x1b[38;5;244m", "\x1b[38;2;100;200;250m", "\x1b[8;1;2t", "\x1b[22;0t", "\x1b[?25l", "\x1b[5i", "\x1b[1;2H", "plain text of some length ", "x"}
	for range testkit.Rounds(t, 500, 100_000) {
		var b strings.Builder
		for range random.IntN(80) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		text := b.String()
		want := inPieces(t, r, text, func(string) int { return 1 })
		if got := shown(r, text); got != want {
			t.Fatalf("%q\nis shown as      %q\nbyte by byte as %q", text, got, want)
		}
	}
}

// Control sequences stay in a secret that is longer than the held text, in any division.
func TestLongSecretWithSequences(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	r := compile(t, redact.Options{Tokens: true})
	line := "MIIEabc\x1b[31mdef\x1b[0mé\x1b\x1b[1\x1b[7m\x1bMx\x1bé\x1b[1\r\n"
	for n := range line {
		const begin = "-----BEGIN PRIVATE KEY-----"
		text := begin + strings.Repeat("A", n) + strings.Repeat(line, 200) + "-----END PRIVATE KEY-----\n"
		want := begin + strings.Repeat("*", n) + strings.Repeat("*******\x1b[31m***\x1b[0m**\x1b\x1b[1\x1b[7m\x1bM*\x1b**\x1b[1\r\n", 200) + "*----\x18ND PRIVATE KEY-----\n" // the last line ends a sequence that no list has
		differs := func(got string) {
			for i := range len(want) {
				if got[i] != want[i] {
					t.Errorf("%q is shown as %q, want %q", text[i-20:i+20], got[i-20:i+20], want[i-20:i+20])
					return
				}
			}
		}
		differs(shown(r, text))
		differs(inPieces(t, r, text, randomCut(random)))
	}
}

// The beginning of a possible secret is pending, even if it is too short to decide.
func TestLittleIsNotAtRest(t *testing.T) {
	f := redact.NewFilter(compile(t, redact.Options{Tokens: true}, "hunter2-value"), 0)
	for _, c := range []struct {
		text string
		rest bool
	}{{"a ", true}, {"h", false}, {"u", false}, {"n", false}, {"q", true}, {"hunt", false}, {" \n", true}} {
		f.Feed([]byte(c.text))
		if f.AtRest() != c.rest {
			t.Errorf("behind %q: at rest %v", c.text, f.AtRest())
		}
	}
}
