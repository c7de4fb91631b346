package mcp

import (
	"strings"
	"unicode/utf8"
)

// choose applies grep, tail and the bound, in that order. cut tells that the
// bound took something away.
func (q query) choose(text string) (_ string, cut bool) {
	if q.grep != nil {
		var b strings.Builder
		for line := range strings.Lines(text) {
			if q.grep.MatchString(strings.TrimSuffix(line, "\n")) {
				b.WriteString(line)
			}
		}
		text = b.String()
	}
	if q.tail > 0 {
		text = lastLines(text, q.tail)
	}
	if len(text) <= q.bytes {
		return text, false
	}
	return newest(text, q.bytes), true
}

// lastLines is the last n lines of s. A line that s does not end counts as one.
func lastLines(s string, n int) string {
	end := len(strings.TrimSuffix(s, "\n"))
	for ; n > 0; n-- {
		end = strings.LastIndexByte(s[:end], '\n')
		if end < 0 {
			return s
		}
	}
	return s[end+1:]
}

// newest is the end of s, at most n bytes, from the beginning of a line if
// there is one and else of a character.
func newest(s string, n int) string {
	at := len(s) - n
	if s[at-1] == '\n' {
		return s[at:]
	}
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 && at+i+1 < len(s) {
		return s[at+i+1:]
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
