package redact_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/redact"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A secretCase is a text with a secret in it, made from a row of a table in testdata.
// Nobody has any of these secrets.
type secretCase struct{ row, before, secret, after string }

func (c secretCase) text() string { return c.before + c.secret + c.after }

// secretCases reads a table. Rows are alike in each run.
func secretCases(t testing.TB, name string, random *rand.Rand) (all []secretCase) {
	t.Helper()
	table := must.Get(os.ReadFile("testdata/" + name))(t)
	plain := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")
	for row := range strings.Lines(string(table)) {
		row = strings.TrimRight(row, "\r\n")
		if row[0] == '#' {
			continue
		}
		_, text, ok := strings.Cut(row, "\t")
		if !ok {
			text = row
		}
		before, rest, _ := strings.Cut(text, "«")
		expr, after, ok := strings.Cut(rest, "»")
		if !ok {
			t.Fatalf("%s: %q has no secret", name, row)
		}
		all = append(all, secretCase{row, plain.Replace(before), made(t, expr, random), plain.Replace(after)})
	}
	return all
}

// hidden is how much of a secret from an offset on is not seen.
func (c secretCase) hidden(shown string, at int) float64 {
	n := 0
	for i := range len(c.secret) {
		if shown[at+i] != c.secret[i] {
			n++
		}
	}
	return float64(n) / float64(len(c.secret))
}

// recall fails if fewer than the promised part of the rows is found, or if there are
// fewer rows than promised.
func recall(t *testing.T, missed []string, of, rows int, promised float64) {
	t.Helper()
	got := 1 - float64(len(missed))/float64(of)
	t.Logf("found %d of %d: %.1f %%; missed:\n%s", of-len(missed), of, got*100, strings.Join(missed, "\n"))
	if got < promised || of < rows {
		t.Errorf("found %.1f %% of %d, want %.0f %% of at least %d", got*100, of, promised*100, rows)
	}
}

// found reports whether the promises for a row hold: most of the secret is masked and the
// text around it stays, in any division of the text.
func (c secretCase) found(t *testing.T, r *redact.Rules, round int) bool {
	t.Helper()
	const around = "$ make deploy\r\n" // other text
	text := around + c.text() + "\r\n" + around
	got, at := shown(r, text), len(around)+len(c.before)
	if !strings.HasPrefix(got, around) || !strings.HasSuffix(got, around) {
		t.Errorf("%q is shown as %q", text, got)
	}
	if again := inPieces(t, r, text, func(string) int { return 1 }); again != got {
		t.Errorf("%q\nis shown as   %q\nbyte by byte  %q", text, got, again)
	}
	every := testkit.Load(12, 24)
	for cut := round % every; cut < len(text); cut += every { // a soak takes every place
		first := cut
		if again := inPieces(t, r, text, func(rest string) int { return cutOnce(&first, rest) }); again != got {
			t.Fatalf("%q\nis shown as    %q\ndivided at %d %q", text, got, cut, again)
		}
	}
	return c.hidden(got, at) >= 0.9
}

// The known forms of credentials are found, in any division. Who wrote the second table
// had not read the rules.
func TestRecallOfTokens(t *testing.T) {
	random, r := rand.New(rand.NewPCG(31, 1)), compile(t, redact.Options{Tokens: true})
	for round := range testkit.Rounds(t, 1, 100) {
		recallOf(t, r, secretCases(t, "recall-tokens.txt", random), round, 208, 0.98)
		recallOf(t, r, secretCases(t, "held-out-tokens.txt", random), round, 244, 0.98)
	}
}

// Values behind telling names are found, in any division.
func TestRecallOfNamedValues(t *testing.T) {
	random, r := rand.New(rand.NewPCG(31, 2)), compile(t, redact.Options{Tokens: true})
	for round := range testkit.Rounds(t, 1, 100) {
		recallOf(t, r, secretCases(t, "recall-named.txt", random), round, 83, 0.9)
		recallOf(t, r, secretCases(t, "held-out-named.txt", random), round, 90, 0.9)
	}
}

// Known forms and values are found in any syntax, without a telling name.
func TestRecallInSyntaxes(t *testing.T) {
	table := must.Get(os.ReadFile("testdata/syntaxes.txt"))(t)
	random := rand.New(rand.NewPCG(31, 4))
	var bare []secretCase // those that their form reveals, not the text around them
	for _, c := range secretCases(t, "recall-tokens.txt", random) {
		if !strings.ContainsAny(c.before, "\n :=\"") && !strings.ContainsAny(c.after, "\n\\") {
			bare = append(bare, c)
		}
	}
	if len(bare) < 110 {
		t.Errorf("only %d tokens are told by themselves", len(bare))
	}
	value := secretCases(t, "recall-environment.txt", random)[0].secret
	tokens, values := compile(t, redact.Options{Tokens: true}), compile(t, redact.Options{}, value)
	plain := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")
	syntaxes := 0
	for row := range strings.Lines(string(table)) {
		name, text, ok := strings.Cut(strings.TrimRight(row, "\r\n"), "\t")
		before, after, here := strings.Cut(plain.Replace(text), "«»")
		if row[0] == '#' || !ok || !here {
			continue
		}
		syntaxes++
		t.Run(name, func(t *testing.T) {
			var missed []string
			for i, c := range bare {
				c.before, c.after = before+c.before, c.after+after
				if got := shown(tokens, c.text()+"\n"); c.hidden(got, len(c.before)) < 0.9 {
					missed = append(missed, c.text())
				} else if i%24 == syntaxes%24 && !c.found(t, tokens, i) {
					t.Errorf("%q is not found among other text", c.text())
				}
			}
			recall(t, missed, len(bare), 110, 0.97) // the table as a whole has 98 %, and rows with names are not among these
			if c := (secretCase{name, before, value, after}); !c.found(t, values, 0) {
				t.Errorf("a value is not found in %q", c.text())
			}
		})
	}
	if syntaxes < 25 {
		t.Errorf("%d syntaxes", syntaxes)
	}
}

// recallOf measures how many of the cases are found in one round.
func recallOf(t *testing.T, r *redact.Rules, cases []secretCase, round, rows int, promised float64) {
	t.Helper()
	var missed []string
	for i, c := range cases {
		if !c.found(t, r, round+i) {
			missed = append(missed, c.text())
		}
	}
	recall(t, missed, len(cases), rows, promised)
}

// Values of the environment are found by the names of their variables, where a program
// prints them without a name.
func TestRecallOfEnvironment(t *testing.T) {
	random, globs := rand.New(rand.NewPCG(31, 3)), config.Default().Lend.RedactEnv
	cases := secretCases(t, "recall-environment.txt", random)
	for _, table := range [][]secretCase{cases, secretCases(t, "held-out-environment.txt", random)} {
		var missed []string
		for _, c := range table {
			var forms []string
			for _, v := range redact.Values([]string{c.text()}, globs) {
				forms = append(forms, redact.FormsOf(v)...)
			}
			if !slices.Contains(forms, c.secret) || slices.ContainsFunc(forms, func(form string) bool { return form != c.secret && strings.Contains(form, c.secret) }) {
				missed = append(missed, c.text())
			}
		}
		recall(t, missed, len(table), 76, 0.95)
	}
	// In the text, all forms of each.
	r := compile(t, redact.Options{}, cases[0].secret, cases[4].secret, cases[11].secret)
	for _, c := range []secretCase{cases[0], cases[4], cases[11]} {
		c.before, c.after = "value ", " is used"
		if !c.found(t, r, 0) {
			t.Errorf("%q is shown as %q", c.text(), shown(r, c.text()))
		}
	}
}
