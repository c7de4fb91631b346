package display

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tether/internal/jsonspan"
	"tether/platform/tty"
)

// PrintableLines returns s with each line made printable. It is for errors, which may
// contain text of hosts and programs.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line, 0)
	}
	return strings.Join(lines, "\n")
}

// Printable returns s on one line: white space becomes blanks, and characters that are
// not printable become U+FFFD. It cuts s to max runes; 0 means no bound.
func Printable(s string, max int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if max > 0 && n == max {
			b.WriteRune('…')
			break
		}
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// Ago formats a duration in one unit, rounded down. A negative one is 0s.
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Clock formats a time for people, with the date only if it is not today.
func Clock(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// Count returns a number with its noun, whose plural takes an s.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Size formats a number of bytes: from 10 KiB in KiB, from 1 MiB in MiB.
func Size(bytes int64) string {
	switch {
	case bytes >= 10<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 10<<10:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return Count(int(bytes), "byte")
}

// Text returns a text of an answer for people: shown, or if it is not UTF-8, its bytes in
// a form that is clear.
func Text(shown string, bytes []byte) string {
	if bytes != nil {
		return jsonspan.Show(string(bytes))
	}
	return shown
}

// ShellLine returns argv as a person would type it into a shell.
func ShellLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		plain := w != "" && !strings.ContainsFunc(w, func(r rune) bool {
			return !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./=:,@%+", r))
		})
		switch {
		case !utf8.ValidString(w):
			w = jsonspan.Show(w)
		case !plain:
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words[i] = w
	}
	return strings.Join(words, " ")
}

// Colours reports whether output to f may have colours.
func Colours(f *os.File) bool {
	return tty.Is(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Dim makes text faint if output to f may have colours.
func Dim(f *os.File, text string) string {
	if !Colours(f) {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

// Round rounds a duration to the precision that people need.
func Round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
