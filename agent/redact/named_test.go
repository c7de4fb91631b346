package redact_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// Running the expression for named values only in front of signs finds the same as
// running it everywhere.
func TestNamedValuesAreFoundInFrontOfSigns(t *testing.T) {
	pieces := []string{"password", "PASSWD", "passphrase", "token", "Secret", "secret_key_base", "api-key", "_KEY", "credentials", "_auth", `"auth`, "session_id", "cookie",
		"\u017fecret", "to\u212aen", ".pat", "bearer", "name", "x", "é", "\xff", " ", "\t", `"`, "'", `\`, "]", ":", "=", ":=", "=>", ">", "hunter2-value", "\n", strings.Repeat(" ", 70), ",",
		"&quot;", "&#39;", "%22", "%3a", "%3D", `\u0022`, `\u003d`, "%", ";", "2", " is", "sig", "&", "key", "psk", ": string", "&'static str "}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range testkit.Load(100_000, 10_000) {
		var b strings.Builder
		for range 1 + random.IntN(8) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		from := random.IntN(len(text) + 1)
		with, without := redact.FirstNamed([]byte(text), from)
		if !slices.Equal(with, without) {
			t.Fatalf("%q from %d: %v, and %v of the expression alone", text, from, with, without)
		}
		if with != nil {
			found++
		}
	}
	if found < 200 {
		t.Errorf("only %d values were found", found)
	}
}
