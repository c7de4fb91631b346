package redact

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"tether/internal/lazyregexp"
)

// A named value is text behind a name that marks it as secret, such as password: or
// --token=. The automaton suspects any text behind such a name; namedValue finds the
// value, and secretNamed decides.

// The names: those of values that people choose and type, and those of values that
// programs make. Text in front of a name, such as DB_, does not count.
const (
	chosenNames = `password|passwd|passphrase|passcode|["'_.;-]pass|["'_.;-]pwd|[_.-]pw|bindpw|(?:pg|db|ssh|user|root|admin|mail|smtp|ftp)pass|psk`
	madeNames   = `token|secret|secret[_-]?key(?:[_-]base)?|(?:api|access|account|auth|private|encryption|signing|master)[_-]?key|(?-i:_KEY|-Key)` +
		`|credentials?|[_.-]auth|"auth|[_.-]pat|[_.-]jwt|bearer|session(?:[_-]?id)?|cookie|[?&]key|[?&]sig(?:nature)?`
	// The sign between a name and its value. The name may be in quotes and have a type,
	// and the value may be in an element, in brackets or another member: JSON, YAML,
	// shells, XML, SQL, code, and these in strings of JSON, HTML and URLs.
	nameSign = `(?::? ?&?(?:'static )?str(?:ing)? ?=[ \t]*|(?:` + quote + `)?\]?(?: is)?[ \t]*(?::=|=>|[:=]|%3[ad]|\\+u003[ad])[ \t]*|>)`
	// The first and the later bytes of a value, without quotes and in them. A value does
	// not begin with -: such text is an option, or a key in PEM, which is found by its
	// form.
	bareFirst, bareRest     = "[^\\x00-\\x20\\x7f-\\x{10ffff}\"'`<>&;,{\\[(:=\\]\\\\-]", "[^\\x00-\\x20\\x7f-\\x{10ffff}\"'`<>&;,]*"
	quotedFirst, quotedRest = `[^\x00-\x20\x7f"':=>,)}\]\\-]`, `[^\x00-\x1f\x7f"']*`
)

// namedLabel is the text in front of a value.
const namedLabel = `(?i:(?:` + chosenNames + `|` + madeNames + `)` + nameSign + `)`

// namedValue finds a name (1: a chosen one), its sign (2), and the value: in quotes (3,
// 4) or not (5).
var namedValue = lazyregexp.New(`(?i:(?:(` + chosenNames + `)|` + madeNames + `)(` + nameSign + `))` +
	`(?:(?i:(` + quote + `))(` + quotedFirst + quotedRest + `)|\\?(` + bareFirst + bareRest + `))`)

// findNamed appends to spans the values of names in w that are secret.
func findNamed(spans []span, w []byte, first, last int) []span {
	for from := first; from < last; {
		begin := nextNamed(w[:last], from)
		if begin < 0 {
			break
		}
		from = begin
		m := namedValue().FindSubmatchIndex(w[from:last])
		if m == nil {
			break
		}
		sign := string(w[from+m[4] : from+m[5]])
		v := named{name: nameAround(w, from+m[0], from+m[4]), chosen: m[2] >= 0, quoted: m[6] >= 0, adjacent: sign == "="}
		at, end := from+max(m[8], m[10]), from+max(m[9], m[11])
		value := w[at:end]
		if v.quoted {
			value = untilQuote(value, w[from+m[6]:from+m[7]])
		} else {
			value = bytes.TrimRight(value, ".:)}]")
			if strings.Contains(sign, "%") {
				value = untilEscape(value)
			}
		}
		if v.value = string(value); !v.secret() {
			value = beforeMove(value)
			v.value = string(value)
		}
		if from = at; v.secret() {
			spans = append(spans, span{from + prefixLen(value), from + len(value)})
		}
		// A name may be in the value.
	}
	return spans
}

// untilQuote returns the part of a value in front of the mark that ends it; open is the
// one in front of it.
func untilQuote(value, open []byte) []byte {
	if last := open[len(open)-1]; last != '"' && last != '\'' { // namedValue knows these
		if end := bytes.Index(value, open); end >= 0 {
			value = value[:end]
		}
	}
	return bytes.TrimRight(value, `\`)
}

// untilEscape returns the part of a value in a URL's value in front of what ends it.
func untilEscape(value []byte) []byte {
	if end := urlEnd().FindIndex(value); end != nil {
		value = value[:end[0]]
	}
	return value
}

// urlEnd matches what ends a value in a URL's value: a line's end, a blank, a quote, &,
// comma or semicolon.
var urlEnd = lazyregexp.New(`%(?:0[AaDd]|2[02567Cc]|3[Bb])`)

// beforeMove returns the part of a value in front of the first move, empty if there is
// none: other text may stand behind a move.
func beforeMove(value []byte) []byte {
	return value[:max(slices.IndexFunc(value, func(b byte) bool { return b >= backward }), 0)]
}

// maxName is more than the longest name that namedValue matches with its type, in bytes,
// even if some letters are longer ones that fold to ASCII.
const maxName = 48

// nextNamed returns the offset at which namedValue should begin: it matches nothing that
// begins between from and there. It returns -1 if nothing from from on matches. The
// expression is slow, so it runs only where a letter that ends a name is in front of a
// sign.
func nextNamed(w []byte, from int) int {
	for at := from; ; at++ {
		i := bytes.IndexAny(w[at:], `:=>%\`)
		if i < 0 {
			return -1
		}
		at += i
		if w[at] == '%' && !bytes.HasPrefix(w[at:], []byte("%3")) || w[at] == '\\' && !bytes.Contains(w[at:min(at+6, len(w))], []byte("u003")) {
			continue
		}
		end := endOfName(w, from, at)
		if end > from && (w[end-1] >= utf8.RuneSelf || strings.IndexByte("deghklnrstwy", w[end-1]|0x20) >= 0) {
			return max(from, end-maxName)
		}
	}
}

// endOfName returns the end of the text in front of the sign w[at] without blanks, quotes
// and brackets, from or more.
func endOfName(w []byte, from, at int) int {
	for {
		end := at
		for at > from && strings.IndexByte(" \t\"'\\]", w[at-1]) >= 0 {
			at--
		}
		if at > from && strings.IndexByte(";27", w[at-1]) >= 0 {
			if mark := quoteAtEnd().FindIndex(w[max(from, at-maxQuote):at]); mark != nil {
				at = max(from, at-maxQuote) + mark[0]
			}
		}
		if at == end {
			return end
		}
	}
}

// quoteAtEnd matches a quote that is written as an escape, at the end of a text. It has
// at most maxQuote bytes.
var quoteAtEnd = lazyregexp.New(quote + `$`)

const maxQuote = 12

// nameAround returns the whole name that contains w[start:end].
func nameAround(w []byte, start, end int) string {
	for i := 0; start > 0 && i < maxBefore && (isWord(w[start-1]) || w[start-1] == '-' || w[start-1] == '.'); i++ {
		start--
	}
	return string(bytes.TrimLeft(w[start:end], `"'.`))
}

// named is a value with its name, and how it is written.
type named struct {
	name, value string
	chosen      bool // the name is one of chosenNames
	quoted      bool
	adjacent    bool // behind "=", as in a shell
}

// harmlessNamed are names whose values are not secret, as globs of fits.
var harmlessNamed = []string{"*PAGE_TOKEN", "*PAGETOKEN", "*NEXT_TOKEN", "*NEXTTOKEN", "*CONTINUATION_TOKEN", "PUBLIC_*", "*_PUBLIC_*", "*CANCEL*TOKEN", "*CSS_TOKEN", "COLOR_TOKEN",
	"DESIGN_TOKEN", "*CACHE_KEY", "*HOST_KEY"}

func (v named) secret() bool {
	s := v.value
	// The cheapest question comes first: most values are words.
	return len(s) >= 4 && v.likely() && !isCode(s, v.quoted) && !formatValue().MatchString(s) && !placeholder().MatchString(s) && !fits(v.name, harmlessNamed)
}

// likely reports whether a person may have chosen the value for such a name, or a program
// may have made it.
func (v named) likely() bool {
	s := v.value
	upper := v.name == strings.ToUpper(v.name)
	switch {
	case v.chosen && mixture(s), v.chosen && len(s) >= 6 && strings.Trim(s, "0123456789") == "":
		return true
	case v.adjacent && upper && !v.quoted || v.quoted && (v.chosen || strings.HasSuffix(strings.ToLower(v.name), "secret")) || v.quoted && v.adjacent && upper:
		return len(s) >= 6 && (random(s) || words(s))
	}
	return random(s)
}

// isStopWord reports whether a text is a word that describes secrets, or stands in for
// one.
func isStopWord(s string) bool {
	return stopWords()[strings.ToLower(strings.Trim(s, " *.!?:"))]
}

var stopWords = sync.OnceValue(func() map[string]bool {
	t := map[string]bool{}
	for word := range strings.FieldsSeq(`password passwd passwort passphrase passcode pass secret secrets token tokens key keys apikey string text hidden required optional none null
		nil undefined true false yes no on off empty missing invalid incorrect wrong expired redacted filtered masked removed sensitive confidential default example sample
		placeholder unknown unset not-set changed unchanged updated disabled enabled field input number object array boolean value values type name user username
		login email basic digest bearer oauth oauth2 negotiate auto always never ask prompt env file stdin keyring vault files systemd compat function keyword
		identifier punctuator literal operator punctuation comment forgot reset confirm change enter new current your the and or is was must`) {
		t[word] = true
	}
	return t
})

// placeholder matches a text that stands where a secret belongs, such as changeme and
// your-api-key-here.
var placeholder = lazyregexp.New(`(?i)^(?:(?:please[-_ ]?)?(?:change|replace)[-_ ]?(?:me|it|this)(?:[-_ a-z]*|[0-9!]{0,4})|(?:your|some|insert|enter)[-_ ][-_ a-z]+[0-9]?` +
	`|(?:todo|fixme|dummy|placeholder|foobar|example)[-_0-9!]{0,4}|[-_ a-z]+[-_ ](?:here|placeholder))$`)

// words reports whether a text consists of words that somebody may have chosen: few, and
// not only words that usually describe secrets.
func words(s string) bool {
	fields := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' || r == '_' || r == '.' })
	if len(fields) > 8 || strings.ContainsAny(s, "?!:()%/\\{}") || s[0] >= 'A' && s[0] <= 'Z' && strings.Contains(s, " ") {
		return false
	}
	return !slices.ContainsFunc(fields, isStopWord)
}

// mixture reports whether a text has letters and something else, so that it is no word.
func mixture(s string) bool {
	letters, others := 0, 0
	for _, c := range []byte(s) {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
		case bytes.IndexByte([]byte(" -_./()[]{}<>|"), c) >= 0:
		default:
			others++
		}
	}
	return len(s) >= 6 && letters > 0 && others > 0 && !strings.HasSuffix(s, ":")
}

// random reports whether a text looks as if a program made it: letters and digits
// together, and not words with numbers between dashes.
func random(s string) bool {
	letters, digits, upper, lower := 0, 0, 0, 0
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z':
			letters, lower = letters+1, lower+1
		case c >= 'A' && c <= 'Z':
			letters, upper = letters+1, upper+1
		case c == ' ':
			return false
		}
	}
	if len(s) < 8 || letters == 0 || digits == 0 && (len(s) < 20 || upper < 3 || lower < 3 || strings.ContainsAny(s, "-_./")) {
		return false
	}
	if len(s) >= 16 && digits >= 2 && strings.Count(s, "-")+strings.Count(s, "/")+strings.Count(s, ".") <= len(s)/8 {
		return longest(s) >= 8
	}
	return longest(s) >= 8 || uuid().MatchString(s) || len(s) >= 24 && digits >= 4
}

// longest returns the length of the longest part of s without a separator that has both
// letters and digits.
func longest(s string) (most int) {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_./:,=@#", r) }) {
		if strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != "" && !wordWithNumber().MatchString(part) {
			most = max(most, len(part))
		}
	}
	return most
}

// wordWithNumber is a word with a number at an end, such as value123 or 64characters.
var wordWithNumber = lazyregexp.New(`^(?:[a-z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+)[0-9]{1,3}$|^[0-9]{1,4}[a-z]+$`)

var uuid = lazyregexp.New(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// isCode reports whether the text is not the value itself, but a variable, a call, a
// path, a URL or a placeholder.
func isCode(s string, quoted bool) bool {
	if strings.ContainsAny(s[:1], "{[(<|") || s[0] == '$' && (!quoted || len(s) > 1 && (s[1] == '{' || s[1] == '(' || isWord(s[1]) && strings.ToUpper(s) == s)) || !quoted && strings.ContainsAny(s[:1], "*&@`") {
		return true
	}
	for _, part := range []string{"://", "${", "{{", "<%", "$(", "()", "...", "***", "•••", "xxxx", "XXXX", "=>", "->", "::", "REDACTED", "FILTERED"} {
		if strings.Contains(s, part) {
			return true
		}
	}
	return strings.HasPrefix(s, "~/") || strings.HasPrefix(s, "/") && strings.Count(s, "/") > 1 && !strings.HasSuffix(s, "=") || codeValue().MatchString(s) || s[0] == '%' && strings.HasSuffix(s, "%")
}

// codeValue is a path, a member of an object, a call, or an index.
var codeValue = lazyregexp.New(`^(?:~|\.{1,2})?/[\w./-]*$|^[\w./-]+\.(?:pem|key|crt|cer|json|ya?ml|toml|txt|p12|pfx|jks|env|sock|pub|js|ts|tsx|go|rb|py|rs|java|html|css|md|sh|lock)(?::[0-9:]+)?$` +
	`|^[A-Za-z_$][\w$.]*[(\[]|^[A-Za-z_$][A-Za-z_$]{0,24}[0-9]{0,2}(?:(?:\.|->)[A-Za-z_$][A-Za-z_$]{0,24}[0-9]{0,2})+[!?]?$`)

// formatValue matches a version, a date, a duration, a size, an address or the name of an
// algorithm.
var formatValue = lazyregexp.New(`^[\^~<>=v]*[0-9]+\.[0-9x]+(?:\.[0-9x]+)*(?:[-+][\w.+-]*)?$|^[0-9:TZ.+_/-]+[:T./-][0-9:TZ.+_/-]*$|^[0-9.]+(?:ns|µs|us|ms|s|m|h|d|min|sec|seconds|minutes|hours|days|[kKMGT]i?B?|%|px|em|rem)$` +
	`|^0x[0-9a-fA-F]{1,16}$|^(?i:sha|md|aes|hs|rs|es|ps|utf|base|int|uint|float|ed|x|rsa|bcrypt|argon|pbkdf|oauth|http|v|u|i|f|str)-?[0-9]+(?:-[a-z0-9]+)*$`)
