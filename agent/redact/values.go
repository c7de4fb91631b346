package redact

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"path"
	"slices"
	"strings"

	"tether/internal/lazyregexp"
)

// Bounds of values, in bytes.
const (
	MinValue   = 6       // shorter ones are not redacted: they would be everywhere
	maxValue   = 1 << 10 // longer ones are looked for in pieces
	maxValues  = 64      // of one terminal
	maxSecrets = 8 << 10 // of one terminal, together
)

// Values returns the values of those variables in env, NAME=value, whose names match one
// of the globs, where * stands for any text and case does not matter. A value that is too
// short, a number, a path or one repeated character is not a secret. Of a URL only the
// secret parts count: see inURL.
func Values(env, globs []string) []string {
	var all []string
	total := 0
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !fits(name, globs) || fits(name, harmlessNames) {
			continue
		}
		for _, value := range inURL(name, value) {
			value = string([]rune(value)) // as the text has it: U+FFFD for each byte that is not UTF-8
			if !secretive(value) || slices.Contains(all, value) {
				continue
			}
			if total += len(value); len(all) == maxValues || total > maxSecrets {
				return all
			}
			all = append(all, value)
		}
	}
	return all
}

// harmlessNames are variables whose names look as if their values were secret. Authors'
// names and a dev server's address must stay visible.
var harmlessNames = []string{"GIT_AUTHOR_*", "GIT_COMMITTER_*", "XAUTHORITY", "SSH_AUTH_SOCK", "SSH_ASKPASS*", "*_KEY_ID", "*_KEY_FILE", "*_KEY_PATH", "*_KEY_DIR",
	"*_PUBLIC_KEY", "PUBLIC_KEY", "*_KEY_TYPE", "*_KEY_NAME", "*_FILE", "*_PATH", "*_DIR", "*_SOCK", "*_ENABLED", "*_TYPE", "*_METHOD", "*_MODE", "*_TTL", "*_TIMEOUT",
	"*_EXPIRY", "*_EXPIRES", "*_EXPIRES_IN", "*_LENGTH", "*_LIMIT", "*_HEADER", "*_HEADER_NAME", "*_COOKIE_NAME", "*_ISSUER", "*_AUDIENCE", "*_ALGORITHM", "*_PROVIDER", "*_CLIENT_ID",
	"*_PRIMARY_KEY", "*_CACHE_KEY", "*_SORT_KEY", "*_HOST_KEY", "*_COMPOSE_KEY", "KEYMAP", "OLDPWD", "PWD"}

// fits reports whether a name matches one of the globs. Case does not count, and "-" and
// "." are "_".
func fits(name string, globs []string) bool {
	plain := strings.NewReplacer("-", "_", ".", "_")
	name = plain.Replace(strings.ToUpper(name))
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(plain.Replace(strings.ToUpper(glob)), name)
		return err == nil && ok
	})
}

// inURL returns the secret parts of a value that is a URL: the password, or a user
// without a password, and values in its query with telling names. The path counts only
// for webhooks, whose last part allows posting. Of another value whose name promises a
// URL, such as a list of settings, those with telling names count. Any other value is
// secret as a whole, unless its name is one of wordNames and it is only words.
func inURL(name, value string) []string {
	value = strings.TrimSpace(value)
	u, err := url.Parse(strings.TrimPrefix(value, "jdbc:"))
	if err != nil || u.Host == "" || u.Scheme == "" {
		all := userInfo(value) // the password may be what makes it no URL
		switch {
		case len(all) > 0:
		case fits(name, []string{"*_URL", "*_URI", "*_PROXY"}):
			for _, s := range findNamed(nil, []byte(value), 0, len(value)) {
				all = append(all, value[s.start:s.end])
			}
		case !fits(name, wordNames) || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_-.: ") != "":
			all = append(all, value)
		}
		return all
	}
	var all []string
	if u.User != nil {
		all = userInfo(value)
	}
	for key, values := range u.Query() {
		if fits(key, queryNames) {
			all = append(all, values...)
		}
	}
	if fits(name, []string{"*WEBHOOK*"}) {
		if last := path.Base(u.Path); len(last) >= minUser {
			all = append(all, last)
		}
	}
	slices.Sort(all)
	return all
}

// userInfo returns the password of a URL, or its user if that is a token, as it stands
// there and decoded. It also finds a password that should have been encoded, up to the
// last @.
func userInfo(value string) (all []string) {
	m := userInURLs().FindStringSubmatch(value)
	if m == nil {
		return nil
	}
	secret := strings.TrimPrefix(m[2], ":")
	if m[2] == "" && len(m[1]) >= minUser {
		secret = m[1]
	}
	if plain, err := url.PathUnescape(secret); err == nil && plain != secret {
		all = append(all, plain)
	}
	if secret != "" {
		all = append(all, secret)
	}
	return all
}

// userInURLs matches a URL with a user (1) and its password (2).
var userInURLs = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.:-]*://([^\s:/@"'{}]*)(:[^\s"'{}]*)?@[^\s@"'{}]*$`)

// wordNames are variables whose values may be words, such as a column or a way to log in.
// Such values are not secret.
var wordNames = []string{"*_KEY", "*_AUTH", "*_PAT", "*_PIN", "*_COOKIE", "*_DSN"}

// minUser is how long a user without a password, or the end of a webhook, has to be to
// count as a token, in bytes.
const minUser = 16

// queryNames are the names of secret values in the query of a URL.
var queryNames = []string{"*TOKEN*", "*SECRET*", "*PASS", "*PASSWORD*", "*PWD", "*KEY", "*SIGNATURE", "SIG", "*_AUTH", "AUTH"}

// secretive reports whether a value can be looked for without hiding common text: names
// like SSH_ASKPASS_PASSWORD_FILE have paths.
func secretive(v string) bool {
	v = strings.TrimSpace(v)
	switch {
	case len(v) < MinValue, strings.Trim(v, "0123456789.") == "", strings.Count(v, v[:1]) == len(v), placeholder().MatchString(v):
		return false
	case strings.HasPrefix(v, "/") && !strings.ContainsAny(v, "=+ \n"), strings.HasPrefix(v, "~/"):
		return false
	}
	return true
}

// How many forms of values are looked for: all, or fewer where so many values would make
// the automaton too large.
const (
	formsAll = iota
	formsCommon
	formsPlain
	formsApart // like formsPlain, but a value that contains the end of a named value is not found behind a telling name
	formsNone
)

// formsOf returns the texts as which a value may be written: unchanged, line by line, in
// capitals, in base64 at any of the three alignments, in a URL, in HTML, in JSON and in
// JSON in JSON.
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
			// The characters at the ends depend on the text around.
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
	quoted := inJSON(v, true)
	for _, form := range []string{url.QueryEscape(v), url.PathEscape(v), componentEscapes.Replace(url.QueryEscape(v))} {
		add(form)
		add(upperEscape().ReplaceAllStringFunc(form, strings.ToLower))
	}
	for _, form := range []string{quoted, inJSON(quoted, true), inJSON(v, false), html.EscapeString(v), namedEntities.Replace(html.EscapeString(v)), otherEntities.Replace(html.EscapeString(v))} {
		add(form)
	}
	if mixture(v) && len(v) >= 8 { // in capitals, words would be more than this value
		add(strings.ToUpper(v))
		add(strings.ToLower(v))
	}
	return all
}

var (
	// componentEscapes makes what JavaScript's encodeURIComponent makes.
	componentEscapes = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
	upperEscape      = lazyregexp.New(`%[0-9A-F]{2}`)
	// What other programs than Go write in HTML.
	namedEntities = strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;")
	otherEntities = strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;")
)

// inJSON returns a string of JSON without its quotes; with escape, HTML's characters are
// escaped in it, too.
func inJSON(v string, escape bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escape)
	if e.Encode(v) != nil {
		return v
	}
	return strings.TrimSuffix(b.String(), "\"\n")[1:]
}
