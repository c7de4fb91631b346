// Package clip shortens text for messages, records and frames, which are bounded in
// bytes, without leaving a part of a character at the end. It does not check the
// contents.
//
//	name = clip.Text(name, maxName)
//	err = fmt.Errorf("%s is no size", clip.Marked(given, 60))
package clip

import (
	"strings"
	"unicode/utf8"
)

// Text returns the beginning of s, at most n bytes, cut between two characters. Text that
// is no UTF-8 there is cut after n bytes.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end >= 0 && n-end < utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}

// Marked is Text for people: a cut is followed by "…", which does not count.
func Marked(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Text(s, n) + "…"
}

// Chars returns s with at most n characters. A cut is marked by "…", which counts, in
// place of blanks.
func Chars(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n--; n == 0 {
			return strings.TrimRight(s[:i], " \n") + "…"
		}
	}
	return ""
}

// Last returns the last n lines of p, which is all of it if it has no more. A line
// without an end counts.
func Last[T ~string | ~[]byte](p T, n int) T {
	for i := len(p) - 1; i > 0; i-- {
		if p[i-1] != '\n' {
			continue
		}
		if n--; n == 0 {
			return p[i:]
		}
	}
	return p
}
