package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"tether/platform/tty"
)

// colours reports whether output to f may have colours.
func colours(f *os.File) bool {
	return tty.Is(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// dim makes text faint if output to f may have colours.
func dim(f *os.File, text string) string {
	if !colours(f) {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

// printJSON writes v as one indented document.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// notice prints a message for the person to standard error. A carriage return at its end is for a terminal in raw mode.
func (a *app) notice(format string, args ...any) {
	text, raw := strings.CutSuffix(fmt.Sprintf(format, args...), "\r")
	text = dim(a.stderr, "tether: "+printableLines(text))
	if raw {
		text += "\r"
	}
	fmt.Fprintln(a.stderr, text)
}

// printableLines makes each line of s printable, because errors may contain text of hosts and programs.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = printable(line, 0)
	}
	return strings.Join(lines, "\n")
}

// printable is s on one line without control characters, cut to at most max runes; 0 means uncut.
func printable(s string, max int) string {
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

// ago formats a duration in one unit.
func ago(d time.Duration) string {
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

// shellLine is argv as a person would type it.
func shellLine(argv []string) string {
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
