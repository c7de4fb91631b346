package display

import (
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Printable("a\x1b[31m\nb", 0):               "a\uFFFD[31m b",
		Printable("abcdef", 3):                     "abc…",
		Printable("äöü", 3):                        "äöü",
		Ago(-time.Second):                          "0s",
		Ago(59 * time.Second):                      "59s",
		Ago(90 * time.Minute):                      "1h",
		Ago(50 * time.Hour):                        "2d",
		ShellLine([]string{"a", "b c", "", "d'e"}): `a 'b c' '' 'd'\''e'`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
