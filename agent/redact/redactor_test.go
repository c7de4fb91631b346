package redact_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit/must"
)

// made is a text that fits an expression: the shortest, with random letters. So no form
// of a credential stands in this file.
func made(t testing.TB, expr string, random *rand.Rand) string {
	t.Helper()
	re := must.Get(syntax.Parse(expr, syntax.Perl))(t)
	var b strings.Builder
	var write func(re *syntax.Regexp)
	write = func(re *syntax.Regexp) {
		switch re.Op {
		case syntax.OpLiteral:
			b.WriteString(string(re.Rune))
		case syntax.OpCharClass:
			var all []rune
			for i := 0; i < len(re.Rune); i += 2 {
				for c := re.Rune[i]; c <= min(re.Rune[i+1], '~'); c++ {
					all = append(all, c)
				}
			}
			b.WriteRune(all[random.IntN(len(all))])
		case syntax.OpRepeat, syntax.OpPlus:
			for range max(re.Min, 1) {
				write(re.Sub[0])
			}
		case syntax.OpConcat, syntax.OpCapture:
			for _, sub := range re.Sub {
				write(sub)
			}
		case syntax.OpAlternate:
			write(re.Sub[0])
		}
	}
	write(re)
	return b.String()
}

// Every known form is found anywhere in a text, in any division, and its prefix stays and
// shows its kind.
func TestTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := compile(t, redact.Options{Tokens: true})
	around := [][2]string{{"", "\n"}, {"TOKEN=", " x"}, {"\x1b[32m", "\x1b[0m"}, {`{"a":"`, `"}`}, {"é", "é"}, {"(", ")"}}
	for _, form := range redact.TokenForms() {
		for _, a := range around {
			token := made(t, form[1], random)
			text := a[0] + token + a[1]
			got := shown(r, text)
			want := a[0] + form[0] + strings.Repeat("*", len(token)-len(form[0])) + a[1]
			if got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
			for range 3 {
				if again := inPieces(t, r, text, randomCut(random)); again != want {
					t.Errorf("%q in pieces is shown as %q, want %q", text, again, want)
				}
			}
		}
	}
}

func TestContexts(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true})
	secret := "q" + strings.Repeat("Zx9", 13)
	key := strings.Repeat("MIIEow"+secret+"\r\n", 30)
	for _, c := range []struct{ name, before, secret, after string }{
		{"AWS secret", "aws_secret_access_key = ", secret, "\n"},
		{"AWS secret in JSON", `"AwsSecretAccessKey": "`, secret, `"`},
		{"HTTP header", "Authorization: Bearer ", secret, "\r\n"},
		{"curl", "> authorization: basic ", secret, "\r\n"},
		{"URL", "postgres://app:", secret, "@db.example/x"},
		{"private key", "-----BEGIN RSA PRIVATE KEY-----", key, "-----END RSA PRIVATE KEY-----"},
		{"PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----", key, "-----END PGP PRIVATE KEY BLOCK-----"},
		{"private key with headers", "-----BEGIN EC PRIVATE KEY-----", "Proc-Type: 4\n\n" + key, "-----END EC PRIVATE KEY-----"},
		{"long private key", "-----BEGIN PRIVATE KEY-----", strings.Repeat(key, 8) + "-", "----END PRIVATE KEY-----"},
	} {
		want := strings.Map(func(r rune) rune {
			if r < 0x20 {
				return r
			}
			return '*'
		}, c.secret)
		if got := shown(r, c.before+c.secret+c.after); got != c.before+want+c.after {
			t.Errorf("%s: shown as %.300q … %q", c.name, got, got[len(got)-200:])
		}
	}
}

// An escape in front of a character is not part of a secret: the mask begins between
// characters.
func TestMasksBeginBetweenCharacters(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true})
	const text = "-----BEGIN PRIVATE KEY-----\n\x1b🙂 key-----END PRIVATE KEY-----"
	const want = "-----BEGIN PRIVATE KEY-----\n\x1b********-----END PRIVATE KEY-----"
	if got := shown(r, text); got != want {
		t.Errorf("%q is shown as %q, want %q", text, got, want)
	}
}

// Text that only resembles a secret stays.
func TestNoSecrets(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true, Patterns: []string{`corp-[0-9]{6}`}}, "hunter2-value")
	for _, text := range []string{
		"task-list of the disk-usage-of-everything-that-is-there", "sk-short", "npm_config_cache=/x", "AKIA is a prefix", "eyJ.eyJ", "ghp_", "xoxb-",
		"https://host:8080/a@b", "ssh://git@github.com:22/x", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nabc\n",
		"authorization: none", "corp-12345", "hunter2-valu", "sha256:" + strings.Repeat("0a1b", 16), "AIzaShort", strings.Repeat("s", 10000),
	} {
		if got := shown(r, text+"\n"); got != text+"\n" {
			t.Errorf("%.80q is shown as %.80q", text, got)
		}
	}
}

func TestValues(t *testing.T) {
	value := "hunter2-" + "väl ue/+\"x"
	r := compile(t, redact.Options{}, value, "line one\nsecond line")
	b64 := func(before string) string { return base64.StdEncoding.EncodeToString([]byte(before + value + "!")) }
	for _, c := range []struct{ name, text, secret string }{
		{"as it is", "x" + value + "y", value},
		{"twice", value + value, value},
		{"in JSON", `{"a":"hunter2-väl ue/+\"x"}`, `hunter2-väl ue/+\"x`},
		{"in a query", "?a=hunter2-v%C3%A4l+ue%2F%2B%22x&", "hunter2-v%C3%A4l+ue%2F%2B%22x"},
		{"a line of it", "\tsecond line\r\n", "second line"},
		{"another line", "> line one <", "line one"},
		{"in a query, small", "?a=hunter2-v%c3%a4l+ue%2f%2b%22x&", "hunter2-v%c3%a4l+ue%2f%2b%22x"},
		{"in a query, as JavaScript has it", "?a=hunter2-v%C3%A4l%20ue%2F%2B%22x&", "hunter2-v%C3%A4l%20ue%2F%2B%22x"},
		{"in JSON in JSON", `"{\"a\":\"hunter2-väl ue/+\\\"x\"}"`, `hunter2-väl ue/+\\\"x`},
		{"in HTML", "<b>hunter2-väl ue/+&#34;x</b>", "hunter2-väl ue/+&#34;x"},
		{"in HTML, with a name", `<a title="hunter2-väl ue/+&quot;x">`, "hunter2-väl ue/+&quot;x"},
		{"in capitals", "HUNTER2-VÄL UE/+\"X", "HUNTER2-VÄL UE/+\"X"},
	} {
		got := shown(r, c.text)
		if want := strings.ReplaceAll(c.text, c.secret, strings.Repeat("*", len(c.secret))); got != want {
			t.Errorf("%s: %q is shown as %q, want %q", c.name, c.text, got, want)
		}
	}
	for _, before := range []string{"", "a", "ab", "user:"} {
		if got := shown(r, b64(before)); strings.Count(got, "*") < len(value) {
			t.Errorf("in base64 behind %q: %q is shown as %q", before, b64(before), got)
		}
	}
}

func TestWhichValues(t *testing.T) {
	env := []string{"GITHUB_TOKEN=abcdef123", "db_password=s3cr3tpw", "TOKEN_COUNT=1234567", "SHORT_SECRET=abc", "HOME=/home/x", "SECRET_FILE=/run/secrets/x",
		"SECRET_STARS=********", "MY_SECRET=abcdef123", "NOVALUE_TOKEN", "CHEESE=abcdefghi"}
	got := redact.Values(env, []string{"*TOKEN*", "*secret*", "DB_PASSWORD"})
	if want := "abcdef123 s3cr3tpw"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// In a value behind a telling name, all else is found, too.
func TestInNamedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(61, 1))
	r := compile(t, redact.Options{Tokens: true, Patterns: []string{`corp-[a-z]{6}`, `pin [0-9]+ of [a-z]+`}}, "correct-horse", "battery & staple")
	token := made(t, `[A-Za-z0-9]{36}`, random)
	for _, c := range []struct{ in, want string }{
		{"token: correct-horse, x", "token: *************, x"},
		{"token: a/correct-horse x", "token: a/************* x"},
		{`secret: "so correct-horse it is"`, `secret: "so ************* it is"`},
		{"session=battery & staple;", "session=****************;"},
		{"password=corp-abcdef x", "password=*********** x"},
		{"api_key: x:corp-abcdef;", "api_key: x:***********;"},
		{"token: pin 42 of mine.", "token: **************."},
		{"cookie: x,ghp_" + token + ";", "cookie: x,ghp_" + strings.Repeat("*", len(token)) + ";"},
	} {
		got := shown(r, c.in+"\n")
		if got != c.want+"\n" {
			t.Errorf("%q is shown as %q, want %q", c.in, got, c.want)
		}
		if again := inPieces(t, r, c.in+"\n", func(string) int { return 1 }); again != got {
			t.Errorf("%q is shown as %q, byte by byte %q", c.in, got, again)
		}
	}
}

// Every match of an expression has one of its needles.
func TestNeedles(t *testing.T) {
	for expr, want := range map[string]string{
		`a(?:b|c)[0-9]+xyz`: "[xyz]", `(?i:PassWord|pin) '([^']+)'`: "[assword in]", `[a-z]+`: "[]", `(?:ab|[0-9])`: "[]", `(abc){0,2}d`: "[d]",
		`(abc){2,}d`: "[abc]", `://[^\s]*@`: "[://]", `é+`: "[]", `(?:x)?`: "[]",
	} {
		if got := fmt.Sprint(redact.Needles(expr)); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	r := compile(t, redact.Options{Patterns: []string{`corp-[0-9]{6}`, `(?i)pin: *(\d+)`, `^key .*$`, `[äö]{2,}x`}})
	for _, c := range []struct{ in, want string }{
		{"a corp-123456 b", "a *********** b"},
		{"PIN:  42;", "PIN:  **;"},
		{"x\nkey of all\nkey\n no key x", "x\n**********\nkey\n no key x"},
		{"aäöäxb", "a*******b"},
		{"key \x1b[31mred\x1b[0m.", "****\x1b[31m***\x1b[0m*"},
	} {
		if got := shown(r, c.in); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.in, got, c.want)
		}
	}
	for _, bad := range []string{"(", strings.Repeat("(.*a){10}", 20)} {
		if _, err := redact.Compile(redact.Options{Patterns: []string{bad}}); bad == "(" && err == nil {
			t.Errorf("%q compiles", bad)
		}
	}
}

// Flush releases the held bytes. It masks the arrived part of a token that continues, and
// of a value with more than two bytes.
func TestFlush(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	token := made(t, redact.TokenForms()[3][1], random)
	value := "hunter2-value"
	r := compile(t, redact.Options{Tokens: true}, value)
	for _, c := range []struct {
		name, text string
		pieces     []int // lengths before a flush
		want       string
	}{
		{"token cut in half", token, []int{20}, token[:4] + strings.Repeat("*", len(token)-4)},
		{"token after its prefix", token, []int{4}, token[:4] + strings.Repeat("*", len(token)-4)},
		{"value after two bytes", value, []int{2}, "hu***********"},
		{"value after three bytes", value, []int{3}, "*************"},
		{"value byte by byte", value, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "hu***********"},
		{"no value after all", "hunt the fox", []int{4}, "**** the fox"},
		{"a word", "npm_con figure", []int{7}, "npm_con figure"},
		{"a title", "\x1b]0;xy\az", []int{5}, "\x1b_---\x1b\\z"},
		{"introducer", "\x1b]\x1b\\z", []int{2}, "\x1b\x18\x1b\\z"},
		{"ESC", "\x1b]0;x\az", []int{1}, "\x1b]0;x\az"},
	} {
		out := []byte(c.text)
		f := redact.NewFilter(r, 0)
		rest := c.text
		for _, n := range c.pieces {
			f.Feed([]byte(rest[:n]))
			f.Flush()
			if f.Decided() != int64(len(c.text)-len(rest)+n) {
				t.Errorf("%s: decided %d after a flush", c.name, f.Decided())
			}
			// Masks that were taken are not returned again.
			secrets, sequences := f.Take()
			for _, m := range append(secrets, sequences...) {
				m.Start = max(m.Start, int64(len(c.text)-len(rest)))
				m.Put(out, 0)
			}
			rest = rest[n:]
		}
		from := int64(len(c.text) - len(rest))
		f.Feed([]byte(rest))
		f.Flush()
		secrets, sequences := f.Take()
		for _, m := range append(secrets, sequences...) {
			m.Start = max(m.Start, from)
			m.Put(out, 0)
		}
		if string(out) != c.want {
			t.Errorf("%s: %q is shown as %q, want %q", c.name, c.text, out, c.want)
		}
	}
}

// Nothing is held back while the typed text begins no secret: neither the letters with
// which tokens begin, nor their prefixes alone.
func TestNothingIsHeldWhileTyping(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true, Images: 1 << 20})
	f := redact.NewFilter(r, 0)
	for i, b := range []byte("ls -la; git push; sk npm test gx eyA xox \x1b[K\x1b[31mgh\x1b[0m") {
		f.Feed([]byte{b})
		if f.Decided() != int64(i+1) {
			t.Errorf("byte %d, %q, is held back", i, b)
		}
	}
}

// A word that output ends with stays, although a label of some token is in it.
func TestWordsBeforeAPause(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true}, "hunter2-value")
	for _, text := range []string{"cd path", "~/mypaths", "pathfinder", "xSK0ab12", "task-list-of-all", "MTAw", "EAAa", "mkdir -p some/long/path", "password authentication", "2/1200"} {
		if got := shown(r, "$ "+text); got != "$ "+text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if got := shown(r, "sk-in-a-task-hunter2-v"); got != "sk-in-a-task-*********" && got != "sk-*******************" {
		t.Errorf("a value behind what is no token is shown as %q", got)
	}
}

// A letter that a value begins with waits, briefly.
func TestBrief(t *testing.T) {
	r := compile(t, redact.Options{}, "hunter2-value")
	for _, c := range []struct {
		text        string
		held, brief bool
	}{{"x", false, false}, {"h", true, true}, {"hu", true, true}, {"hun", true, false}, {"hux", false, false}, {"\x1b]0;x", true, false}} {
		f := redact.NewFilter(r, 0)
		f.Feed([]byte(c.text))
		if held := f.Decided() < int64(len(c.text)); held != c.held || held && f.Brief() != c.brief {
			t.Errorf("%q: held %v, briefly %v; want %v, %v", c.text, held, f.Brief(), c.held, c.brief)
		}
	}
}

// As many values as one terminal may have are not too many.
func TestManyValues(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	var env []string
	for i := range 100 {
		env = append(env, "TOKEN_"+strings.Repeat("X", i)+"="+made(t, `[A-Za-z0-9+/ ]{128}`, random))
	}
	values := redact.Values(env, []string{"TOKEN*"})
	if len(values) != 64 {
		t.Errorf("%d values", len(values))
	}
	r := compile(t, redact.Options{Tokens: true}, values...)
	for _, v := range []string{values[0], values[len(values)-1]} {
		if got := shown(r, "x "+v+"\n"); strings.Contains(got, v[:20]) || !strings.Contains(got, "*****") {
			t.Errorf("shown as %q", got)
		}
	}
}
