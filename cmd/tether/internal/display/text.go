package display

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"tether/platform/tty"
)

// PrintableLines makes each line of s printable, because errors may contain text of hosts and programs.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line, 0)
	}
	return strings.Join(lines, "\n")
}

// Printable is s on one line without control characters, cut to at most max runes; 0 means uncut.
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

// Ago formats a duration in one unit.
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

// Count is a number with its noun, whose plural takes an s.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Size is a number of bytes in the unit that leaves at least one digit before the point.
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

// ShellLine is argv as a person would type it.
func ShellLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		plain := w != "" && !strings.ContainsFunc(w, func(r rune) bool {
			return !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./=:,@%+", r))
		})
		if !plain {
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

// Round is a duration as precise as people need it.
func Round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
