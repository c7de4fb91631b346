package redact

import (
	"encoding/base64"
	"strings"
)

// quote is a quotation mark, also as strings of JSON, HTML and URLs write it.
const quote = `(?:\\*["']|&(?:quot|apos|#0?3[49]|#x2[27]);|\\+u002[27]|%2[27])`

// labelled are credentials that the automaton finds by the label in front of them, with
// word only where a word begins. The label is not held back. Behind it are characters of
// tokenTail, and in front of these what more matches. The group in secret is what is
// masked.
var labelled = []struct {
	label, secret string
	more          string
	plausible     func(secret string) bool // nil: always
	word          bool
}{
	{label: awsLabel, secret: `([A-Za-z0-9/+=]{16,})`},
	{label: authorization, secret: `([A-Za-z0-9._~+/=-]{8,})`},
	{label: `;(?:AccountKey|SharedAccessKey)=`, secret: `([A-Za-z0-9+/=]{40,})`},                                                      // connections of Azure
	{label: `[0-9]Q~[A-Za-z0-9_.~-]`, secret: `([A-Za-z0-9_.~-]{30,33})(?:[^A-Za-z0-9_.~-]|$)`},                                       // Microsoft Entra, from its seventh character on
	{label: `[0-9]:AA`, secret: `([A-Za-z0-9_-]{33})` + endOfToken},                                                                   // Telegram, behind the bot's number
	{label: `bot[0-9]`, more: `[0-9]+:AA`, secret: `([0-9]{7,9}:AA[A-Za-z0-9_-]{33})` + endOfToken},                                   // with it
	{label: `\.atlasv1\.`, secret: `([A-Za-z0-9_=-]{60,})`},                                                                           // HCP Terraform
	{label: `pat[A-Za-z0-9]`, word: true, secret: `([A-Za-z0-9]{13}\.[a-f0-9]{64})`},                                                  // Airtable
	{label: `SK[0-9a-f]{2}`, word: true, secret: `([0-9a-f]{30})` + endOfToken},                                                       // Twilio
	{label: `Signature=`, secret: `([A-Za-z0-9%+/=]{40,})`},                                                                           // requests that AWS signs
	{label: `X-Amz-Security-Token=`, secret: `([A-Za-z0-9%+/=]{40,})`},                                                                // and their session
	{label: `[?&]sig=`, secret: `([A-Za-z0-9%+/=]{40,})`},                                                                             // Azure
	{label: `[MNO][DTjz][AEIMQUYcgk][wxyz0-5]`, word: true, secret: `([A-Za-z0-9_-]{19,24}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})`}, // bots of Discord: a number in base64
	{label: `EAA[A-Za-z]`, word: true, secret: `([A-Za-z0-9]{90,})`, plausible: random},                                               // Facebook
	{label: `EAAA[A-Za-z0-9_-]`, word: true, secret: `([A-Za-z0-9_-]{59})` + endOfToken, plausible: urlSafe},                          // Square
	{label: `1/[0-9]{16}:`, word: true, secret: `([0-9a-f]{32})` + endOfToken},                                                        // Asana
	{label: `2/[0-9]{2}`, word: true, more: `[0-9/]+:`, secret: `([0-9]{14}/[0-9]{16}:[0-9a-f]{32})` + endOfToken},
	{label: `\.webhook\.office\.com/webhookb2/[0-9a-f-]+@`, secret: `([A-Za-z0-9@/-]{40,})`}, // Teams
	{label: pairLabel, secret: `([^"'\x00-\x20]{6,}?)` + quote, plausible: mixture},          // a pair in XML or JSON
	{label: `(?:sshpass -p|redis-cli -a) ["']?`, secret: `([^\x00-\x20"'$]{6,})`},
	{label: sqlLabel, secret: `([^'\x00-\x20]{4,})'`},
	{label: optionLabel, secret: `([^\x00-\x20"'$<{(-][^\x00-\x20"']{5,})`, plausible: mixture},
	{label: `(?i:bearer )[A-Za-z0-9]`, secret: `([A-Za-z0-9._~+/=-]{15,})`, plausible: random},
	{label: `[0-9][0-9]\|[A-Za-z0-9_-]`, secret: `([A-Za-z0-9_-]{26})` + endOfToken, plausible: mixedCase}, // apps of Facebook
}

// endOfToken is what may follow a token of a certain length.
const endOfToken = `(?:[^A-Za-z0-9_-]|$)`

// endOfWord is what may follow a value that is one word: no name of a file or of a
// service, no call.
const endOfWord = `(?:[^A-Za-z0-9!@#%^*_+=~./:\[({-]|$)`

// The labels of several forms.
const (
	awsLabel      = `(?i:aws_?secret_?access_?key|aws_?session_?token|secretaccesskey|sessiontoken)` + quote + `?[ \t]*[:=][ \t]*` + quote + `?`
	authorization = `(?i:authorization)` + quote + `?[ \t]*[:=][ \t]*` + quote + `?(?i:bearer|basic|token|bot|ssws|key)[ \t]+`
	pairLabel     = `(?i:password|passwd|pass|secret|token|key)` + quote + `,?[ \t\r\n]*` + quote + `?value` + quote + `?[ \t]*[:=][ \t]*` + quote
	sqlLabel      = `(?i:identified by|password) '`
	optionLabel   = `--(?:password|passphrase|token|auth-token|access-token|api-token|secret|client-secret|api-key)[ \t]+["']?`
)

// spoken are credentials that begin like any word, behind a label that is no name with a
// sign. Like named values they have no form of their own: without the label, every word
// would have to be looked at. The group in secret is what is masked.
var spoken = []struct {
	label, secret string
	plausible     func(secret string) bool // nil: always
}{
	// Keys with the name of their maker. Their length or end identifies them.
	{label: `(?i:mailchimp)` + brandSign, secret: `([0-9a-f]{32}-us[0-9]{1,2})` + endOfToken},
	{label: `(?i:okta|ssws)` + brandSign, secret: `(00[A-Za-z0-9_-]{40})` + endOfToken},
	{label: `(?i:azure|devops|azdo)` + brandSign, secret: `([a-z2-7]{52}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})` + endOfToken}, // older tokens, and those since 2024
	// A blank between a name and its value, in sentences, .netrc, redis.conf and
	// properties, and where shells and Docker set variables.
	{label: `(?i:password|passwd|passphrase)[ \t]+(?:is[ \t]+)?`, secret: `["']?([A-Za-z0-9!@#%^*_+=~]{8,})` + endOfWord, plausible: random},
	{label: `(?:requirepass|masterauth)[ \t]+`, secret: `["']?([^\x00-\x20"'$<{(-][^\x00-\x20"']{5,})`, plausible: mixture},
	{label: `_(?:TOKEN|SECRET|KEY|PAT|AUTH)[ \t]+`, secret: `["']?([A-Za-z0-9!@#%^*_+=~./-]{16,})` + endOfWord, plausible: random},
	{label: `(?i:password|passwd|secret|token|_key)[ \t]*\r?\n[ \t]+value:[ \t]*`, secret: `["']?([^\x00-\x20"'$<{(-][^\x00-\x20"']{5,})`, plausible: mixture}, // a pair in YAML
	// Connections of databases, and lines of .pgpass.
	{label: `(?i:pwd)=`, secret: `([^\x00-\x20"'$<{(~/;][^\x00-\x20"'/;]{5,});`, plausible: mixture},
	{label: `:5432:`, secret: `[^:\x00-\x20]+:[^:\x00-\x20]+:([^\x00-\x20:/]{6,})`},
}

// spokenLabel is any label of spoken. Those of makers are one: as three, they would add a
// quarter to the automaton.
var spokenLabel = func() string {
	all := []string{`(?i:mailchimp|okta|ssws|azure|devops|azdo)` + brandSign}
	for _, s := range spoken {
		if !strings.HasSuffix(s.label, brandSign) {
			all = append(all, s.label)
		}
	}
	return strings.Join(all, "|")
}()

// brandSign is what may stand between a maker's name and a key.
const brandSign = `(?:[ \t_.-]+(?i:devops|api|access|personal|pat|key|token))*["']?[ \t:=(]+["'(]?`

// mixedCase reports whether a text has digits, small and capital letters.
func mixedCase(s string) bool {
	return strings.ToLower(s) != s && strings.ToUpper(s) != s && strings.ContainsAny(s, "0123456789")
}

// urlSafe reports whether a text contains characters that only the URL form of base64
// has, and otherwise looks random.
func urlSafe(s string) bool {
	return strings.ContainsAny(s, "-_") && random(strings.NewReplacer("-", "", "_", "").Replace(s))
}

// These secrets are found by the text around them.
const (
	privateKeyLabel = `-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----` // PEM
	puttyLabel      = `Private-Lines: [0-9]+\r?\n`
	puttyBody       = `([A-Za-z0-9+/=\r\n]+)`
	privateKeyBody  = `((?:[^-]|-[^-])+)`
	// A password in a URL, also in one that is a string of JSON or in the query of
	// another. It may have an @ that should be encoded.
	passwordInURL   = `:\\*/\\*/[^\x00-\x20/:@?#'"\\]*:((?:[^\x00-\x20/@?#'"\\]{3,}|[^\x00-\x20/@?#'"\\]+@[^\x00-\x20/@?#'"\\,;&<>=]+)(?:@[^\x00-\x20/@?#'"\\,;&<>=]+)*)@`
	passwordInQuery = `%3[Aa]%2[Ff]%2[Ff][A-Za-z0-9._~-]*%3[Aa]((?:[A-Za-z0-9._~!*()-]|%[0-35-9A-Fa-f][0-9A-Fa-f]|%4[1-9A-Fa-f]){3,})%40`
	userInURL       = `:\\*/\\*/([A-Za-z0-9_.~%+=-]{20,})@` // a token that stands for a user
	anyInURL        = `(?::\\*/\\*/|%3[Aa]%2[Ff]%2[Ff])[^\x00-\x20/?#'"]*(?:@|%40)`
)

// encodedKeyLabel begins a private key whose whole PEM form is in base64, as in
// configurations.
var encodedKeyLabel = func() string {
	var labels []string
	for _, kind := range []string{"", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "} {
		text := "-----BEGIN " + kind + "PRIVATE KEY"
		labels = append(labels, base64.StdEncoding.EncodeToString([]byte(text[:len(text)/3*3])))
	}
	return "(?:" + strings.Join(labels, "|") + ")"
}()

const encodedKeyBody = `([A-Za-z0-9+/_-]+={0,2}(?:\r?\n[A-Za-z0-9+/_-]{20,}={0,2})*)`
