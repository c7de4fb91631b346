package policy

import (
	"regexp"
	"strings"
	"sync"

	"tether/internal/clip"
	"tether/internal/lazyregexp"
)

// hidden stands for a credential.
const hidden = "[hidden]"

// credentials are known forms of credentials in commands. The text between the first and
// the second group is replaced. This is a net, not a wall: a password that looks like a
// word stays. They are compiled on first use, which most processes of this program, such
// as the holders of terminals, never need.
var credentials = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// Tokens of well-known makers, by their prefixes.
		regexp.MustCompile(`()\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|hf_[A-Za-z0-9]{20,}|dop_v1_[0-9a-f]{20,}|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|SG\.[\w-]{16,}\.[\w-]{16,})()`),
		// JSON web tokens and keys.
		regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*()`),
		regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
		// URLs with a password.
		regexp.MustCompile(`([a-zA-Z][\w+.-]*://[^\s/:@]*:)[^\s/@]+(@)`),
		// Headers.
		regexp.MustCompile(`(?i)(\b(?:bearer|basic|token)\s+)[\w.~+/=-]{8,}()`),
		regexp.MustCompile(`(?i)(\b[\w-]*(?:authorization|api-?key|auth-token|access-token|cookie)\s*:\s*)[^\s"'][^"']*()`),
		// NAME=value and --name=value.
		regexp.MustCompile(`(?i)([\w-]*(?:` + secretWords + `)[\w-]*=)[^\s"']+()`),
		regexp.MustCompile(`(?i)([\w-]*(?:` + secretWords + `)[\w-]*=["'])[^"']+(["'])`),
		// --name value, within a line.
		regexp.MustCompile(`(?i)(--?[\w-]*(?:` + secretWords + `)[\w-]*\s+["']?)[^\s"'-][^\s"']*()`),
	}
})

const secretWords = `passw(?:or)?d|passphrase|secret|token|api-?_?key|access-?_?key|private-?_?key|credential`

// secretFlag is an option whose value is the next word.
var secretFlag = lazyregexp.New(`(?i)^--?[\w-]*(?:` + secretWords + `)[\w-]*$`)

// redacted returns s, shortened, without text that looks like a credential. The examined
// text is longer than the kept text, so that no credential is cut before it is
// recognised.
func redacted(s string) string {
	s = clip.Marked(s, maxLooked)
	for _, c := range credentials() {
		s = c.ReplaceAllString(s, "${1}"+hidden+"${2}")
	}
	return clip.Marked(s, maxAuditText)
}

// redactedWords returns the words of an argv as redacted does, at most maxAuditWords
// words and maxAuditText bytes together.
func redactedWords(words []string) []string {
	return shortened(words, func(i int, w string) string {
		if i > 0 && secretFlag().MatchString(clip.Marked(words[i-1], maxLooked)) && !strings.HasPrefix(w, "-") {
			w = hidden
		}
		return redacted(w)
	})
}

// Bounds of the part of a command that an event keeps. Reading a log must not cost more
// than writing it.
const (
	maxAuditWords = 256
	maxAuditText  = 4 << 10 // bytes of a line, and of all words
	maxLooked     = 2 * maxAuditText
)

// shortened returns the words as shown shows them: at most maxAuditWords words and
// maxAuditText bytes together, and "…" in place of the rest.
func shortened(words []string, shown func(i int, w string) string) []string {
	var out []string
	left := maxAuditText
	for i, w := range words {
		if i == maxAuditWords || left <= 0 {
			return append(out, "…")
		}
		w = clip.Marked(shown(i, w), left)
		left -= len(w)
		out = append(out, w)
	}
	return out
}
