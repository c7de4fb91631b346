package problems

import (
	"bytes"
	"slices"

	"tether/internal/lazyregexp"
)

const (
	maxUnrecognised = 5   // lines
	maxQuoted       = 200 // bytes of one
)

// wrongWords and wrongForms tell lines that look like errors; fineForms tell those of
// them that say that all is well, that only count, or that are frames of a stack, whose
// functions may be called "error".
var (
	wrongWords = [][]byte{[]byte("rror"), []byte("RROR"), []byte("ail"), []byte("AIL"), []byte("xception"), []byte("anic"), []byte(" 5"), []byte("✗"), []byte("⨯"), []byte("✘"), []byte("raceback")}
	wrongForms = lazyregexp.New(`(?i)\b(?:error|failed|failure|exception|panic|traceback)\b|(?-i:\w(?:Error|Exception)\b)|^\s*[✗⨯✘] |(?:" |HTTP/\S+ |(?:GET|POST|PUT|PATCH|DELETE|HEAD) \S+ )5\d\d\b`)
	fineForms  = lazyregexp.New(`(?i)\b(?:0|no|without|zero) (?:errors?|fail(?:ed|ures?)|exceptions?|problems?)\b|\b(?:errors?|failed|failures?):? +0\b|--\S*(?:error|fail)|\b(?:error|fail)\S*\.[cm]?[jt]sx?\b|^\s*(?:at \S.*:\d+\)?|File ".*", line \d+.*)$`)
)

// sumForms tell lines that count errors, or name what has failed without saying why.
var sumForms = lazyregexp.New(`(?i)\b\d+ (?:errors?|failed|failures?)\b|\.\.\. FAILED$`)

// looksWrong reports whether a person would take the line for an error.
func looksWrong(line []byte) bool {
	return slices.ContainsFunc(wrongWords, func(w []byte) bool { return bytes.Contains(line, w) }) &&
		wrongForms().Match(line) && !fineForms().Match(line)
}

// strange keeps a line that looks like an error.
func (t *Tracker) strange(line []byte, start int64) {
	quoted := text([]byte(t.quotable(string(line), start)), maxQuoted)
	if slices.Contains(t.unrecognised, quoted) {
		return
	}
	t.unrecognised = append(t.unrecognised, quoted)
	if len(t.unrecognised) > maxUnrecognised {
		t.unrecognised = slices.Delete(t.unrecognised, 0, 1)
	}
}
