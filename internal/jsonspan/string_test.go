package jsonspan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/internal/jsonspan"
	"tether/internal/testkit/must"
)

// reference is the encoding the package promises to match.
func reference(t testing.TB, s []byte) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	must.Do(t, enc.Encode(string(s)))
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// awkward holds texts with everything that is treated specially; tests shift them over
// all positions of a word and over the end of a block.
var awkward = []string{
	"", "a", `"`, `\`, "/", "<>&", "\x00\x01\x1f\x7f", "\b\f\n\r\t", "\x1b[1;32mok\x1b[0m\r\n",
	"é", "€", "😀", "─│┌┐└┘", "\u2028\u2029\u202a", "\ufffd", "\uffff", "\u07ff\u0800",
	"\xff", "\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe2\x82", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x9f\x98", "\xf5\x80\x80\x80", "\xf4\x90\x80\x80",
	"a\xe2\x80", "\xe2\x80\xa8\xe2\x80",
}

func TestAppendQuoteMatchesEncodingJSON(t *testing.T) {
	for _, text := range awkward {
		for _, shift := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 249, 250, 251, 252, 253, 254, 255, 256, 257} {
			for _, tail := range []string{"", "zzzzzzzzzz"} {
				s := strings.Repeat("x", shift) + text + tail
				want := "prefix" + string(reference(t, []byte(s)))
				if got := jsonspan.AppendQuote([]byte("prefix"), []byte(s)); string(got) != want {
					t.Fatalf("AppendQuote(%q) = %s, want %s", s, got, want)
				}
				if got := jsonspan.AppendQuoteString([]byte("prefix"), s); string(got) != want {
					t.Fatalf("AppendQuoteString(%q) = %s, want %s", s, got, want)
				}
				checkUnquote(t, []byte(want)[len("prefix"):])
				checkUnquote(t, []byte(`"`+s+`"`))
			}
		}
	}
}

// oscBegins fits text in which, or behind which, a terminal sees an OSC begin.
var oscBegins = regexp.MustCompile("\u009d|\x1b[\x00-\x1a\x1c-\x1f\x7f]*(\\]|$)")

// rows matches texts with Check.Rows.
var rows = regexp.MustCompile("^(?:[^\x0e\x0f\x1b\u0080-\u009f]|\x1b\\[[0-9:;]*[mK])*(?:\x1b(?:\\[[0-9:;]*)?)?$")

// checkUnquote compares AppendUnquote and CheckString with encoding/json.
func checkUnquote(t *testing.T, quoted []byte) {
	t.Helper()
	var want string
	wantErr := json.Unmarshal(quoted, &want)
	if len(quoted) == 0 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		wantErr = fmt.Errorf("not in quotes")
	}
	got, err := jsonspan.AppendUnquote([]byte("prefix"), quoted)
	found, checkErr := jsonspan.CheckString(quoted)
	if (err == nil) != (wantErr == nil) || (checkErr == nil) != (wantErr == nil) {
		t.Fatalf("%q: AppendUnquote %v, CheckString %v, encoding/json %v", quoted, err, checkErr, wantErr)
	}
	if err != nil {
		want = ""
	}
	if string(got) != "prefix"+want {
		t.Fatalf("AppendUnquote(%q) = %q, want %q", quoted, got[len("prefix"):], want)
	}
	if err != nil {
		return
	}
	if !found.OSC && oscBegins.MatchString(want) {
		t.Fatalf("CheckString(%q) finds no OSC", quoted)
	}
	found.OSC = false
	if right := (jsonspan.Check{Size: len(want), UTF8: utf8.Valid(quoted), Rows: rows.MatchString(want), Styled: strings.Contains(want, "\x1b")}); found != right {
		t.Fatalf("CheckString(%q) = %+v, want %+v", quoted, found, right)
	}
	checkCuts(t, quoted[1:len(quoted)-1], want)
}

// checkCuts looks at places where Skip and Tail cut a string with this text.
func checkCuts(t *testing.T, s []byte, text string) {
	t.Helper()
	if len(s) > 1000 {
		return // others are short
	}
	for n := range len(s) + 2 {
		at, size := jsonspan.Skip(s, n)
		a, errA := jsonspan.AppendUnescape(nil, s[:at])
		b, errB := jsonspan.AppendUnescape(nil, s[at:])
		if errA != nil || errB != nil || string(a)+string(b) != text || size != len(a) || size < min(n, len(text)) || size > n+3 {
			t.Fatalf("Skip(%q, %d) = %d, %d: %q and %q", s, n, at, size, a, b)
		}
		tail := jsonspan.Tail(s, n)
		if tail == nil {
			continue
		}
		c, err := jsonspan.AppendUnescape(nil, tail)
		if err != nil || len(tail) > n || tail[0] != '\\' || !bytes.HasSuffix(s, tail) || !strings.HasSuffix(text, string(c)) {
			t.Fatalf("Tail(%q, %d) = %q: %q, %v", s, n, tail, c, err)
		}
	}
}

func TestUnquote(t *testing.T) {
	tests := []struct{ name, in string }{
		{"nothing", ``},
		{"one quote", `"`},
		{"no opening quote", `a"`},
		{"no closing quote", `"a`},
		{"space around", ` "a" `},
		{"null", `null`},
		{"quote inside", `"a"b"`},
		{"closing quote is escaped", `"a\"`},
		{"escapes", `"\"\\\/\b\f\n\r\t"`},
		{"unknown escape", `"\a"`},
		{"escaped NUL letter", "\"\\\x00\""},
		{"hex escape", `"\u001B\u00e9\u20AC\uffff"`},
		{"short hex escape", `"\u00e"`},
		{"bad hex escape", `"\u00eg"`},
		{"capital U", `"\U0001f600"`},
		{"surrogate pair", `"\ud83d\ude00"`},
		{"lone high surrogate", `"\ud83d"`},
		{"high surrogate, text", `"\ud83dxxxxxx"`},
		{"high surrogate, other escape", `"\ud83d\u0041"`},
		{"high surrogate, broken escape", `"\ud83d\u00"`},
		{"two high surrogates", `"\ud83d\ud83d\ude00"`},
		{"lone low surrogate", `"\ude00"`},
		{"raw control character", "\"a\nb\""},
		{"delete is allowed", "\"\x7f\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkUnquote(t, []byte(tt.in))
			if len(tt.in) > 2 {
				pad := strings.Repeat("y", 300)
				checkUnquote(t, []byte(`"`+pad+tt.in[1:len(tt.in)-1]+pad+`"`))
			}
		})
	}
}

func TestStringsDoNotAllocate(t *testing.T) {
	text := []byte(coloured(8 << 10))
	str := string(text)
	quoted := jsonspan.AppendQuote(nil, text)
	buf := make([]byte, 0, 64<<10)
	for name, f := range map[string]func(){
		"AppendQuote":       func() { jsonspan.AppendQuote(buf, text) },
		"AppendQuoteString": func() { jsonspan.AppendQuoteString(buf, str) },
		"AppendUnquote":     func() { _, _ = jsonspan.AppendUnquote(buf, quoted) },
		"CheckString":       func() { _, _ = jsonspan.CheckString(quoted) },
	} {
		if allocs := testing.AllocsPerRun(50, f); allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range awkward {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		quoted := jsonspan.AppendQuote(nil, s)
		if want := reference(t, s); !bytes.Equal(quoted, want) {
			t.Fatalf("AppendQuote(%q) = %s, want %s", s, quoted, want)
		}
		back, err := jsonspan.AppendUnquote(nil, quoted)
		if err != nil {
			t.Fatalf("AppendUnquote(%s): %v", quoted, err)
		}
		if utf8.Valid(s) && !bytes.Equal(back, s) {
			t.Fatalf("%q came back as %q", s, back)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	for _, s := range awkward {
		f.Add([]byte(`"` + s + `"`))
		f.Add(jsonspan.AppendQuote(nil, []byte(s)))
	}
	for _, s := range []string{`"\ud83d\ude00\ud83d"`, `"\u001b[31mred\u001b[0m\r\n"`, `"\u001B[38:5:9;1Kx\u001b[1;3"`, `"\u001b[?1h"`, `"\u001b[<m\u001b[1;;;;;;;;;2m"`, `"\u000e\u0085"`, "\"\u0085\u00a0\u009d\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) { checkUnquote(t, quoted) })
}
