package outward

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Bounds of values, in bytes.
const (
	MinValue   = 6       // shorter ones are not redacted: they would be everywhere
	maxValue   = 1 << 10 // longer ones are looked for in pieces
	maxValues  = 64      // of one terminal
	maxSecrets = 8 << 10 // of one terminal, together
)

// Values returns the values of the variables in env, NAME=value, whose names one of the globs fits, where * stands for any text and case
// counts for nothing. What is too short, a number, a path or a plain word such as true is no secret.
func Values(env, globs []string) []string {
	var all []string
	total := 0
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !fits(name, globs) || !secretive(value) || slices.Contains(all, value) {
			continue
		}
		if total += len(value); len(all) == maxValues || total > maxSecrets {
			break
		}
		all = append(all, value)
	}
	return all
}

func fits(name string, globs []string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(strings.ToUpper(glob), strings.ToUpper(name))
		return err == nil && ok
	})
}

// secretive reports whether a value can be looked for without hiding what is everywhere: names like SSH_ASKPASS_PASSWORD_FILE have paths.
func secretive(v string) bool {
	v = strings.TrimSpace(v)
	switch {
	case len(v) < MinValue, strings.Trim(v, "0123456789.") == "", strings.Count(v, v[:1]) == len(v):
		return false
	case strings.HasPrefix(v, "/") && !strings.ContainsAny(v, "=+ \n"), strings.HasPrefix(v, "~/"):
		return false
	}
	return true
}

// How many forms of values are looked for: all, or fewer where there are so many values that the automaton would be too large.
const (
	formsAll = iota
	formsCommon
	formsPlain
	formsNone
)

// formsOf are the texts in which a value may be written: as it is, line by line, in base64 at any of the three alignments, in a URL and
// in JSON.
func formsOf(value string, forms int) []string {
	var all []string
	add := func(s string) {
		for len(s) > maxValue {
			all, s = append(all, s[:maxValue]), s[maxValue:]
		}
		if len(s) >= MinValue && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for line := range strings.Lines(value) {
		add(strings.TrimSpace(line))
	}
	if forms >= formsPlain {
		return all
	}
	v := strings.TrimSpace(value)
	encodings := []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding}
	for shift := range 3 {
		for _, enc := range encodings[:2-forms] {
			// The characters at the ends depend on what is around.
			text := enc.EncodeToString(append(make([]byte, shift), v...))
			skip, cut := (shift*8+5)/6, (shift+len(v))%3
			if text = text[skip:]; cut > 0 && len(text) > 0 {
				text = text[:len(text)-1]
			}
			add(text)
		}
	}
	if forms > formsAll {
		return all
	}
	add(url.QueryEscape(v))
	add(url.PathEscape(v))
	if quoted, err := json.Marshal(v); err == nil {
		add(string(quoted[1 : len(quoted)-1]))
	}
	return all
}
