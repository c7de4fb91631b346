package redact_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/redact"
	"tether/internal/testkit/must"
)

// The values of variables that usually hold secrets are looked for, those of others are
// not, and of URLs only their secret parts.
func TestVariables(t *testing.T) {
	table := must.Get(os.ReadFile("testdata/variables.txt"))(t)
	globs := config.Default().Lend.RedactEnv
	rows := map[string]int{}
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		fields := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		rows[fields[0]]++
		var want []string
		if fields[0] == "secret" {
			_, value, _ := strings.Cut(fields[1], "=")
			if want = []string{value}; len(fields) > 2 {
				want = fields[2:]
			}
		}
		if got := redact.Values(fields[1:2], globs); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", fields[1], got, want)
		}
	}
	if rows["secret"] < 41 || rows["open"] < 30 {
		t.Errorf("the table has %v rows", rows)
	}
}

// Values behind telling names are masked, in the forms in which programs write them, and
// harmless text stays.
func TestNamedValues(t *testing.T) {
	table := must.Get(os.ReadFile("testdata/named.txt"))(t)
	r := compile(t, redact.Options{Tokens: true})
	rows := map[string]int{}
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		fields := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		rows[fields[0]]++
		text, want := fields[1]+"\r\n", fields[1]+"\r\n"
		if fields[0] == "secret" {
			want = strings.Replace(text, fields[2], strings.Repeat("*", len(fields[2])), 1)
		}
		if got := shown(r, text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if got := inPieces(t, r, text, func(string) int { return 1 }); got != want {
			t.Errorf("byte by byte %q is shown as %q, want %q", text, got, want)
		}
	}
	if rows["secret"] < 35 || rows["open"] < 40 {
		t.Errorf("the table has %v rows", rows)
	}
}
